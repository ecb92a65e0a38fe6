/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "number/products.h"

#include "number/simd.h"

enum { HIGH = 4 }; /* rows of the result that are kept in registers */

typedef float floats8 __attribute__((vector_size(32), aligned(4)));

/* Adds HIGH rows of 16 columns of the result. The sums have names because the compiler
   keeps an array of them in memory. */
QDQI_LOOP void
add_16(const float *a, const float *b, size_t rows, size_t width, float *to)
{
    floats8 s00 = {0}, s01 = {0}, s10 = {0}, s11 = {0};
    floats8 s20 = {0}, s21 = {0}, s30 = {0}, s31 = {0};
    for (size_t r = 0; r < rows; r++, a += width, b += width) {
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
add_loop(const float *a, const float *b, size_t rows, size_t width, float *to)
{
    for (size_t i = 0; i < width; i += HIGH)
        for (size_t j = 0; j < width; j += 16)
            add_16(a + i, b + j, rows, width, to + i * width + j);
}

static void
add_plain(const float *a, const float *b, size_t rows, size_t width, float *to)
{
    add_loop(a, b, rows, width, to);
}

static bool
runs_everywhere(void)
{
    return true;
}

#if defined(__x86_64__) && defined(__GNUC__)
typedef float floats16 __attribute__((vector_size(64), aligned(4)));

__attribute__((target("avx2,fma"))) static void
add_avx2(const float *a, const float *b, size_t rows, size_t width, float *to)
{
    add_loop(a, b, rows, width, to);
}

static bool
runs_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* Adds HIGH rows of `n` * 16 columns; n is a constant where this is inlined. */
__attribute__((target("avx512f"), always_inline)) static inline void
add_wide(const float *a, const float *b, size_t rows, size_t width, float *to, int n)
{
    floats16 sum[HIGH][QDQI_PRODUCTS_WIDE / 16] = {0};
    for (size_t r = 0; r < rows; r++, a += width, b += width)
#pragma GCC unroll 4
        for (int i = 0; i < HIGH; i++)
#pragma GCC unroll 4
            for (int j = 0; j < n; j++)
                sum[i][j] += a[i] * *(const floats16 *)(b + j * 16);
#pragma GCC unroll 4
    for (int i = 0; i < HIGH; i++)
#pragma GCC unroll 4
        for (int j = 0; j < n; j++)
            *(floats16 *)(to + (size_t)i * width + j * 16) += sum[i][j];
}

__attribute__((target("avx512f"))) static void
add_avx512(const float *a, const float *b, size_t rows, size_t width, float *to)
{
    for (size_t i = 0; i < width; i += HIGH)
        if (width == QDQI_PRODUCTS_WIDE)
            add_wide(a + i, b, rows, width, to + i * width, 4);
        else
            for (size_t j = 0; j < width; j += 16)
                add_wide(a + i, b + j, rows, width, to + i * width + j, 1);
}

static bool
runs_avx512(void)
{
    return __builtin_cpu_supports("avx512f");
}
#endif

static const struct qdqi_products variants[] = {
#if defined(__x86_64__) && defined(__GNUC__)
    {"avx512", true, runs_avx512, add_avx512},
    {"avx2", true, runs_avx2, add_avx2},
#endif
    {"plain", false, runs_everywhere, add_plain},
};

const struct qdqi_products *
qdqi_products_variant(size_t i)
{
    return i < sizeof variants / sizeof *variants ? &variants[i] : NULL;
}

const struct qdqi_products *
qdqi_products_here(void)
{
    const struct qdqi_products *v = variants;
    while (!v->runs_here())
        v++;
    return v;
}
