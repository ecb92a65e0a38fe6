/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake quantization: what QuantizeLinear and DequantizeLinear make of a number, for each
 * row of tbl/formats.h, as ONNX's operators state it (floats: saturate = 1).
 *
 *   integers  q = saturate(round_half_to_even(x / scale) + zero_point)
 *             x' = (q - zero_point) * scale
 *   floats    q = x / scale as the nearest float of the format, ties to even, saturated
 *             (infinity, too); -0 stays -0
 *             x' = q * scale
 *
 * All in float32. float16 is widened before (exact), and x' rounded to it half to even. A
 * NaN stays a NaN; which one is not defined.
 *
 * The inline functions are the definition. The kernels of engine/cuda compile them for
 * the device, so that both give the same bits.
 */
#ifndef QDQI_FORMAT_H
#define QDQI_FORMAT_H

#include "base/dtype.h"
#include "number/both.h"

enum qdqi_format {
#define INTEGERS(name, ...) QDQI_TO_##name,
#define FLOATS(name, ...) QDQI_TO_##name,
#include "tbl/formats.h"
#undef INTEGERS
#undef FLOATS
    QDQI_N_FORMATS
};

struct qdqi_format_row {
    const char *name;
    float lowest, highest;
    int fraction_bits; /* 0: integers */
    int min_exponent;
};

/* NULL: there is no such format. */
const struct qdqi_format_row *qdqi_format_row(int format);

/* `low` and `high` are the bounds less the zero point, so that rounding is exact. */
QDQI_BOTH float
qdqi_fake_integer(float x, float scale, float low, float high)
{
    const float round = 12582912; /* 1.5 * 2^23: beside it is no place for a fraction */
    float q = x / scale;
    q = q < low ? low : q;
    q = q > high ? high : q;
    return (q + round - round) * scale;
}

/*
 * Adding 2^23 times the distance of neighbours leaves no place for what lies between
 * them; below the smallest normal exponent that distance is constant.
 */
QDQI_BOTH float
qdqi_fake_float(float x, float scale, float highest, int fraction_bits,
                int min_exponent)
{
    float v = x / scale;
    uint32_t bits = qdqi_float_bits(v), sign = bits & 0x80000000u;
    float q = qdqi_float_of_bits(bits & 0x7fffffff);
    q = q > highest ? highest : q;
    uint32_t exponent = qdqi_float_bits(q) >> 23;
    uint32_t least = (uint32_t)(min_exponent + 127);
    exponent = exponent < least ? least : exponent;
    float round = qdqi_float_of_bits((exponent + 23 - (uint32_t)fraction_bits) << 23);
    q = q + round - round;
    return qdqi_float_of_bits(qdqi_float_bits(q) | sign) * scale;
}

/* What is done to a tensor that is stored as [outer][channels][inner]. */
struct qdqi_grid {
    enum qdqi_format format;
    size_t outer, channels, inner; /* one channel: per tensor */
    const float *scales;           /* one a channel, positive and finite */
    const int32_t *zero_points; /* one a channel, of the format; NULL: all 0, as those
                                   of floats must be */
};

/* `in` and `out` hold FLOAT32 or FLOAT16, aligned to that; they may be the same. */
void qdqi_grid_apply(const struct qdqi_grid *grid, enum qdqi_dtype type, const void *in,
                     void *out);

#endif
