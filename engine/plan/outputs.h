/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs on the outputs of layers, for the hooks of targets that place them there: a layer
 * becomes an integer kernel when its output has a pair, too, and every reader of a tensor
 * reads it from its pair. Numbers are shared where data only move.
 *
 * decide_outputs() of a target begins with qdqi_outputs_begin(), and complete() with
 * qdqi_outputs_complete(). The functions that return bool and are named qdqi_output_add…
 * return false when out of memory.
 */
#ifndef QDQI_PLAN_OUTPUTS_H
#define QDQI_PLAN_OUTPUTS_H

#include "plan/planner.h"

/* Makes the maps of p->outputs; the inputs that have pairs are in `paired` then. False when
   out of memory. */
bool qdqi_outputs_begin(struct planner *p);

/* Whether the node has the output, and its type can have a pair; `otherwise` is the type
   where the model does not say it. */
bool qdqi_output_can_have_pair(const struct planner *p, const struct qdqi_node *node,
                               size_t output, enum qdqi_dtype otherwise);

/* Gives an output of the layer a pair, if it has none. */
bool qdqi_output_add(struct planner *p, struct qdq_layer *layer, int output);

/* Gives all outputs of a layer that moves input 0 a pair with the numbers of that input. */
bool qdqi_output_add_moved(struct planner *p, struct qdq_layer *layer);

/* Whether all that a node that moves data makes lies in the range of its input 0. */
bool qdqi_moves_in_range(const struct qdq_model *model, const struct qdqi_node *node);

/* Whether an entry leaves the layer in floating point, so that the layer reads no tensor
   from its pair; whether all readers of a tensor are such layers. */
bool qdqi_reads_raw(const struct planner *p, const struct qdq_layer *layer);
bool qdqi_all_read_raw(const struct planner *p, const struct qdqi_tensor *t);

/* Completes the planned activations: which of them share numbers, which lie in [0, 1],
   and which layers read them raw. NO_MEMORY. */
enum qdq_code qdqi_outputs_complete(struct planner *p,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
