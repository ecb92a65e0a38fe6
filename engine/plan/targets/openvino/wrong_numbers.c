/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/targets/openvino/openvino.h"

#include "graph/layers/operators.h"
#include "files/model/constant.h"

#include <string.h>

/* --- the largest of several numbers ------------------------------------------ */

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

/* --- functions that fall, behind pools ------------------------------------------ */

enum { POOLED = 1, TURNED = 2 };

static bool
pools(const struct qdqi_node *node)
{
    static const char *const ops[] = {"AveragePool", "MaxPool", NULL};
    return qdqi_node_is_one_of(node->proto, ops);
}

/* Returns whether values go through the node, each by itself or where others are left out. */
static bool
passes_on(const struct qdqi_node *node)
{
    static const char *const ops[] = {"Concat", "DepthToSpace", "Gather", "Pad",
                                      "Slice",  "SpaceToDepth", "Split",  NULL};
    return is_by_element(node) || qdqi_node_is_one_of(node->proto, ops);
}

/* Returns whether the tensor is a constant with an element below zero. */
static bool
has_negative(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    struct qdqi_constant c;
    float one;
    if (!t || !t->is_fixed || qdqi_constant_read(model, t, &c, NULL) ||
        c.dtype != QDQI_FLOAT32)
        return false;
    const size_t n = c.n > 1 && qdqi_constant_is_fill(&c) ? 1 : c.n;
    for (size_t i = 0; i < n; i++) {
        memcpy(&one, c.bytes + i * sizeof one, sizeof one);
        if (one < 0)
            return true;
    }
    return false;
}

/* Returns whether the output of the node falls somewhere as its data grow. The shift of a
   BatchNormalization makes a difference: OpenVINO is right there. */
static bool
turns(const struct qdq_model *model, const struct qdqi_node *node)
{
    static const char *const always[] = {"Abs", "Neg", "Reciprocal", NULL};
    static const char *const quotients[] = {"Div", "Sub", NULL};
    static const char *const factors[] = {"Div", "Mul", NULL};
    if (qdqi_node_is_one_of(node->proto, always))
        return true;
    if (node->proto->n_input != 2)
        return false;
    return (qdqi_node_is_one_of(node->proto, quotients) && node->inputs[0] &&
            node->inputs[0]->is_fixed) ||
           (qdqi_node_is_one_of(node->proto, factors) &&
            (has_negative(model, node->inputs[0]) ||
             has_negative(model, node->inputs[1])));
}

/* Returns what is on the way of a node's inputs. */
static unsigned
way_before(const struct qdqi_node *node, const uint8_t *way)
{
    unsigned before = 0;
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        before |= t && t->producer >= 0 ? way[t->producer] : 0;
    }
    return before;
}

bool *
qdqi_mark_turned(const struct qdq_model *model, struct qdqi_arena *arena)
{
    const struct qdqi_graph *graph = &model->graph;
    bool *marked = qdqi_arena_array(arena, graph->n_nodes, sizeof *marked);
    uint8_t *way = qdqi_arena_array(arena, graph->n_nodes, sizeof *way);
    for (size_t i = 0; marked && way && i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        const unsigned before = way_before(node, way);
        if (pools(node))
            way[i] = (uint8_t)(before | POOLED);
        else if (passes_on(node) || turns(model, node))
            way[i] = (uint8_t)(before & POOLED && turns(model, node) ? before | TURNED
                                                                     : before);
        marked[i] = way[i] & TURNED;
    }
    return way ? marked : NULL;
}
