/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loop of second moments: sums of products of columns. There is one variant for
 * each generation of processors, in one table; the first that runs here is used.
 *
 * The variants that fuse multiplication and addition give the same bits, because each
 * sum is built in the order of the rows whatever the width of the registers. The variant
 * without (a processor older than 2013) rounds products, too: its sums differ by at most
 * 256 roundings of a float32, 2^-16 of the sum of magnitudes.
 */
#ifndef QDQI_NUMBER_PRODUCTS_H
#define QDQI_NUMBER_PRODUCTS_H

#include <stdbool.h>
#include <stddef.h>

enum {
    QDQI_PRODUCTS_STEP = 16, /* the width is a multiple of it, */
    QDQI_PRODUCTS_WIDE = 64, /* and at most this */
};

struct qdqi_products {
    const char *name;
    bool is_fused;
    bool (*runs_here)(void);
    /* Adds to to[i * width + j] the sum over the rows r of a[r * width + i] *
       b[r * width + j]. */
    void (*add)(const float *a, const float *b, size_t rows, size_t width, float *to);
};

/* Returns variant i of the table, or NULL behind the last. */
const struct qdqi_products *qdqi_products_variant(size_t i);

/* Returns the variant for this processor. */
const struct qdqi_products *qdqi_products_here(void);

#endif
