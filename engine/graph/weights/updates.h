/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loop of rounding: rows of a matrix, each times a number, are added to a panel
 * of outputs. There is one variant for each generation of processors; the sums are built
 * in the order of the rows, so all variants that fuse multiplication and addition give
 * the same bits.
 */
#ifndef QDQI_GRAPH_WEIGHTS_UPDATES_H
#define QDQI_GRAPH_WEIGHTS_UPDATES_H

#include <stddef.h>

enum {
    QDQI_PANEL = 64,   /* outputs that are worked on at once */
    QDQI_AT_ONCE = 32, /* rows that are added at once, at most */
};

/* The rows that are added: elements from first to end - 1 of each. */
struct qdqi_update {
    const double *rows[QDQI_AT_ONCE];
    size_t n, first, end;
};

/* Adds to each of the n_outputs lines of `to`, `stride` elements apart, the sum over the
   rows r of by[line][r] * row r. */
void qdqi_update_panel(const struct qdqi_update *u, double by[][QDQI_AT_ONCE],
                       size_t n_outputs, double *to, size_t stride);

/* Does the same for one line, where most of the numbers are 0. */
void qdqi_update_line(const struct qdqi_update *u, const double *by, double *to);

#endif
