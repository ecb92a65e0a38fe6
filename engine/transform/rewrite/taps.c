/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/rewrite/taps.h"

#include "transform/rewrite/needed_nodes.h"

/* Gives the graph lists of its own, with the nodes that the tensors need. */
static bool
keep_needed(Onnx__GraphProto *graph, const char *const *tensors, size_t n,
            struct qdqi_arena *arena)
{
    struct qdqi_map *needed = qdqi_map_new(arena);
    bool *marks = qdqi_arena_array(arena, graph->n_node, sizeof *marks);
    Onnx__NodeProto **nodes = qdqi_arena_array(arena, graph->n_node, sizeof(*nodes));
    size_t kept = 0;
    if (!needed || !marks || !nodes)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!qdqi_map_put(needed, tensors[i], graph))
            return false;
    if (!qdqi_mark_needed(graph, needed, marks))
        return false;
    for (size_t i = 0; i < graph->n_node; i++)
        if (marks[i])
            nodes[kept++] = graph->node[i];
    graph->node = nodes;
    graph->n_node = kept;
    return true;
}

const Onnx__ModelProto *
qdqi_taps(const Onnx__ModelProto *model, const char *const *tensors, size_t n,
          struct qdqi_arena *arena)
{
    Onnx__ModelProto *copy = qdqi_arena_alloc(arena, sizeof *copy);
    Onnx__GraphProto *graph = qdqi_arena_alloc(arena, sizeof *graph);
    Onnx__ValueInfoProto *outputs = qdqi_arena_array(arena, n, sizeof *outputs);
    Onnx__ValueInfoProto **list = qdqi_arena_array(arena, n, sizeof(*list));
    if (!copy || !graph || !outputs || !list)
        return NULL;
    *copy = *model;
    *graph = *model->graph;
    copy->graph = graph;
    for (size_t i = 0; i < n; i++) {
        onnx__value_info_proto__init(&outputs[i]);
        outputs[i].name = (char *)(uintptr_t)tensors[i];
        list[i] = &outputs[i];
    }
    graph->output = list;
    graph->n_output = n;
    return qdqi_has_nested_graphs(graph) || keep_needed(graph, tensors, n, arena)
               ? copy
               : NULL;
}
