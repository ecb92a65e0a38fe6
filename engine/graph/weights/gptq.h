/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounding that compensates errors: the integers of a weight are chosen so that the
 * squared error of the layer's output, tr((W - Q) C (W - Q)^T), is small, where C is the
 * second moment of its input. (GPTQ, Frantar et al. 2022, in the order of descending
 * diagonal; with few bits then coordinate descent and least-squares scales.)
 */
#ifndef QDQI_GRAPH_WEIGHTS_GPTQ_H
#define QDQI_GRAPH_WEIGHTS_GPTQ_H

#include "ground/base/tasks.h"
#include "numbers/arithmetic/moment.h"
#include "qdq/error.h"

/*
 * The weight of one group of a layer: `outputs` rows of moment->k elements. Element
 * (n, i) of every array that goes by element is at n * row + i * column.
 */
struct qdqi_gptq {
    size_t outputs, row, column;
    const float *weight;
    const uint32_t *scale_of; /* by element: index of its scale */
    float *scales;
    int32_t *zero_points;    /* by scale; NULL: all 0; `joint` may change them */
    int32_t lowest, highest; /* stored integers */
    const struct qdqi_moment *moment;
    bool centred; /* a bias takes the mean of the error, so C is the covariance */
    /* Few bits: scales may change, where `own_scales` (no two outputs share one), and
       the integers are refined. */
    bool refine, own_scales;
    bool joint; /* `refine` chooses scales and integers together, where few share one */
    bool is_signed;                 /* scales may be negative */
    double shrunk;                  /* of the moment (qdqi_moment_matrix) */
    int16_t *integers;              /* by element: the result, as it is stored */
    const struct qdqi_tasks *tasks; /* threads; NULL: the calling one does it all */
};

/* The nearest integers. */
void qdqi_round_nearest(const struct qdqi_gptq *r);

/* The nearest integers, for the scales with the least error that the moment's diagonal knows
   of, where `own_scales`. NO_MEMORY. */
enum qdq_code qdqi_round_scaled(const struct qdqi_gptq *r,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Rounds, with the same bits whatever the number of threads. *ret_why is NULL, or the reason
   why the moment is not usable; then the integers are the nearest ones. NO_MEMORY. */
enum qdq_code qdqi_round_gptq(const struct qdqi_gptq *r, const char **ret_why,
                              struct qdq_error *err) QDQ_MUST_CHECK;

#endif
