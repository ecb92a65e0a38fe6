/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats of each layer's weight and activations. The entry that decides a layer may
 * state some; the spec states the others. A weight has one format for all its layers, and a
 * tensor one for all its pairs: what an entry states precedes what the spec states for all,
 * and entries that state different formats of one tensor are an error that names both.
 */
#ifndef QDQI_PLAN_PLACEMENT_LAYER_FORMATS_H
#define QDQI_PLAN_PLACEMENT_LAYER_FORMATS_H

#include "plan/placement/planner.h"

/* Finds the formats of all nodes, whose entries are selected. INVALID_SPEC and CASE_FAILED
   when entries contradict each other about a shared weight, NO_MEMORY. */
enum qdq_code qdqi_layer_formats_begin(struct planner *p,
                                       struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the formats of a node's layer, as far as no other layer decides a tensor of it. */
const struct qdq_layer_format *qdqi_node_format(const struct planner *p, size_t node);

/* Returns how the pair of a tensor quantizes: as the layers that read it from a pair say, or
   else the one that makes it. All layers must have been decided on. */
const struct qdq_activations *qdqi_tensor_format(const struct planner *p,
                                                 const struct qdqi_tensor *t);

/* Sets the formats of the planned tensors, whose leaders are known. Fails like
   qdqi_layer_formats_begin(). */
enum qdq_code qdqi_tensor_formats_settle(struct planner *p,
                                         struct qdq_error *err) QDQ_MUST_CHECK;

/* Notes in the layers of the plan, which is complete, what pairs they have. */
void qdqi_layer_formats_note(struct planner *p);

/* Return whether a layer multiplies integers of 8 bits by such, and whether its activations
   are that. */
bool qdqi_layer_multiplies_bytes(const struct planner *p,
                                 const struct qdq_layer *layer);

#endif
