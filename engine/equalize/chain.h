/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layers can be equalized with which: a layer with a weight, what lies behind it,
 * and the next layer with one, where everything between passes a positive factor of a
 * channel on unchanged.
 */
#ifndef QDQI_EQUALIZE_CHAIN_H
#define QDQI_EQUALIZE_CHAIN_H

#include "equalize/weight.h"

enum { QDQI_MAX_BIASES = 4 };

struct qdqi_chain {
    size_t first, second; /* nodes; the second is n_nodes when there is none */
    struct qdqi_weight w1, w2;
    size_t channels; /* of what lies between */
    size_t block;    /* input channels of the second layer that one of them became */
    size_t n_biases; /* what is added on the way, one element a channel */
    struct qdqi_constant biases[QDQI_MAX_BIASES];
    const struct qdqi_tensor *bias_tensors[QDQI_MAX_BIASES];
    const char *reason; /* NULL: the two can be equalized */
};

/*
 * One chain for each node with a weight made of constants, in file order, also for those
 * that are to be left alone. NO_MEMORY.
 */
enum qdq_code qdqi_chains_find(const struct qdq_model *model, struct qdqi_arena *arena,
                               struct qdqi_chain **ret, size_t *ret_n,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
