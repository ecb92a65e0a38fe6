/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mean and the second moment of a layer's input: E[x] and E[x x^T], where x is what
 * one output of the layer is computed from (a row of a MatMul's input, a patch of a
 * Conv's). Rounding that compensates errors and the correction of biases need nothing
 * else of the data.
 *
 * Rows are collected until QDQI_MOMENT_ROWS are there and then added at once, so the
 * sums do not depend on how samples were batched. A row with a NaN or an infinity is
 * left out.
 */
#ifndef QDQI_NUMBER_MOMENT_H
#define QDQI_NUMBER_MOMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    QDQI_MOMENT_ROWS = 256,
    /* A row that is longer has one moment for each block of so many elements: the
       products of elements of different blocks count as 0. */
    QDQI_MOMENT_WHOLE = 2304,
    QDQI_MOMENT_BLOCK = 1152,
};

struct qdqi_moment {
    size_t k;     /* elements of a row */
    size_t block; /* elements of a block; k where there is one */
    uint64_t rows;
    double *sums; /* k of them */
    /* By block: the sums of products, [block][block], of which those above and on the
       diagonal are set. The last block may be smaller; its rows keep that stride. */
    float *products;
    float *pending; /* [QDQI_MOMENT_ROWS][k] */
    size_t n_pending;
};

/* Allocates; false when out of memory. The caller ends it by qdqi_moment_fini(). */
bool qdqi_moment_init(struct qdqi_moment *m, size_t k);
void qdqi_moment_fini(struct qdqi_moment *m);

/* Returns the bytes that a moment of such rows takes. */
uint64_t qdqi_moment_bytes(size_t k);

/* Returns where the next row is to be written: k elements. There is room. */
float *qdqi_moment_next(struct qdqi_moment *m);
/* Takes in the row that was written there. Returns whether all rows must be added
   before the next one is asked for. */
bool qdqi_moment_push(struct qdqi_moment *m);

/* Adds the pending rows, in parts that may run at the same time: parts 0 to
   qdqi_moment_parts() - 1, then the end. */
size_t qdqi_moment_parts(const struct qdqi_moment *m);
void qdqi_moment_add_part(struct qdqi_moment *m, size_t part);
void qdqi_moment_added(struct qdqi_moment *m);

/* Writes block `b` as a dense symmetric matrix of *ret_n rows: E[x x^T], less
   E[x] E[x]^T where `centred`. `to` has room for block * block. */
void qdqi_moment_matrix(const struct qdqi_moment *m, size_t b, bool centred, double *to,
                        size_t *ret_n);

#endif
