/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loop of rounding: rows of a matrix, each times a number, are added to a panel
 * of outputs. There is one variant for each generation of processors; the sums are built
 * in the order of the rows, so all variants that fuse multiplication and addition give
 * the same bits.
 *
 * Numbers of all outputs of a panel lie side by side, [place][QDQI_PANEL], so that they are
 * worked on in one register.
 */
#ifndef QDQI_GRAPH_WEIGHTS_UPDATES_H
#define QDQI_GRAPH_WEIGHTS_UPDATES_H

#include <stddef.h>

enum {
    QDQI_PANEL = 64,   /* outputs that are worked on at once */
    QDQI_AT_ONCE = 64, /* rows that are added at once, at most */
};

/* The rows that are added: elements from first to end - 1 of each. */
struct qdqi_update {
    const float *rows[QDQI_AT_ONCE];
    size_t n, first, end;
};

/* Adds to each place i of `to`, and each of the first n_outputs outputs, the sum over the rows r
   of by[r][output] * rows[r][i]. Numbers of further outputs up to a multiple of 16 are added to,
   too; those of `by` must be finite. Many zeros in `by` save work. */
void qdqi_update_panel(const struct qdqi_update *u, float by[][QDQI_PANEL],
                       size_t n_outputs, float to[][QDQI_PANEL]);

#endif
