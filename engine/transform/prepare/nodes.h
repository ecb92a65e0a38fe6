/* SPDX-License-Identifier: Apache-2.0 */
/* A growing list of nodes, in an arena. */
#ifndef QDQI_TRANSFORM_PREPARE_NODES_H
#define QDQI_TRANSFORM_PREPARE_NODES_H

#include "files/model/model.h"

struct qdqi_nodes {
    Onnx__NodeProto **rows;
    size_t n, cap;
};

/* Adds a node. Returns false when out of memory, or when the node is NULL for that
   reason. Callers may ignore the result and check the arena at the end. */
static inline bool
qdqi_nodes_add(struct qdqi_nodes *nodes, struct qdqi_arena *arena,
               Onnx__NodeProto *node)
{
    Onnx__NodeProto **rows =
        qdqi_arena_grow(arena, nodes->rows, nodes->n, &nodes->cap, sizeof *rows);
    if (!rows)
        return false;
    nodes->rows = rows;
    nodes->rows[nodes->n++] = node;
    return node;
}

#endif
