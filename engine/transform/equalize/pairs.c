/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/equalize/pairs.h"

#include "transform/equalize/pass.h"

struct finding {
    const struct qdq_model *model;
    struct qdqi_arena *arena;
    struct qdqi_chains chains;
};

/* --- the reason, for a layer that is left alone ----------------------------- */

/* Returns why not exactly one layer reads the tensor; NULL: one does. */
static const char *
why_shared(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    if (!t)
        return "nothing follows";
    if (t->is_output)
        return "its output is one of the model's";
    if (t->is_captured)
        return "its output is used in a nested graph";
    if (!t->uses)
        return "nothing follows";
    for (const struct qdqi_use *use = t->uses; use; use = use->next)
        if (model->graph.nodes[use->node].scope != t->scope)
            return "its output is used in a nested graph";
    return t->uses->next ? "its output goes to more than one layer" : NULL;
}

/* Returns why no factor passes from input to output of a node that is no layer; NULL: one may
   pass. */
static const char *
why_stopped(const struct finding *f, const struct qdqi_node *node, int input)
{
    bool adds = qdqi_node_is(node->proto, "Add");
    if (adds ? qdqi_node_variable_input(node) >= 0
             : input == 0 && (qdqi_passes_factor(f->model, node, 3) ||
                              qdqi_is_flatten(f->model, node)))
        return NULL;
    if (!adds && input != 0)
        return "followed by something else than a layer";
    return qdqi_arena_printf(f->arena, "followed by %s", node->proto->op_type);
}

/* Returns why the chain between two layers is none of theirs. */
static const char *
why_broken(const struct finding *f, const struct qdqi_tensor *t,
           const struct qdqi_use *use)
{
    const struct qdqi_node *second = &f->model->graph.nodes[use->node];
    const struct qdqi_chain *chain = qdqi_map_get(f->chains.by_tensor, t->name);
    struct qdqi_weight weight;
    if (use->input != 0)
        return "its output is no data of the next layer";
    const char *why = qdqi_weight_read(f->model, second, &weight);
    if (why)
        return qdqi_arena_printf(f->arena, "the next layer's weight is %s", why);
    if (!chain)
        return "its output is constant";
    if (chain->fault)
        return qdqi_arena_printf(f->arena, "what is added is %s", chain->fault);
    if (chain->end && !qdqi_weight_has(chain->end))
        return qdqi_arena_printf(f->arena, "followed by %s",
                                 chain->end->proto->op_type);
    return "the next layer's weight does not have its channels";
}

/* Follows the output of a layer that makes no activation of a single layer. Returns the
   reason, and sets the second layer where there is one. */
static const char *
why_alone(const struct finding *f, struct qdqi_pair *pair)
{
    const struct qdqi_graph *graph = &f->model->graph;
    const struct qdqi_node *node = &graph->nodes[pair->first];
    struct qdqi_weight weight;
    const char *why = qdqi_weight_read(f->model, node, &weight);
    if (why)
        return qdqi_arena_printf(f->arena, "its weight is %s", why);
    for (;;) {
        const struct qdqi_tensor *t = node->proto->n_output ? node->outputs[0] : NULL;
        if ((why = why_shared(f->model, t)) || !t)
            return why;
        node = &graph->nodes[t->uses->node];
        if (qdqi_weight_has(node)) {
            pair->second = t->uses->input == 0 ? t->uses->node : pair->second;
            return why_broken(f, t, t->uses);
        }
        if ((why = why_stopped(f, node, t->uses->input)))
            return why;
    }
}

/* --- the model -------------------------------------------------------------- */

enum qdq_code
qdqi_pairs_find(const struct qdq_model *model, struct qdqi_arena *arena,
                struct qdqi_pair **ret, size_t *ret_n, struct qdq_error *err)
{
    const struct qdqi_graph *graph = &model->graph;
    struct finding f = {.model = model, .arena = arena};
    enum qdq_code code = qdqi_chains_find(model, arena, &f.chains, err);
    if (code)
        return code;
    struct qdqi_pair *pairs = qdqi_arena_array(arena, graph->n_nodes, sizeof *pairs);
    const struct qdqi_chain **by_maker =
        qdqi_arena_array(arena, graph->n_nodes, sizeof(struct qdqi_chain *));
    if (!pairs || !by_maker)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < f.chains.n; i++) {
        const struct qdqi_chain *chain = &f.chains.all[i];
        if (!chain->reason && chain->n_readers == 1 &&
            chain->maker.layer < graph->n_nodes)
            by_maker[chain->maker.layer] = chain;
    }
    *ret = pairs;
    *ret_n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (!qdqi_weight_is_of_layer(graph, &graph->nodes[i]))
            continue;
        struct qdqi_pair *pair = &pairs[(*ret_n)++];
        *pair = (struct qdqi_pair){
            i, by_maker[i] ? by_maker[i]->readers->node : graph->n_nodes, by_maker[i],
            NULL};
        if (!pair->chain)
            pair->reason = why_alone(&f, pair);
    }
    return qdqi_arena_exhausted(arena) ? qdqi_no_memory(err) : QDQ_OK;
}
