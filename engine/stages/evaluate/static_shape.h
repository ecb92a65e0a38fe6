/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shapes of tensors inside a model, as far as they follow from its file: from declared
 * values, weights, constant shapes and the operators between them (ONNX's operators, opset 27).
 */
#ifndef QDQI_STAGES_EVALUATE_STATIC_SHAPE_H
#define QDQI_STAGES_EVALUATE_STATIC_SHAPE_H

#include "files/model/model.h"

enum { QDQI_SHAPE_AXES = 8 }; /* the most axes of a tensor whose shape is found */

struct qdqi_static_shape {
    size_t rank;
    int64_t dims[QDQI_SHAPE_AXES]; /* -1: not known */
};

/* A look-up of shapes in one model. `visits` bounds the nodes that all calls may look at. */
struct qdqi_shapes {
    const struct qdq_model *model;
    int visits;
};

/* Finds the shape of a tensor of the main graph. Returns false where not even its number of axes
   is known. */
bool qdqi_static_shape(struct qdqi_shapes *shapes, const struct qdqi_tensor *tensor,
                       struct qdqi_static_shape *ret);

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
