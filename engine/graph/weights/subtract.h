/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loop of factorization: rows of a matrix, each times a number, are added to a panel
 * of lines. There is one variant for each generation of processors; the sums are built
 * in the order of the rows, so all variants that fuse multiplication and addition give
 * the same bits. Moments may be nearly singular, so this is double precision.
 */
#ifndef QDQI_GRAPH_WEIGHTS_SUBTRACT_H
#define QDQI_GRAPH_WEIGHTS_SUBTRACT_H

#include <stddef.h>

enum { QDQI_STEP_COLUMNS = 32 }; /* columns that are factorized in a step, at most */

/* The rows that are added: elements from first to end - 1 of each. */
struct qdqi_subtraction {
    const double *rows[QDQI_STEP_COLUMNS];
    size_t n, first, end;
};

/* Adds to each of the n_lines lines of `to`, `stride` elements apart, the sum over the
   rows r of by[line][r] * row r. */
void qdqi_subtract_panel(const struct qdqi_subtraction *u,
                         double by[][QDQI_STEP_COLUMNS], size_t n_lines, double *to,
                         size_t stride);

#endif
