/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loop of second moments: sums of products of columns, in one variant for each
 * level of number/simd.h.
 *
 * The variants that fuse multiplication and addition give the same bits, because each
 * sum is built in the order of the rows whatever the width of the registers. The variant
 * without (a processor older than 2013) rounds products, too: its sums differ by at most
 * 256 roundings of a float32, 2^-16 of the sum of magnitudes.
 */
#ifndef QDQI_NUMBERS_ARITHMETIC_PRODUCTS_H
#define QDQI_NUMBERS_ARITHMETIC_PRODUCTS_H

#include <stddef.h>

enum {
    QDQI_PRODUCTS_STEP = 16, /* columns of a strip; the width is a multiple of it, */
    QDQI_PRODUCTS_WIDE = 64, /* and at most this */
};

/* Rows: n runs of `rows` each, of which one begins `step` rows behind the one before. */
struct qdqi_runs {
    size_t n, rows, step;
};

/* Adds to to[i * width + j] the sum over the rows r of a[r][i] * b[r][j]. Columns come in
   strips, `stride` numbers apart: column i of row r is a[i / 16 * stride + r * 16 + i % 16].
   (Strips are read from one end to the other, and many of their rows are in the cache at a
   time; of rows a power of two apart few would be.) Where a and b are the same, the result
   is symmetric, and nothing is added below the diagonal's squares of 16 by 16. */
void qdqi_products_add(const float *a, const float *b, size_t stride,
                       struct qdqi_runs runs, size_t width, float *to);

#endif
