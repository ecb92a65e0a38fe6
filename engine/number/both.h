/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that are compiled for the host and, by nvcc, for the device: one arithmetic
 * in one place. C and C++. Here: bits of numbers, and IEEE 754 binary16, exact to
 * float32 and half to even back; NaN stays NaN.
 */
#ifndef QDQI_BOTH_H
#define QDQI_BOTH_H

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

QDQI_BOTH float
qdqi_half_widened(uint16_t half)
{
    uint32_t sign = (half & 0x8000u) << 16, rest = half & 0x7fffu;
    if (rest >= 0x7c00) /* infinity, NaN */
        return qdqi_float_of_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest < 0x400) /* subnormal, zero: a multiple of 2^-24 */
        return qdqi_float_of_bits(sign | qdqi_float_bits((float)rest * 0x1p-24f));
    return qdqi_float_of_bits(sign | ((rest << 13) + (112u << 23)));
}

QDQI_BOTH uint16_t
qdqi_half_narrowed(float x)
{
    uint32_t bits = qdqi_float_bits(x), rest = bits & 0x7fffffff;
    uint32_t sign = bits >> 16 & 0x8000;
    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (rest >= 0x477ff000) /* from 65520 on */
        return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000) { /* beside 1/2 is place for multiples of 2^-24 alone */
        uint32_t rounded = qdqi_float_bits(qdqi_float_of_bits(rest) + 0.5f);
        return (uint16_t)(sign | (rounded - 0x3f000000));
    }
    rest += 0xfff + (rest >> 13 & 1);
    return (uint16_t)(sign | (rest - (112u << 23)) >> 13);
}

#endif
