/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an insertion of pairs, for the files of this folder. */
#ifndef QDQI_TRANSFORM_REWRITE_PAIRS_H
#define QDQI_TRANSFORM_REWRITE_PAIRS_H

#include "graph/edit/edit.h"
#include "numbers/arithmetic/params.h"
#include "plan/placement/plan.h"

/* The names of a tensor's scale and zero point; a typed pair has no zero point. */
struct qdqi_beside {
    const char *scale, *zero;
};

/* The names of a weight that is stored as integers; NULL: it is not yet. */
struct qdqi_stored_gates {
    const char *integers;
    struct qdqi_beside beside;
};

struct qdqi_pairs {
    const struct qdq_model *source;
    const struct qdq_plan *plan;
    const struct qdqi_scales *scales;
    struct qdqi_edit *edit;
    struct qdqi_arena *arena;
    const char **made; /* by activation: name of its dequantized tensor */
    const char *
        *made_weights; /* by weight, likewise; NULL: its layers read the integers */
    struct qdqi_stored_gates *gates; /* by weight: what an LSTM reads */
    /* name of an activation that all nodes read dequantized -> name of the float
       tensor */
    struct qdqi_map *raw;
    struct qdqi_map *dynamic; /* name of a tensor -> its struct dynamic */
    struct qdqi_map
        *stems; /* name of a tensor -> the beginning of names made from it */
    size_t n_stems;
    /* "activation in graph" -> name of what the pair in that branch of an If makes */
    struct qdqi_map *in_branches;
};

/* A tensor to quantize and its parameters. */
struct qdqi_quantized {
    const char *tensor;
    enum qdqi_dtype dtype; /* also the type of its scales */
    size_t rank;           /* rank and dims are set where there are blocks */
    const int64_t *dims;
    bool is_gates; /* whether the only block of an LSTM's inputs is no dimension */
    /* whether it has no zero points, all of which are 0: the type stands in an attribute (typed_pair.h),
       or is that of stored integers */
    bool is_typed;
    const struct qdqi_params *params;
};

/* Makes a node read a weight that is stored as integers. Returns false when out of memory. */
typedef bool (*qdqi_read_stored_fn)(struct qdqi_pairs *p, size_t node,
                                    const struct qdqi_quantized *q,
                                    const char *integers,
                                    const struct qdqi_beside *beside);

/* Returns a new name that is made from a tensor's; NULL when out of memory. */
const char *qdqi_pairs_name(struct qdqi_pairs *p, const char *tensor,
                            const char *suffix);

/* Adds scale and zero point of a tensor. Returns false when out of memory. */
bool qdqi_pairs_add_beside(struct qdqi_pairs *p, const struct qdqi_quantized *q,
                           struct qdqi_beside *ret);

/* Adds a weight whose integers are given: scale, zero point and the integers. Returns the
   name of the integers, or NULL when out of memory. */
const char *qdqi_pairs_store(struct qdqi_pairs *p, const struct qdqi_quantized *q,
                             struct qdqi_beside *ret);

#endif
