/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that are stored as integers for a layer, and in floating point for something else that reads
   them. */
#ifndef QDQI_PLAN_PLACEMENT_KEPT_WEIGHTS_H
#define QDQI_PLAN_PLACEMENT_KEPT_WEIGHTS_H

#include "plan/placement/lint.h"

/*
 * Returns whether the layer has a large weight that stays in floating point for another node, as the
 * decisions on all layers, by node, are now: for one that computes with it, or, with `gathers`, that
 * selects rows of it.
 */
bool qdqi_weight_is_kept(const struct qdqi_graph *graph,
                         struct qdq_layer *const *by_node,
                         const struct qdq_layer *layer, bool gathers);

/* The code of the warning about layers whose weight is stored twice for that reason, and what it
   says. */
#define QDQI_STORED_TWICE "weight_stored_twice"
#define QDQI_STORED_TWICE_TEXT                                                        \
    "other nodes read the weight in floating point, so that the file has it in both " \
    "forms and can be larger than the model: an entry of layers with "                \
    "\"quantize_weight\": false makes it smaller, and the layer slower"

/* Counts these layers of a plan. */
struct qdqi_layer_count qdqi_count_stored_twice(const struct qdq_plan *plan,
                                                const struct qdqi_graph *graph,
                                                struct qdq_layer *const *by_node);

#endif
