/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/masked_sums.h"

#include "ground/base/map.h"

#include <stdint.h>

/* Returns the input of the first of the two operands; -1: the node is no such sum. */
static int
first_operand(const struct qdqi_node *node)
{
    enum { WHERE_OPERANDS = 1 };
    if (node->proto->n_output < 1 || !node->outputs[0])
        return -1;
    if (qdqi_node_is(node->proto, "Add") && node->proto->n_input == 2)
        return 0;
    return qdqi_node_is(node->proto, "Where") && node->proto->n_input == 3
               ? WHERE_OPERANDS
               : -1;
}

/* Returns whether a Softmax reads the node's output, or a sum that leads to one. */
static bool
leads_to_softmax(const struct qdqi_graph *graph, const bool *leads,
                 const struct qdqi_node *node)
{
    for (const struct qdqi_use *use = node->outputs[0]->uses; use; use = use->next) {
        const struct qdqi_node *reader = &graph->nodes[use->node];
        const int first = first_operand(reader);
        if (qdqi_node_is(reader->proto, "Softmax") ||
            (leads[use->node] && first >= 0 && use->input >= first))
            return true;
    }
    return false;
}

/* The rows of the plan by the tensors' names. */
struct rows {
    struct qdqi_map *activations, *weights; /* the row's number, and 1 */
};

static bool
begin_rows(const struct planner *p, struct rows *ret)
{
    const struct qdq_plan *plan = p->plan;
    ret->activations = qdqi_map_new(plan->arena);
    ret->weights = qdqi_map_new(plan->arena);
    bool ok = ret->activations && ret->weights;
    for (size_t i = 0; ok && i < plan->view.n_tensors; i++)
        ok = qdqi_map_put(ret->activations, plan->activations[i].tensor->name,
                          (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; ok && i < plan->view.n_weights; i++)
        ok = qdqi_map_put(ret->weights, plan->weights[i].tensor->name,
                          (void *)(uintptr_t)(i + 1));
    return ok;
}

static size_t
activation_of(const struct planner *p, const struct rows *rows,
              const struct qdqi_tensor *t)
{
    const size_t row =
        t ? (size_t)(uintptr_t)qdqi_map_get(rows->activations, t->name) : 0;
    return row > 0 && p->plan->activations[row - 1].tensor == t ? row - 1 : QDQI_NONE;
}

static size_t
constant_of(const struct planner *p, const struct rows *rows,
            const struct qdqi_tensor *t)
{
    const size_t row =
        t && t->is_fixed ? (size_t)(uintptr_t)qdqi_map_get(rows->weights, t->name) : 0;
    return row > 0 && p->plan->weights[row - 1].tensor == t ? row - 1 : QDQI_NONE;
}

static struct qdqi_masked_sum
describe(const struct planner *p, const struct rows *rows, const struct qdqi_node *node)
{
    const int first = first_operand(node);
    struct qdqi_masked_sum ret = {.result = activation_of(p, rows, node->outputs[0]),
                                  .constant = QDQI_NONE,
                                  .selects = first > 0};
    for (int i = 0; i < 2; i++) {
        const struct qdqi_tensor *t = node->inputs[first + i];
        ret.operands[i] = activation_of(p, rows, t);
        if (ret.operands[i] == QDQI_NONE && ret.constant == QDQI_NONE)
            ret.constant = constant_of(p, rows, t);
    }
    return ret;
}

enum qdq_code
qdqi_masked_sums_find(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_graph *graph = &p->model->graph;
    struct qdqi_arena *arena = p->plan->arena;
    bool *leads = qdqi_arena_array(arena, graph->n_nodes + 1, sizeof *leads);
    struct rows rows;
    size_t n = 0;
    if (!leads || !begin_rows(p, &rows))
        return qdqi_no_memory(err);
    for (size_t i = graph->n_nodes; i-- > 0;)
        if (first_operand(&graph->nodes[i]) >= 0 &&
            leads_to_softmax(graph, leads, &graph->nodes[i])) {
            leads[i] = true;
            n++;
        }
    struct qdqi_masked_sum *sums = qdqi_arena_array(arena, n + 1, sizeof *sums);
    if (!sums)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (leads[i])
            sums[p->plan->n_masked++] = describe(p, &rows, &graph->nodes[i]);
    p->plan->masked = sums;
    return QDQ_OK;
}
