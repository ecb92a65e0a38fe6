/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inline functions that are compiled for the host and, by nvcc, for the device, so that
 * both compute the same. C and C++. This file has the bits of numbers and the
 * conversion between float32 and float16 (IEEE 754 binary16). Widening is exact,
 * narrowing rounds half to even, and a NaN stays a NaN.
 */
#ifndef QDQI_NUMBERS_ARITHMETIC_BOTH_H
#define QDQI_NUMBERS_ARITHMETIC_BOTH_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define QDQI_BOTH static __host__ __device__ __forceinline__
#else
#define QDQI_BOTH static inline
#endif

QDQI_BOTH uint32_t
qdqi_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

QDQI_BOTH float
qdqi_float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns element i of float32 data at any alignment. */
QDQI_BOTH float
qdqi_float_at(const void *data, size_t i)
{
    float x;
    memcpy(&x, (const char *)data + i * sizeof x, sizeof x);
    return x;
}

/*
 * Converts a float16 to float32 without branches, so that loops vectorize. The exponent
 * grows by 112 (127 - 15); that of infinity and NaN, which is the largest, grows by 112
 * once more. A subnormal number gets an exponent as if it were normal, and the excess
 * is subtracted. That calculation is done only for subnormal numbers, so that a NaN
 * keeps its bits.
 */
QDQI_BOTH float
qdqi_half_widened(uint16_t half)
{
    const uint32_t field = 0x1fu << 23, up = 112u << 23, unit = 1u << 23;
    uint32_t bits = (uint32_t)(half & 0x7fff) << 13, exponent = bits & field;
    uint32_t normal = bits + up + (exponent == field ? up : 0);
    uint32_t subnormal = qdqi_float_bits(qdqi_float_of_bits(bits + up + unit) -
                                         qdqi_float_of_bits(up + unit));
    bits = exponent == 0 ? subnormal : normal;
    return qdqi_float_of_bits(bits | (uint32_t)(half & 0x8000) << 16);
}

QDQI_BOTH uint16_t
qdqi_half_narrowed(float x)
{
    uint32_t bits = qdqi_float_bits(x), rest = bits & 0x7fffffff;
    uint32_t sign = bits >> 16 & 0x8000;
    /* adding 1/2 leaves only bits for multiples of 2^-24 */
    uint32_t subnormal = qdqi_float_bits(qdqi_float_of_bits(rest) + 0.5f) - 0x3f000000;
    uint32_t half = (rest + 0xfff + (rest >> 13 & 1) - (112u << 23)) >> 13;
    half = rest < 0x38800000 ? subnormal : half;
    half = rest >= 0x477ff000 ? 0x7c00 : half; /* 65520 and above round to infinity */
    half = rest > 0x7f800000 ? 0x7e00 : half;
    return (uint16_t)(sign | half);
}

#endif
