/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of which a runtime computes wrong numbers unless they keep their axes. */
#ifndef QDQI_PLAN_TARGETS_SHARED_KEPT_AXES_H
#define QDQI_PLAN_TARGETS_SHARED_KEPT_AXES_H

#include "graph/edit/edit.h"

/* From this opset on a Squeeze has its axes as an input. */
enum { QDQI_OPSET_AXES_INPUT = 13 };

/* Returns whether a node is of an operator, one of reductions, and drops axes of floats. */
bool qdqi_drops_axes(const struct qdqi_node *node, const char *op);

/* Returns the name of a tensor with the axes that a reduction says; NULL where it does not, and reduces all or
   none, or when out of memory. */
const char *qdqi_axes_of(struct qdqi_edit *edit, const struct qdqi_node *node);

/* Has the reduction keep its axes, and a Squeeze behind it drop them. Returns whether it does: not where it
   does not say them, and reduces all or none. */
bool qdqi_keep_axes(const struct qdq_model *model, struct qdqi_edit *edit, size_t node);

/* Returns whether the node is a ReduceL2 of float32, the length of a vector. */
bool qdqi_is_norm(const struct qdqi_node *node);

#endif
