/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs on the outputs of layers, for the hooks of targets that place pairs there. Such
 * a target computes a layer in integers when the output of the layer has a pair, too,
 * and when every reader of a tensor reads it from its pair. A layer that only moves
 * data gives its outputs the scale and the zero point of its input.
 *
 * The hook decide_outputs() of such a target begins with qdqi_outputs_begin(), and its
 * hook complete() with qdqi_outputs_complete(). The functions that add a pair return
 * false when out of memory.
 */
#ifndef QDQI_PLAN_PLACEMENT_OUTPUTS_H
#define QDQI_PLAN_PLACEMENT_OUTPUTS_H

#include "plan/placement/planner.h"

/* Creates the maps of p->outputs and puts the inputs that have pairs into `paired`.
   Returns false when out of memory. */
bool qdqi_outputs_begin(struct planner *p);

/* Returns whether the node has the output and a tensor of its type can have a pair.
   `otherwise` is the type to assume where the model does not say it. */
bool qdqi_output_can_have_pair(const struct planner *p, const struct qdqi_node *node,
                               size_t output, enum qdqi_dtype otherwise);

/* Gives an output of the layer a pair, unless it has one. */
bool qdqi_output_add(struct planner *p, struct qdq_layer *layer, int output);

/* Gives all outputs of a layer that moves the data of input 0 a pair with the scale
   and the zero point of that input. */
bool qdqi_output_add_moved(struct planner *p, struct qdq_layer *layer);

/* Returns whether all outputs of a node that moves data lie in the range of its
   input 0. */
bool qdqi_moves_in_range(const struct qdq_model *model, const struct qdqi_node *node);

/* Returns whether all readers of a tensor are layers that an entry, or a rule of the target,
   leaves in floating point, so that none of them reads the tensor from its pair. */
bool qdqi_all_read_raw(const struct planner *p, const struct qdqi_tensor *t);

/* Gives a planned activation a second row with another format, whose pair reads what the first one makes.
   Returns the new row. */
size_t qdqi_output_convert(struct planner *p, size_t row, enum qdqi_format format,
                           bool symmetric);

/* Completes the planned activations: it sets which of them share a scale, which lie in
   [0, 1], and which layers do not read them from their pairs. NO_MEMORY. */
enum qdq_code qdqi_outputs_complete(struct planner *p,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
