/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a model in which the channels of activations are multiplied by factors. */
#ifndef QDQI_TRANSFORM_EQUALIZE_RESCALE_H
#define QDQI_TRANSFORM_EQUALIZE_RESCALE_H

#include "transform/equalize/chain.h"

struct qdqi_scaling {
    const struct qdqi_chain *chain; /* one without a reason against it */
    const double *factors;          /* by channel; powers of two */
};

/*
 * Makes the copy, which computes the same function. Its bytes lie in shared memory of the size
 * of the file (not on the heap) and are freed with it; names, shapes and the graph are the
 * source's, except for the Muls of chains that are `is_multiplied`. IO, NO_MEMORY.
 */
enum qdq_code qdqi_rescale(const struct qdq_model *source,
                           const struct qdqi_scaling *scalings, size_t n,
                           struct qdqi_arena *arena, struct qdq_model **ret,
                           struct qdq_error *err) QDQ_MUST_CHECK;

#endif
