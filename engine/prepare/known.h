/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and ranks of values, as far as they can be told without their shapes. */
#ifndef QDQI_PREPARE_KNOWN_H
#define QDQI_PREPARE_KNOWN_H

#include "model/model.h"

/* What is known of a value of a graph or function. */
struct qdqi_known {
    struct qdqi_tensor tensor; /* its element type alone */
    int64_t rank;              /* -1: not known */
};

/* The maps are of names and struct qdqi_known. These return false when out of memory. */

/* What a graph says of its values: its inputs, outputs, constants, value_info. */
bool qdqi_known_declare(struct qdqi_map *known, struct qdqi_arena *arena,
                        const Onnx__GraphProto *graph);

/* What follows for the outputs of a node of ONNX's own. */
bool qdqi_known_follow(struct qdqi_map *known, struct qdqi_arena *arena,
                       const Onnx__NodeProto *node);

#endif
