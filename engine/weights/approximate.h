/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The approximate squared error of a few elements for many scales at once. It is computed
 * in float32 with vector instructions, and comes with a bound of its own error, so that a
 * search computes the exact error only of the scales that can be the best.
 */
#ifndef QDQI_WEIGHTS_APPROXIMATE_H
#define QDQI_WEIGHTS_APPROXIMATE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    QDQI_APPROXIMATE_MAX = 256,  /* most elements */
    QDQI_APPROXIMATE_LANES = 16, /* the number of elements is padded to a multiple */
};

/* Elements, with zeros behind them up to the next multiple of QDQI_APPROXIMATE_LANES. */
struct qdqi_approximate {
    size_t n;      /* with the zeros */
    float largest; /* of all |x| */
    float x[QDQI_APPROXIMATE_MAX];
};

/* Copies n <= QDQI_APPROXIMATE_MAX finite elements. Returns false when their magnitude is
   one for which float32 has no squares. */
bool qdqi_approximate_init(struct qdqi_approximate *a, const float *x, size_t n);

/* A scale, and the lowest and the highest integer minus the zero point. */
struct qdqi_approximate_scale {
    float scale, low, high;
};

/* Computes lower bounds and upper bounds of the squared errors that integers of each scale
   leave; low <= 0 <= high. */
void qdqi_approximate_errors(const struct qdqi_approximate *a,
                             const struct qdqi_approximate_scale *scales, size_t n,
                             double *ret_low, double *ret_high);

#endif
