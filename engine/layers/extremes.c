/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "layers/extremes.h"

#include "layers/patterns.h"

static bool
is_extreme(const struct qdqi_node *node)
{
    static const char *const ops[] = {"ReduceMax", "ReduceMin", "GlobalMaxPool", NULL};
    return qdqi_node_is_one_of(node->proto, ops);
}

/* Returns whether the node computes each number of its output from one number of each
   input. */
static bool
is_by_element(const struct qdqi_node *node)
{
    static const char *const ops[] = {
        "Abs",      "Add",      "Cast", "Div",       "Dropout",   "Exp",     "Flatten",
        "Identity", "Log",      "Mul",  "Neg",       "Pow",       "Reshape", "Sqrt",
        "Squeeze",  "Softsign", "Sub",  "Transpose", "Unsqueeze", NULL};
    return qdqi_is_pointwise(node) || qdqi_node_is_one_of(node->proto, ops);
}

/* Counts the inputs of a node that are computed, and those that marked nodes make. */
static void
count_inputs(const struct qdqi_node *node, const bool *marked, size_t *ret_computed,
             size_t *ret_marked)
{
    *ret_computed = *ret_marked = 0;
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        if (!t || t->is_fixed)
            continue;
        ++*ret_computed;
        *ret_marked += t->producer >= 0 && marked[t->producer];
    }
}

bool *
qdqi_mark_extremes(const struct qdqi_graph *graph, struct qdqi_arena *arena)
{
    bool *marked = qdqi_arena_array(arena, graph->n_nodes, sizeof *marked);
    for (size_t i = 0; marked && i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        size_t n_computed, n_marked;
        count_inputs(node, marked, &n_computed, &n_marked);
        const size_t needed = qdqi_node_is(node->proto, "Concat") ? 1
                              : is_by_element(node)               ? n_computed
                                                                  : 0;
        marked[i] = is_extreme(node) || (needed > 0 && n_marked >= needed);
    }
    return marked;
}
