/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of layers that can be equalized: a layer with a weight, and the only layer that reads
   the activation that it makes. */
#ifndef QDQI_TRANSFORM_EQUALIZE_PAIRS_H
#define QDQI_TRANSFORM_EQUALIZE_PAIRS_H

#include "transform/equalize/chain.h"

struct qdqi_pair {
    size_t first, second; /* node indices; second is n_nodes when there is none */
    const struct qdqi_chain *chain; /* between the two; NULL: they are left alone */
    const char *reason;             /* why they are */
};

/* Makes one pair for each node with a constant weight, in file order, also for those that
   cannot be equalized. NO_MEMORY. */
enum qdq_code qdqi_pairs_find(const struct qdq_model *model, struct qdqi_arena *arena,
                              struct qdqi_pair **ret, size_t *ret_n,
                              struct qdq_error *err) QDQ_MUST_CHECK;

#endif
