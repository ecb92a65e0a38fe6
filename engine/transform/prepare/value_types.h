/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and ranks of values, as far as they follow without shapes. */
#ifndef QDQI_TRANSFORM_PREPARE_VALUE_TYPES_H
#define QDQI_TRANSFORM_PREPARE_VALUE_TYPES_H

#include "files/model/model.h"

/* The known type and rank of a value in a graph or function. */
struct qdqi_value_type {
    struct qdqi_tensor tensor; /* only its element type is set */
    int64_t rank;              /* -1: not known */
};

/* The maps are from names to struct qdqi_value_type. These functions return false when
   out of memory. */

/* Adds the values that a graph declares: inputs, outputs, constants, value_info. */
bool qdqi_value_types_declare(struct qdqi_map *known, struct qdqi_arena *arena,
                              const Onnx__GraphProto *graph);

/* Infers the outputs of a node of ONNX's own domain. */
bool qdqi_value_types_infer(struct qdqi_map *known, struct qdqi_arena *arena,
                            const Onnx__NodeProto *node);

#endif
