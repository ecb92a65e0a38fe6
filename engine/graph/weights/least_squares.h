/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Least squares by normal equations: the weights of a layer that come nearest to given
 * outputs, in real numbers. C is factorized by Cholesky's method, in blocks of rows.
 */
#ifndef QDQI_GRAPH_WEIGHTS_LEAST_SQUARES_H
#define QDQI_GRAPH_WEIGHTS_LEAST_SQUARES_H

#include "ground/base/tasks.h"

#include <stdbool.h>

struct qdqi_least_squares {
    size_t k, outputs;
    /* [k][k]: C, symmetric and without damping; becomes its factor */
    double *c;
    double *sides;  /* [outputs][k]: the right sides, which become the solutions */
    double damping; /* each number on the diagonal grows by this share of it */
    const struct qdqi_tasks *tasks; /* NULL: the calling thread does it all */
};

/* Solves (C + damping) x = side for each output, with the same bits whatever the number of
   threads. *ret_is_solved is false, and the right sides are as they were, where C has no factor. */
enum qdq_code qdqi_least_squares(struct qdqi_least_squares *l, bool *ret_is_solved,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
