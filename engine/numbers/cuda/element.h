/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operation of the kernels on one element, one bin or one index: plain functions
 * that a test also compiles for the host and compares with the CPU's definitions (the
 * arithmetic of formats is numbers/arithmetic/format.h itself). C and C++.
 */
#ifndef QDQI_NUMBERS_CUDA_ELEMENT_H
#define QDQI_NUMBERS_CUDA_ELEMENT_H

#include "numbers/arithmetic/format.h"
#include "numbers/arithmetic/histogram.h"
#include "numbers/arithmetic/minmax.h"
#include "numbers/arithmetic/noise.h"

/* --- numbers ---------------------------------------------------------------- */

/* The two conversions use instructions of the device, which turn every NaN into the
   same one. */
QDQI_BOTH float
qdqi_cuda_widened(uint16_t half)
{
#ifdef __CUDA_ARCH__
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;
#else
    return qdqi_half_widened(half);
#endif
}

QDQI_BOTH uint16_t
qdqi_cuda_narrowed(float x)
{
#ifdef __CUDA_ARCH__
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    return half;
#else
    return qdqi_half_narrowed(x);
#endif
}

/* --- extremes (numbers/arithmetic/minmax.h) --------------------------------------------- */

/* Maps the bits of a float to an integer that compares as the float does. */
QDQI_BOTH int32_t
qdqi_cuda_key_of_bits(uint32_t bits)
{
    int32_t key = (int32_t)bits;
    return key ^ (int32_t)((uint32_t)(key >> 31) >> 1);
}

/* Does the same for the bits of a float16, which need not be widened for it. */
QDQI_BOTH int32_t
qdqi_cuda_key_of_half(uint16_t half)
{
    int32_t key = (int16_t)half;
    return key ^ (int32_t)((uint32_t)(key >> 31) >> 17);
}

/* Converts the key of a float16 to the key of the widened number. It uses integers,
   so that a NaN stays at its end of the order. */
QDQI_BOTH int32_t
qdqi_cuda_key_widened(int32_t key)
{
    uint16_t half = (uint16_t)(key ^ (int32_t)((uint32_t)(key >> 31) >> 17));
    return qdqi_cuda_key_of_bits(qdqi_float_bits(qdqi_half_widened(half)));
}

QDQI_BOTH int
qdqi_cuda_keys_finite(int32_t min, int32_t max)
{
    return min > qdqi_cuda_key_of_bits(0xff800000) &&
           max < qdqi_cuda_key_of_bits(0x7f800000);
}

/* Returns the bits of the largest |x|. The keys must be finite and not empty. */
QDQI_BOTH uint32_t
qdqi_cuda_amax_bits(int32_t min, int32_t max)
{
    uint32_t low = (uint32_t)qdqi_cuda_key_of_bits((uint32_t)min) & 0x7fffffff;
    uint32_t high = (uint32_t)qdqi_cuda_key_of_bits((uint32_t)max) & 0x7fffffff;
    return low > high ? low : high;
}

/* --- histograms (numbers/arithmetic/histogram.h) ---------------------------------------- */

enum {
    QDQI_CUDA_BINS_LOG2 = 11,
    QDQI_CUDA_MIN_EXPONENT = -126,
};

/* Returns the smallest exponent of a bin's width for which the magnitude lies in a
   bin. */
QDQI_BOTH int
qdqi_cuda_exponent_for(uint32_t amax_bits)
{
    int exponent = (int)(amax_bits >> 23) - 127 - (QDQI_CUDA_BINS_LOG2 - 1);
    return exponent > QDQI_CUDA_MIN_EXPONENT ? exponent : QDQI_CUDA_MIN_EXPONENT;
}

/* Returns 2^-exponent, which is a normal float32. */
QDQI_BOTH float
qdqi_cuda_per_width(int exponent)
{
    return qdqi_float_of_bits((uint32_t)(127 - exponent) << 23);
}

QDQI_BOTH uint32_t
qdqi_cuda_bin_of(float x, float per_width)
{
    float magnitude = qdqi_float_of_bits(qdqi_float_bits(x) & 0x7fffffff);
    return (uint32_t)(int32_t)(magnitude * per_width);
}

/* --- error sums (numbers/arithmetic/noise.h) -------------------------------------------- */

/* Adds one pair of elements. */
QDQI_BOTH void
qdqi_cuda_noise_add(struct qdqi_noise *s, float f, float q)
{
    double a = (double)f, e = a - (double)q;
    s->signal += a * a;
    s->noise += e * e;
}

QDQI_BOTH void
qdqi_cuda_noise_merge(struct qdqi_noise *s, const struct qdqi_noise *other)
{
    s->signal += other->signal;
    s->noise += other->noise;
}

/* --- indices ---------------------------------------------------------------- */

/* n elements, divided at the boundaries of 16-byte vectors. */
struct qdqi_cuda_span {
    size_t head, vectors, tail; /* numbers of elements, vectors and elements */
};

/* `address` is that of the first element: a multiple of its size, which is a power
   of 2. */
QDQI_BOTH struct qdqi_cuda_span
qdqi_cuda_span_of(uintptr_t address, size_t n, size_t size)
{
    struct qdqi_cuda_span s;
    size_t width = 16 / size;
    s.head = (size_t)(-address & 15) / size;
    s.head = s.head < n ? s.head : n;
    s.vectors = (n - s.head) / width;
    s.tail = n - s.head - s.vectors * width;
    return s;
}

/*
 * Division of numbers below 2^31 by d, as a multiplication: magic is
 * 2^32 * (2^shift - d) / d, rounded down, plus 1, with 2^shift the first power not
 * below d.
 */
struct qdqi_cuda_divider {
    uint32_t d, magic, shift;
};

QDQI_BOTH struct qdqi_cuda_divider
qdqi_cuda_divider_of(uint32_t d)
{
    struct qdqi_cuda_divider r = {d, 0, 0};
    while (((uint64_t)1 << r.shift) < d)
        r.shift++;
    r.magic = (uint32_t)(((((uint64_t)1 << r.shift) - d) << 32) / d + 1);
    return r;
}

QDQI_BOTH uint32_t
qdqi_cuda_divide(uint32_t n, struct qdqi_cuda_divider by)
{
    return (uint32_t)((((uint64_t)n * by.magic >> 32) + n) >> by.shift);
}

#endif
