/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "number/half.h"

#include "number/simd.h"

#include <math.h>
#include <string.h>

/* Bits of a float32: its exponent's place, and what a half's lacks (127 - 15). */
static const uint32_t EXPONENT = 0x1fu << 23, BIAS = 112u << 23;

/*
 * The exponent moves up, one that stands for infinity and NaN once more. A subnormal
 * half gets an exponent as if it were normal, and what that adds is taken off again.
 */
static inline float
float_of_half(uint16_t half)
{
    uint32_t bits = (uint32_t)(half & 0x7fff) << 13, exponent = bits & EXPONENT;
    uint32_t one = BIAS + (1u << 23);
    float value, extra;
    bits += BIAS + (exponent == EXPONENT ? BIAS : 0) + (exponent == 0 ? 1u << 23 : 0);
    one = exponent == 0 ? one : 0;
    memcpy(&value, &bits, sizeof value);
    memcpy(&extra, &one, sizeof extra);
    value -= extra;
    memcpy(&bits, &value, sizeof bits);
    bits |= (uint32_t)(half & 0x8000) << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

QDQI_LOOP void
halves_loop(float *to, const unsigned char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, from + i * sizeof half, sizeof half);
        to[i] = float_of_half(half);
    }
}

QDQI_AVX2 static void
halves_avx2(float *to, const unsigned char *from, size_t n)
{
    halves_loop(to, from, n);
}

void
qdqi_floats_of_halves(float *to, const void *from, size_t n)
{
    if (qdqi_has_avx2())
        halves_avx2(to, from, n);
    else
        halves_loop(to, from, n);
}

void
qdqi_load_floats(float *to, enum qdqi_dtype dtype, const void *from, size_t n)
{
    if (dtype == QDQI_FLOAT16)
        qdqi_floats_of_halves(to, from, n);
    else if (n > 0)
        memcpy(to, from, n * sizeof *to);
}

float
qdqi_normal_half(double x)
{
    const double least = 0x1p-14, largest = 65504;
    if (x <= least)
        return (float)least;
    if (x >= largest)
        return (float)largest;
    double unit = ldexp(1, ilogb(x) - 10); /* of the last place */
    return (float)(nearbyint(x / unit) * unit);
}

uint16_t
qdqi_half_bits(float normal_half)
{
    uint32_t bits;
    memcpy(&bits, &normal_half, sizeof bits);
    return (uint16_t)((bits - BIAS) >> 13);
}
