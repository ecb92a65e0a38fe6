/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake quantization of a number: the results of QuantizeLinear and DequantizeLinear for
 * each row of qdq/formats.h, as the ONNX operators define them (for floats with
 * saturate = 1).
 *
 *   integers  q = saturate(round_half_to_even(x / scale) + zero_point)
 *             x' = (q - zero_point) * scale
 *   floats    q = x / scale as the nearest float of the format, ties to even, saturated
 *             (infinity, too); -0 stays -0
 *             x' = q * scale
 *
 * All calculations are in float32. A float16 is first widened, which is exact, and x'
 * is rounded to float16, half to even. A NaN becomes the lowest integer, as in ONNX
 * Runtime; in float formats it stays a NaN with unspecified bits.
 *
 * The inline functions are the definition. The kernels of engine/numbers/cuda compile them for
 * the device, so that both give the same bits.
 */
#ifndef QDQI_NUMBERS_ARITHMETIC_FORMAT_H
#define QDQI_NUMBERS_ARITHMETIC_FORMAT_H

#include "ground/base/dtype.h"
#include "numbers/arithmetic/both.h"

enum qdqi_format {
#define QDQ_FORMAT(name, ...) QDQI_TO_##name,
#include "qdq/formats.h"
#undef QDQ_FORMAT
    QDQI_N_FORMATS
};

/* The type of a format's scales. */
enum qdqi_scale_type {
    QDQI_SCALES_FLOAT, /* that of the tensor */
    QDQI_SCALES_E8M0,  /* float8e8m0 */
    QDQI_SCALES_E4M3   /* float8e4m3fn, times a float32 for the whole tensor */
};

struct qdqi_format_row {
    const char *name;
    enum qdqi_dtype dtype; /* of an element */
    int bits;              /* of an element as it is stored */
    float lowest, highest;
    int fraction_bits; /* 0 for integer formats */
    int min_exponent;
    int opset; /* first opset whose QuantizeLinear has the format */
    int block; /* elements of its blocks where that is a part of the format; else 0 */
    enum qdqi_scale_type scales;
};

/* Returns the row of a format, or NULL when there is no such format. */
const struct qdqi_format_row *qdqi_format_row(int format);

/* Returns the format of integers that QuantizeLinear makes of such elements: that format, or where ONNX
   has no type for it the one of the wider type that holds it. */
enum qdqi_format qdqi_format_of_pairs(enum qdqi_format format);

/*
 * Returns the quantized integer of x minus the zero point, as a float. The scale is
 * positive and finite. `low` and `high` are the format's bounds minus the zero point,
 * so that rounding is exact. The result is never -0, because an integer cannot be.
 */
QDQI_BOTH float
qdqi_quantized(float x, float scale, float low, float high)
{
    /* 1.5 * 2^23: a float of this size has no fraction bits */
    const float round = 12582912;
    float q = x / scale;
    q = q > low ? q : low; /* a NaN becomes low */
    q = q < high ? q : high;
    /* saturating before rounding gives the same and is exact */
    return q + round - round;
}

QDQI_BOTH float
qdqi_fake_integer(float x, float scale, float low, float high)
{
    return qdqi_quantized(x, scale, low, high) * scale;
}

/*
 * Returns x / scale rounded to a float format. Adding 2^23 times the distance between
 * neighbouring numbers of the format removes all bits between them. Below the smallest
 * normal exponent that distance is constant.
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

/* Returns the bits of a finite number in a float format. */
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

/* Returns the number that the bits of a float format stand for, which is finite. */
QDQI_BOTH float
qdqi_float_number(uint32_t code, int bits, int fraction_bits, int min_exponent)
{
    uint32_t sign = code >> (bits - 1) & 1, rest = code & ((1u << (bits - 1)) - 1);
    uint32_t exponent = rest >> fraction_bits;
    uint32_t fraction = rest & ((1u << fraction_bits) - 1);
    /* the distance of neighbours, times as many as there are */
    int unit = (exponent ? (int)exponent - 1 : 0) + min_exponent - fraction_bits;
    float n = (float)(exponent ? fraction | 1u << fraction_bits : fraction);
    float x = n * qdqi_float_of_bits((uint32_t)(unit + 127) << 23);
    return qdqi_float_of_bits(qdqi_float_bits(x) | sign << 31);
}

/* The rounding of an element: members of the format's row, with the bounds minus the
   zero point. */
struct qdqi_rounding {
    float low, high;
    int fraction_bits; /* 0 for integer formats */
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

/* The quantization of a tensor that is stored as [outer][channels][inner]. */
struct qdqi_grid {
    enum qdqi_format format;
    size_t outer, channels, inner; /* channels is 1 for one scale per tensor */
    const float *scales;           /* one for each channel, positive and finite */
    /* one for each channel, in the format; NULL: all are 0, as they must be in float
       formats */
    const int32_t *zero_points;
};

#endif
