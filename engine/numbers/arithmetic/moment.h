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
#ifndef QDQI_NUMBERS_ARITHMETIC_MOMENT_H
#define QDQI_NUMBERS_ARITHMETIC_MOMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    QDQI_MOMENT_ROWS = 256,
    /* A row that is longer has one moment for each of as few blocks as have at most
       QDQI_MOMENT_BLOCK elements: the products of elements of different blocks count as
       0. */
    QDQI_MOMENT_WHOLE = 4608,
    QDQI_MOMENT_BLOCK = 2304,
};

struct qdqi_moment {
    size_t k;     /* elements of a row */
    size_t block; /* elements of a block, of which the last may have fewer */
    size_t tile;  /* rows and columns of a tile: a multiple of 16, at most 64 */
    uint64_t rows;
    double *sums; /* k of them */
    /* Sums of products: of each block the tiles on and above the diagonal, row of tiles
       by row of tiles, [tile][tile] each. Elements behind the block's end are 0. All
       blocks have room for as many tiles as the first. */
    float *products;
    /* Rows that are to be added: [strip][QDQI_MOMENT_ROWS][QDQI_PRODUCTS_STEP]. A tile has
       as many strips as its columns need. NULL while none are taken in. */
    float *pending;
    bool *is_taken; /* by pending row: whether it is finite */
    size_t n_pending;
};

/* Returns a number with the highest bit set if x is a NaN or an infinity. */
static inline uint32_t
qdqi_moment_mark(float x)
{
    union {
        float x;
        uint32_t bits;
    } as = {x};
    return (as.bits & 0x7fffffff) + 0x00800000;
}

/* Allocates; false when out of memory. The caller ends it by qdqi_moment_fini(). */
bool qdqi_moment_init(struct qdqi_moment *m, size_t k);
void qdqi_moment_fini(struct qdqi_moment *m);

/* Returns the elements of `products` that a moment of such rows has. */
size_t qdqi_moment_products(size_t k);
/* Returns the bytes that it takes while rows are taken in. */
uint64_t qdqi_moment_bytes(size_t k);

/* Forgets all rows. */
void qdqi_moment_reset(struct qdqi_moment *m);

/* Allocates `pending`, if that was not done; false when out of memory. */
bool qdqi_moment_begin(struct qdqi_moment *m);
/* Frees `pending`. */
void qdqi_moment_end(struct qdqi_moment *m);

/* Writes a row of k elements to place `at` of the pending ones: from n_pending to
   QDQI_MOMENT_ROWS - 1. Threads may write different places at the same time. */
void qdqi_moment_put(struct qdqi_moment *m, size_t at, const float *row);
/* Returns where element i of pending row `at` may be written instead; that of the next row
   is QDQI_PRODUCTS_STEP numbers behind it. */
float *qdqi_moment_element(const struct qdqi_moment *m, size_t i, size_t at);
/* Must follow when n rows from place `at` on were written so. They are searched for numbers
   that are not finite unless the caller knows that there are none. */
void qdqi_moment_check(struct qdqi_moment *m, size_t at, size_t n, bool is_finite);
/* Takes in the next n rows, which were written. Returns whether all rows must be added
   before others are written. */
bool qdqi_moment_push(struct qdqi_moment *m, size_t n);

/* Adds the pending rows, in parts that may run at the same time: parts 0 to
   qdqi_moment_parts() - 1, then the end. */
size_t qdqi_moment_parts(const struct qdqi_moment *m);
void qdqi_moment_add_part(struct qdqi_moment *m, size_t part);
void qdqi_moment_added(struct qdqi_moment *m);

/* Returns where the sum of products of elements i <= j of the same block is kept. */
float *qdqi_moment_product(const struct qdqi_moment *m, size_t i, size_t j);
/* Adds n numbers to the sums of products of element i with elements j to j + n - 1 of the
   same block; i <= j. */
void qdqi_moment_add_products(const struct qdqi_moment *m, size_t i, size_t j, size_t n,
                              const float *products);

/* Block `block` as a dense symmetric matrix: E[x x^T], less E[x] E[x]^T where `centred`. */
struct qdqi_moment_matrix {
    const struct qdqi_moment *m;
    size_t block;
    bool centred;
    const size_t *places; /* by element of the block: its row and its column */
    size_t ld;            /* elements from one row to the next */
    double *to;           /* or, where it is NULL, */
    float *to_floats;
    double shrunk; /* the share that is taken from all products of two elements */
};

/* Returns the rows of the block's matrix. */
size_t qdqi_moment_block_size(const struct qdqi_moment *m, size_t block);
/* Writes part i of a matrix; parts 0 to qdqi_moment_matrix_parts() - 1 may be written at
   the same time. */
size_t qdqi_moment_matrix_parts(const struct qdqi_moment *m);
void qdqi_moment_write(const struct qdqi_moment_matrix *to, size_t i);
/* Makes it the moment of rows whose element i is multiplied by factors[i]. */
void qdqi_moment_scale(struct qdqi_moment *m, const double *factors);
/* Returns the share of the products of two elements that is noise if so many of the rows are independent
   of each other and normal: what `shrunk` should be. The moment has one block. */
double qdqi_moment_noise(const struct qdqi_moment *m, bool centred, double independent);
/* Writes the diagonals of all blocks: k numbers. */
void qdqi_moment_diagonal(const struct qdqi_moment *m, bool centred, double *to);

#endif
