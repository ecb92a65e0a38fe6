/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/arithmetic/products.h"

#include "numbers/arithmetic/simd.h"

QDQI_FUSED

/* The rows of the result that belong to one strip of `a` are computed in three bands, so
   that their sums stay in registers. */
enum { STEP = QDQI_PRODUCTS_STEP, HIGH = 6, LAST = STEP - 2 * HIGH };

/* Fetches the result that will be added to while its products are summed: it seldom is in
   the cache. */
QDQI_LOOP void
prefetch(const float *to, size_t width, int high, int strips)
{
#pragma GCC unroll 6
    for (int i = 0; i < high; i++)
#pragma GCC unroll 4
        for (int j = 0; j < strips; j++)
            __builtin_prefetch(to + (size_t)i * width + j * STEP, 1);
}

typedef float floats8 __attribute__((vector_size(32), aligned(4)));

/* Adds `high` rows of one strip; `high` is a constant where this is inlined. */
QDQI_LOOP void
add_band(const float *a, const float *b, struct qdqi_runs runs, size_t width, float *to,
         int high)
{
    floats8 low[HIGH] = {0}, up[HIGH] = {0};
    const size_t gap = (runs.step - runs.rows) * STEP;
    prefetch(to, width, high, 1);
    for (size_t k = 0; k < runs.n; k++, a += gap, b += gap)
        for (size_t r = 0; r < runs.rows; r++, a += STEP, b += STEP) {
            floats8 first = *(const floats8 *)b, second = *(const floats8 *)(b + 8);
#pragma GCC unroll 6
            for (int i = 0; i < high; i++) {
                low[i] += a[i] * first;
                up[i] += a[i] * second;
            }
        }
#pragma GCC unroll 6
    for (int i = 0; i < high; i++, to += width) {
        *(floats8 *)to += low[i];
        *(floats8 *)(to + 8) += up[i];
    }
}

QDQI_LOOP void
add_loop(const float *a, const float *b, size_t stride, struct qdqi_runs runs,
         size_t width, float *to)
{
    for (size_t j = 0; j < width; j += STEP) {
        const float *column = b + j / STEP * stride;
        for (size_t i = 0; i < (a == b ? j + STEP : width); i += STEP) {
            const float *row = a + i / STEP * stride;
            float *at = to + i * width + j;
            add_band(row, column, runs, width, at, HIGH);
            add_band(row + HIGH, column, runs, width, at + HIGH * width, HIGH);
            add_band(row + 2 * HIGH, column, runs, width, at + 2 * HIGH * width, LAST);
        }
    }
}

QDQI_NARROW_VARIANTS(void, add,
                     (const float *a, const float *b, size_t stride,
                      struct qdqi_runs runs, size_t width, float *to),
                     (a, b, stride, runs, width, to))

#if defined(__x86_64__) && defined(__GNUC__)
typedef float floats16 __attribute__((vector_size(64), aligned(4)));

/* Adds `high` rows of n strips; both are constants where this is inlined. */
QDQI_AVX512 QDQI_LOOP void
add_wide_band(const float *a, const float *b, size_t stride, struct qdqi_runs runs,
              size_t width, float *to, int high, int n)
{
    floats16 sum[HIGH][QDQI_PRODUCTS_WIDE / STEP] = {0};
    const size_t gap = (runs.step - runs.rows) * STEP;
    prefetch(to, width, high, n);
    for (size_t k = 0; k < runs.n; k++, a += gap, b += gap)
        for (size_t r = 0; r < runs.rows; r++, a += STEP, b += STEP)
#pragma GCC unroll 6
            for (int i = 0; i < high; i++)
#pragma GCC unroll 4
                for (int j = 0; j < n; j++)
                    sum[i][j] += a[i] * *(const floats16 *)(b + (size_t)j * stride);
#pragma GCC unroll 6
    for (int i = 0; i < high; i++, to += width)
#pragma GCC unroll 4
        for (int j = 0; j < n; j++)
            *(floats16 *)(to + j * STEP) += sum[i][j];
}

/* Adds the rows of one strip of `a`. */
QDQI_AVX512 QDQI_LOOP void
add_wide(const float *a, const float *b, size_t stride, struct qdqi_runs runs,
         size_t width, float *to, int n)
{
    add_wide_band(a, b, stride, runs, width, to, HIGH, n);
    add_wide_band(a + HIGH, b, stride, runs, width, to + HIGH * width, HIGH, n);
    add_wide_band(a + 2 * HIGH, b, stride, runs, width, to + 2 * HIGH * width, LAST, n);
}

QDQI_AVX512 static void
add_avx512(const float *a, const float *b, size_t stride, struct qdqi_runs runs,
           size_t width, float *to)
{
    for (size_t i = 0; i < width; i += STEP) {
        size_t first = a == b ? i : 0;
        const float *row = a + i / STEP * stride, *columns = b + first / STEP * stride;
        float *at = to + i * width + first;
        switch ((width - first) / STEP) {
        case 1:
            add_wide(row, columns, stride, runs, width, at, 1);
            break;
        case 2:
            add_wide(row, columns, stride, runs, width, at, 2);
            break;
        case 3:
            add_wide(row, columns, stride, runs, width, at, 3);
            break;
        default:
            add_wide(row, columns, stride, runs, width, at, 4);
        }
    }
}
#else
#define add_avx512 add_plain
#endif

QDQI_DISPATCH(void, add,
              (const float *a, const float *b, size_t stride, struct qdqi_runs runs,
               size_t width, float *to),
              (a, b, stride, runs, width, to))

void
qdqi_products_add(const float *a, const float *b, size_t stride, struct qdqi_runs runs,
                  size_t width, float *to)
{
    add(a, b, stride, runs, width, to);
}
