/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/prepare/nodes.h"

#include <string.h>

bool
qdqi_nodes_add(struct qdqi_nodes *nodes, struct qdqi_arena *arena,
               Onnx__NodeProto *node)
{
    if (nodes->n == nodes->cap) {
        size_t cap = nodes->cap ? nodes->cap * 2 : 16;
        Onnx__NodeProto **rows = qdqi_arena_array(arena, cap, sizeof *rows);
        if (!rows)
            return false;
        if (nodes->n)
            memcpy(rows, nodes->rows, nodes->n * sizeof *rows);
        nodes->rows = rows;
        nodes->cap = cap;
    }
    nodes->rows[nodes->n++] = node;
    return node;
}
