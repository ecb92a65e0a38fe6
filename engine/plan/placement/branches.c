/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/branches.h"

#include "graph/edit/edit.h"

#include <string.h>

size_t
qdqi_branch_of(const struct qdq_model *source, const struct qdq_plan *plan, size_t node,
               size_t i)
{
    const struct qdqi_graph *graph = &source->graph;
    if (!plan->pairs_in_branches || plan->activations[i].everywhere ||
        graph->nodes[node].scope == 0)
        return 0;
    const size_t place = qdqi_edit_before_uses(source, plan->activations[i].tensor);
    for (size_t at = graph->nodes[node].scope; at != graph->nodes[place].scope;
         at = graph->scopes[at].outer)
        if (qdqi_node_is(graph->nodes[graph->scopes[at].owner].proto, "If"))
            return at;
    return 0;
}

/* Returns whether the layer reads activation `i` from the one pair of the tensor. */
static bool
reads_outside(const struct qdq_model *source, const struct qdq_plan *plan,
              const struct qdq_layer *layer, size_t i)
{
    for (size_t e = 0; e < layer->n_inputs; e++)
        if (layer->input_rows[e] == i)
            return qdqi_branch_of(source, plan, layer->node, i) == 0;
    return false;
}

/* Returns whether a node reads what one of the nodes computes that are needed. */
static bool
needs_one(const struct qdqi_graph *graph, size_t node, const bool *needed)
{
    const struct qdqi_node *n = &graph->nodes[node];
    for (size_t i = 0; i < n->proto->n_input; i++)
        if (n->inputs[i] && n->inputs[i]->producer >= 0 &&
            needed[n->inputs[i]->producer])
            return true;
    return false;
}

/* Marks a node and those that own the graphs that it stands in. */
static void
mark(const struct qdqi_graph *graph, size_t node, bool *marks)
{
    marks[node] = true;
    for (size_t at = graph->nodes[node].scope; at != 0; at = graph->scopes[at].outer)
        marks[graph->scopes[at].owner] = true;
}

bool
qdqi_branch_follows(const struct qdq_model *source, const struct qdq_plan *plan,
                    size_t branch, size_t i, bool *marks)
{
    const struct qdqi_graph *graph = &source->graph;
    const size_t owner = (size_t)graph->scopes[branch].owner;
    memset(marks, 0, graph->n_nodes * sizeof *marks);
    for (size_t k = 0; k < plan->view.n_layers; k++)
        if (reads_outside(source, plan, &plan->view.layers[k], i))
            marks[plan->view.layers[k].node] = true;
    /* The order is one of computation, so that one pass finds all that need them. */
    for (size_t node = 0; node < graph->n_nodes; node++)
        if (!marks[node] && needs_one(graph, node, marks))
            mark(graph, node, marks);
    return marks[owner];
}

/* Returns whether a layer before `layer` reads activation `i` in the branch. */
static bool
was_read(const struct qdq_model *source, const struct qdq_plan *plan, size_t layer,
         size_t i, size_t branch)
{
    const struct qdq_layer *layers = plan->view.layers;
    for (size_t k = 0; k < layer; k++)
        for (size_t e = 0; e < layers[k].n_inputs; e++)
            if (layers[k].input_rows[e] == i &&
                qdqi_branch_of(source, plan, layers[k].node, i) == branch)
                return true;
    return false;
}

/* Returns in how many branches layers have a pair of activation `i`. *ret_outside: whether a layer
   reads the one pair of the tensor. */
static size_t
count_branches(const struct qdq_model *source, const struct qdq_plan *plan, size_t i,
               bool *ret_outside)
{
    const struct qdq_plan_view *view = &plan->view;
    size_t n = 0;
    *ret_outside = false;
    for (size_t k = 0; k < view->n_layers; k++)
        for (size_t e = 0; e < view->layers[k].n_inputs; e++) {
            if (view->layers[k].input_rows[e] != i)
                continue;
            const size_t branch = qdqi_branch_of(source, plan, view->layers[k].node, i);
            *ret_outside = *ret_outside || branch == 0;
            n += branch != 0 && !was_read(source, plan, k, i, branch);
        }
    return n;
}

bool
qdqi_all_read_in_branches(const struct qdq_model *source, const struct qdq_plan *plan,
                          size_t i)
{
    bool outside;
    return plan->pairs_in_branches && count_branches(source, plan, i, &outside) > 0 &&
           !outside;
}

size_t
qdqi_count_pairs(const struct qdq_model *source, const struct qdq_plan *plan)
{
    size_t n = plan->view.n_tensors + plan->view.n_weights;
    for (size_t i = 0; plan->pairs_in_branches && i < plan->view.n_tensors; i++) {
        bool outside;
        const size_t branches = count_branches(source, plan, i, &outside);
        n += branches - (branches > 0 && !outside);
    }
    return n;
}
