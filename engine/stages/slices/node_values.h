/* SPDX-License-Identifier: Apache-2.0 */
/* The axes, sizes and places that a node has as constants, in inputs or in attributes. */
#ifndef QDQI_STAGES_SLICES_NODE_VALUES_H
#define QDQI_STAGES_SLICES_NODE_VALUES_H

#include "files/model/model.h"

enum { QDQI_SHAPE_AXES = 8 }; /* the most axes of a tensor whose shape is found */

/* Reads the integers that a node has as an input or, in older opsets, as an attribute. Returns
   false where it has none, more than QDQI_SHAPE_AXES, or none that are constant. */
bool qdqi_node_constant_ints(const struct qdq_model *model,
                             const struct qdqi_node *node, size_t input,
                             const char *attribute, int64_t *ret, size_t *ret_n);

/* Returns the node's attribute `axis` as an index from 0 on; -1 where it is beyond the axes. */
int64_t qdqi_node_axis(const struct qdqi_node *node, int64_t otherwise, size_t rank);

/* Finds the sizes of the outputs of a Split along its axis, which has `whole` elements, or -1.
   Returns false where they are not known. */
bool qdqi_split_sizes(const struct qdq_model *model, const struct qdqi_node *split,
                      int64_t whole, int64_t *ret);

enum { QDQI_MOST_SPLITS = 32 }; /* outputs of a Split whose sizes are found */

#endif
