/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/rewrite/needed_nodes.h"

bool
qdqi_has_nested_graphs(const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_attribute; k++)
            if (graph->node[i]->attribute[k]->g ||
                graph->node[i]->attribute[k]->n_graphs > 0)
                return true;
    return false;
}

static bool
makes_one_of(const Onnx__NodeProto *node, const struct qdqi_map *needed)
{
    for (size_t i = 0; i < node->n_output; i++)
        if (*node->output[i] && qdqi_map_get(needed, node->output[i]))
            return true;
    return false;
}

/* Nodes are in an order of computation, but for those that an edit put behind their readers, so it
   looks until it finds no more. */
bool
qdqi_mark_needed(const Onnx__GraphProto *graph, struct qdqi_map *needed, bool *marks)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = graph->n_node; i-- > 0;) {
            Onnx__NodeProto *node = graph->node[i];
            if (marks[i] || !makes_one_of(node, needed))
                continue;
            more = marks[i] = true;
            for (size_t k = 0; k < node->n_input; k++)
                if (*node->input[k] && !qdqi_map_put(needed, node->input[k], node))
                    return false;
        }
    }
    return true;
}
