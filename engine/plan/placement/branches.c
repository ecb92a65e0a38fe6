/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/branches.h"

#include "graph/edit/edit.h"

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
