/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "number/products.h"

#include "number/simd.h"

/* Products and sums are fused, as number/simd.h says. */
#ifdef __clang__
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif

enum { HIGH = 4 }; /* rows of the result that are kept in registers */

typedef float floats8 __attribute__((vector_size(32), aligned(4)));

/* Adds HIGH rows of 16 columns of the result. The sums have names because the compiler
   keeps an array of them in memory. */
QDQI_LOOP void
add_16(const float *a, const float *b, size_t rows, size_t width, float *to)
{
    const size_t step = QDQI_PRODUCTS_STEP;
    floats8 s00 = {0}, s01 = {0}, s10 = {0}, s11 = {0};
    floats8 s20 = {0}, s21 = {0}, s30 = {0}, s31 = {0};
    for (size_t r = 0; r < rows; r++, a += step, b += step) {
        floats8 low = *(const floats8 *)b, high = *(const floats8 *)(b + 8);
        s00 += a[0] * low;
        s01 += a[0] * high;
        s10 += a[1] * low;
        s11 += a[1] * high;
        s20 += a[2] * low;
        s21 += a[2] * high;
        s30 += a[3] * low;
        s31 += a[3] * high;
    }
    *(floats8 *)to += s00;
    *(floats8 *)(to + 8) += s01;
    *(floats8 *)(to += width) += s10;
    *(floats8 *)(to + 8) += s11;
    *(floats8 *)(to += width) += s20;
    *(floats8 *)(to + 8) += s21;
    *(floats8 *)(to += width) += s30;
    *(floats8 *)(to + 8) += s31;
}

QDQI_LOOP void
add_loop(const float *a, const float *b, size_t stride, size_t rows, size_t width,
         float *to)
{
    const size_t step = QDQI_PRODUCTS_STEP;
    for (size_t j = 0; j < width; j += step)
        for (size_t i = 0; i < width; i += HIGH)
            add_16(a + i / step * stride + i % step, b + j / step * stride, rows, width,
                   to + i * width + j);
}

static void
add_plain(const float *a, const float *b, size_t stride, size_t rows, size_t width,
          float *to)
{
    add_loop(a, b, stride, rows, width, to);
}

#if defined(__x86_64__) && defined(__GNUC__)
typedef float floats16 __attribute__((vector_size(64), aligned(4)));

QDQI_AVX2 static void
add_avx2(const float *a, const float *b, size_t stride, size_t rows, size_t width,
         float *to)
{
    add_loop(a, b, stride, rows, width, to);
}

/* Adds HIGH rows of `n` strips; n is a constant where this is inlined. */
QDQI_AVX512 QDQI_LOOP void
add_wide(const float *a, const float *b, size_t stride, size_t rows, size_t width,
         float *to, int n)
{
    const size_t step = QDQI_PRODUCTS_STEP;
    floats16 sum[HIGH][QDQI_PRODUCTS_WIDE / 16] = {0};
    for (size_t r = 0; r < rows; r++, a += step, b += step)
#pragma GCC unroll 4
        for (int i = 0; i < HIGH; i++)
#pragma GCC unroll 4
            for (int j = 0; j < n; j++)
                sum[i][j] += a[i] * *(const floats16 *)(b + (size_t)j * stride);
#pragma GCC unroll 4
    for (int i = 0; i < HIGH; i++)
#pragma GCC unroll 4
        for (int j = 0; j < n; j++)
            *(floats16 *)(to + (size_t)i * width + j * 16) += sum[i][j];
}

QDQI_AVX512 static void
add_avx512(const float *a, const float *b, size_t stride, size_t rows, size_t width,
           float *to)
{
    const size_t step = QDQI_PRODUCTS_STEP;
    for (size_t i = 0; i < width; i += HIGH) {
        const float *from = a + i / step * stride + i % step;
        if (width == QDQI_PRODUCTS_WIDE)
            add_wide(from, b, stride, rows, width, to + i * width, 4);
        else
            for (size_t j = 0; j < width; j += step)
                add_wide(from, b + j / step * stride, stride, rows, width,
                         to + i * width + j, 1);
    }
}

static void (*const variants[QDQI_N_SIMD])(const float *, const float *, size_t, size_t,
                                           size_t,
                                           float *) = {add_plain, add_avx2, add_avx512};
#else
static void (*const variants[QDQI_N_SIMD])(const float *, const float *, size_t, size_t,
                                           size_t,
                                           float *) = {add_plain, add_plain, add_plain};
#endif

bool
qdqi_products_are_fused(void)
{
    return qdqi_simd() != QDQI_SIMD_PLAIN;
}

void
qdqi_products_add(const float *a, const float *b, size_t stride, size_t rows,
                  size_t width, float *to)
{
    variants[qdqi_simd()](a, b, stride, rows, width, to);
}
