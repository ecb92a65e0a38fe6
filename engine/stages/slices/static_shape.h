/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shapes of tensors inside a model, as far as they follow from its file: from declared
 * values, weights, constant shapes and the operators between them (ONNX's operators, opset 27).
 */
#ifndef QDQI_STAGES_SLICES_STATIC_SHAPE_H
#define QDQI_STAGES_SLICES_STATIC_SHAPE_H

#include "stages/slices/node_values.h"

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

#endif
