/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/targets/shared/squares.h"

#include "graph/layers/layers.h"

/* Returns whether the node squares that input: Pow, or a Mul of the tensor with
   itself. */
static bool
squares(const struct qdqi_node *node, int input)
{
    if (qdqi_node_is(node->proto, "Pow"))
        return input == 0;
    return qdqi_node_is(node->proto, "Mul") && node->proto->n_input == 2 &&
           node->inputs[0] == node->inputs[1];
}

/* Returns whether values go through the node without a sum over several of them. */
static bool
keeps_values(const struct qdqi_node *node)
{
    static const char *const ops[] = {
        "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice",    "Split", "Gather",
        "Concat",  "Neg",       "Cast",    "Flatten",   "Identity", "Pad",   NULL};
    return qdqi_node_is_one_of(node->proto, ops) ||
           (qdqi_node_is(node->proto, "Mul") &&
            (qdqi_input_is_constant(node, 0) || qdqi_input_is_constant(node, 1)));
}

bool *
qdqi_mark_squared(const struct qdqi_graph *graph, struct qdqi_arena *arena)
{
    bool *squared = qdqi_arena_array(arena, graph->n_nodes, sizeof *squared);
    for (size_t i = squared ? graph->n_nodes : 0; i-- > 0;)
        for (size_t k = 0; k < graph->nodes[i].proto->n_output; k++) {
            const struct qdqi_tensor *t = graph->nodes[i].outputs[k];
            for (const struct qdqi_use *use = t ? t->uses : NULL; use;
                 use = use->next) {
                const struct qdqi_node *node = &graph->nodes[use->node];
                squared[i] |= squares(node, use->input) ||
                              (squared[use->node] && keeps_values(node));
            }
        }
    return squared;
}
