/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a model in which channels of weights are multiplied by factors. */
#ifndef QDQI_EQUALIZE_RESCALE_H
#define QDQI_EQUALIZE_RESCALE_H

#include "equalize/weight.h"

/* A tensor with new elements, which are computed while the copy is written. */
struct qdqi_rescaled {
    struct qdqi_weight weight; /* a bias is a weight with one input channel */
    const double *out, *in;    /* by output and by input channel */
};

/* Returns the change of a tensor with one element for each channel: each is multiplied by
   its factor. */
struct qdqi_rescaled qdqi_rescaled_bias(const struct qdqi_tensor *tensor,
                                        const struct qdqi_constant *constant,
                                        const double *factors);

/*
 * Makes the copy. Its bytes lie in shared memory of the size of the file (not on the heap)
 * and are freed with it; names, shapes and the graph are the source's. IO, NO_MEMORY.
 */
enum qdq_code qdqi_rescale(const struct qdq_model *source,
                           const struct qdqi_rescaled *changes, size_t n,
                           struct qdqi_arena *arena, struct qdq_model **ret,
                           struct qdq_error *err) QDQ_MUST_CHECK;

#endif
