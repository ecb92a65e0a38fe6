/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The approximate squared errors of the elements of a block or a channel for many scales at
 * once. They are computed in float32 with vector instructions, a scale in each lane, and
 * come with a bound of their own error, so that a search computes the exact errors only of
 * the scales that can be the best.
 */
#ifndef QDQI_GRAPH_WEIGHTS_APPROXIMATE_H
#define QDQI_GRAPH_WEIGHTS_APPROXIMATE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    QDQI_APPROXIMATE_SCALES = 32, /* most scales at once */
    QDQI_APPROXIMATE_PAD = 8,     /* elements are padded to a multiple of it */
};

struct qdqi_approximate {
    const float *x; /* finite elements, and zeros behind them up to n */
    size_t n;       /* a multiple of QDQI_APPROXIMATE_PAD */
    float largest;  /* of all |x| */
    double norm;    /* the root of the sum of all squares, or a little more */
};

/* Scales, and the lowest and the highest integer minus the zero point of each. */
struct qdqi_approximate_scales {
    size_t n; /* 1 … QDQI_APPROXIMATE_SCALES */
    float scales[QDQI_APPROXIMATE_SCALES];
    float low[QDQI_APPROXIMATE_SCALES], high[QDQI_APPROXIMATE_SCALES];
};

/* Begins with n finite elements, which are borrowed. Zeros must follow them up to the next
   multiple of QDQI_APPROXIMATE_PAD. Returns false when their magnitude is one for which
   float32 has no squares. */
bool qdqi_approximate_init(struct qdqi_approximate *a, const float *x, size_t n);

/* Computes approximations of the squared errors that integers of each scale leave. No scale
   may be smaller than 2^-20 `largest`. */
void qdqi_approximate_errors(const struct qdqi_approximate *a,
                             const struct qdqi_approximate_scales *s, double *ret);

/* Returns an upper bound of the error whose approximation this is. */
double qdqi_approximate_most(const struct qdqi_approximate *a, double error);

/* Returns the largest approximation of an error that may be no more than `most`. */
double qdqi_approximate_limit(const struct qdqi_approximate *a, double most);

/* Returns a lower bound of the squared errors of all integers whose numbers lie between two
   numbers, low <= 0 <= high. */
double qdqi_approximate_beyond(const struct qdqi_approximate *a, double low,
                               double high);

#endif
