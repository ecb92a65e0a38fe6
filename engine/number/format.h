/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake quantization: what QuantizeLinear and DequantizeLinear make of a number, for each
 * row of qdq/formats.h, as ONNX's operators state it (floats: saturate = 1).
 *
 *   integers  q = saturate(round_half_to_even(x / scale) + zero_point)
 *             x' = (q - zero_point) * scale
 *   floats    q = x / scale as the nearest float of the format, ties to even, saturated
 *             (infinity, too); -0 stays -0
 *             x' = q * scale
 *
 * All in float32. float16 is widened before (exact), and x' rounded to it half to even. A
 * NaN is the lowest of integers, as ONNX Runtime has it, and stays a NaN in floats; which
 * one is not defined.
 *
 * The inline functions are the definition. The kernels of engine/cuda compile them for
 * the device, so that both give the same bits.
 */
#ifndef QDQI_NUMBER_FORMAT_H
#define QDQI_NUMBER_FORMAT_H

#include "base/dtype.h"
#include "number/both.h"

enum qdqi_format {
#define QDQ_FORMAT(name, ...) QDQI_TO_##name,
#include "qdq/formats.h"
#undef QDQ_FORMAT
    QDQI_N_FORMATS
};

struct qdqi_format_row {
    const char *name;
    enum qdqi_dtype dtype; /* of that name */
    int bits;
    float lowest, highest;
    int fraction_bits; /* 0: integers */
    int min_exponent;
    int opset; /* the first whose QuantizeLinear has it */
};

/* NULL: there is no such format. */
const struct qdqi_format_row *qdqi_format_row(int format);

/*
 * The integer of x less the zero point, as a float, for a scale that is positive and
 * finite; `low` and `high` are the bounds less the zero point, so that rounding is exact.
 * It is never -0, which an integer cannot be.
 */
QDQI_BOTH float
qdqi_quantized(float x, float scale, float low, float high)
{
    const float round = 12582912; /* 1.5 * 2^23: beside it is no place for a fraction */
    float q = x / scale;
    q = q > low ? q : low; /* also when it is NaN */
    q = q < high ? q : high;
    return q + round - round; /* saturated before it is rounded: the same, and exact */
}

QDQI_BOTH float
qdqi_fake_integer(float x, float scale, float low, float high)
{
    return qdqi_quantized(x, scale, low, high) * scale;
}

/*
 * Adding 2^23 times the distance of neighbours leaves no place for what lies between
 * them; below the smallest normal exponent that distance is constant.
 */
QDQI_BOTH float
qdqi_rounded(float x, float scale, float highest, int fraction_bits, int min_exponent)
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
    return qdqi_float_of_bits(qdqi_float_bits(q) | sign);
}

QDQI_BOTH float
qdqi_fake_float(float x, float scale, float highest, int fraction_bits,
                int min_exponent)
{
    return qdqi_rounded(x, scale, highest, fraction_bits, min_exponent) * scale;
}

/* The bits of a number of a floating format; it is finite. */
QDQI_BOTH uint8_t
qdqi_float_code(float q, int bits, int fraction_bits, int min_exponent)
{
    uint32_t all = qdqi_float_bits(q), sign = all >> 31, rest = all & 0x7fffffff;
    int exponent = (int)(rest >> 23) - 127;
    uint32_t unit = (uint32_t)(127 + fraction_bits - min_exponent) << 23;
    uint32_t code = (uint32_t)(qdqi_float_of_bits(rest) * qdqi_float_of_bits(unit));
    if (exponent >= min_exponent)
        code = (uint32_t)(exponent - min_exponent + 1) << fraction_bits |
               (rest & 0x7fffff) >> (23 - fraction_bits);
    return (uint8_t)(sign << (bits - 1) | code);
}

/* How an element is rounded: the format's row, with its bounds less a zero point. */
struct qdqi_rounding {
    float low, high;
    int fraction_bits; /* 0: integers */
    int min_exponent;
};

struct qdqi_rounding qdqi_rounding_of(enum qdqi_format format, int32_t zero_point);

QDQI_BOTH float
qdqi_fake_number(float x, float scale, struct qdqi_rounding r)
{
    return r.fraction_bits == 0
               ? qdqi_fake_integer(x, scale, r.low, r.high)
               : qdqi_fake_float(x, scale, r.high, r.fraction_bits, r.min_exponent);
}

/* How a tensor that is stored as [outer][channels][inner] is quantized. */
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
