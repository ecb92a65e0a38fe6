/* SPDX-License-Identifier: Apache-2.0 */
/* A list of nodes that grows, in an arena. */
#ifndef QDQI_PREPARE_NODES_H
#define QDQI_PREPARE_NODES_H

#include "model/model.h"

struct qdqi_nodes {
    Onnx__NodeProto **rows;
    size_t n, cap;
};

/* False without memory, or when the node is NULL for the same reason. Who does not ask
   asks the arena at the end. */
bool qdqi_nodes_add(struct qdqi_nodes *nodes, struct qdqi_arena *arena,
                    Onnx__NodeProto *node);

#endif
