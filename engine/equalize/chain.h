/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds pairs of layers that can be equalized: a layer with a weight and the next layer
 * with a weight, where every operator between them passes a positive factor of a
 * channel through unchanged.
 */
#ifndef QDQI_EQUALIZE_CHAIN_H
#define QDQI_EQUALIZE_CHAIN_H

#include "equalize/weight.h"

enum { QDQI_MAX_BIASES = 4 };

struct qdqi_chain {
    size_t first, second; /* node indices; second is n_nodes when there is none */
    struct qdqi_weight w1, w2;
    size_t channels; /* number of channels of the tensors between the layers */
    size_t block;    /* input channels of the second layer for each of these channels */
    /* tensors that are added between the layers, one element for each channel */
    size_t n_biases;
    struct qdqi_constant biases[QDQI_MAX_BIASES];
    const struct qdqi_tensor *bias_tensors[QDQI_MAX_BIASES];
    const char *reason; /* NULL: the two can be equalized */
};

/* Makes one chain for each node with a constant weight, in file order, also for
   those that cannot be equalized; `reason` says why. NO_MEMORY. */
enum qdq_code qdqi_chains_find(const struct qdq_model *model, struct qdqi_arena *arena,
                               struct qdqi_chain **ret, size_t *ret_n,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
