/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The patterns of a model's layers: layers of the same operator, with the same attributes, sizes of constants and
 * surroundings, are one pattern and are in integers or in float together, because a runtime makes the same kernels of
 * them. The surroundings are the nodes within two edges; they are seen less exactly where there were more patterns than a search
 * can tell apart, in the steps of `ways` in patterns.c. Equal labels are found as B. Weisfeiler and A. Lehman refine colours
 * (1968).
 */
#ifndef QDQI_STAGES_FRONTIER_PATTERNS_H
#define QDQI_STAGES_FRONTIER_PATTERNS_H

#include "files/model/model.h"
#include "stages/frontier/pattern_search.h"

/* A layer that is no pattern's. */
#define QDQI_NO_PATTERN SIZE_MAX

/* The layers that a placement decides about. */
struct qdqi_placed_layers {
    size_t n;
    const size_t *nodes; /* by layer: its node in the graph */
    const double *costs; /* by layer: of its work, in any unit */
    const bool *
        ignored; /* by layer: it takes the same time in both forms, and is no pattern's */
};

struct qdqi_layer_patterns {
    size_t n;       /* 0: no layer has a pattern */
    size_t *of;     /* by layer: its pattern, or QDQI_NO_PATTERN */
    size_t *first;  /* by pattern: its first layer */
    size_t *sizes;  /* by pattern: its layers */
    double *shares; /* by pattern: of the work; they add up to 1 */
    size_t n_pairs;
    struct qdqi_pattern_pair *pairs;
};

/* Finds the patterns. The arena owns what *ret points to. NO_MEMORY. */
enum qdq_code qdqi_patterns_find(const struct qdqi_graph *graph,
                                 const struct qdqi_placed_layers *layers,
                                 struct qdqi_arena *arena,
                                 struct qdqi_layer_patterns *ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
