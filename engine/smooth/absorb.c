/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "smooth/absorb.h"

#include "base/map.h"
#include "equalize/axis.h"
#include "equalize/pass.h"

#include <string.h>

/* The state of a walk from an activation back to what makes it. */
struct walk {
    const struct qdq_model *model;
    struct qdqi_arena *arena;
    struct qdqi_absorption *a;
    const struct qdqi_tensor *at;  /* the tensor that the walk has reached */
    struct qdqi_channel_axis axis; /* of that tensor */
};

/* Sets the reason; returns false, for use in `return`. */
static bool
reject(struct walk *w, const char *text)
{
    w->a->reason = text;
    return false;
}

/* --- the readers ---------------------------------------------------------- */

static bool
is_conv(const struct qdqi_node *node)
{
    return qdqi_node_is(node->proto, "Conv") ||
           qdqi_node_is(node->proto, "ConvTranspose");
}

/* Returns the rank of input 0 of a layer; 0: any, and channels are the last axis. */
static size_t
rank_of(const struct qdqi_node *layer)
{
    if (is_conv(layer))
        return layer->inputs[1]->view.rank;
    return qdqi_node_is(layer->proto, "Gemm") ? 2 : 0;
}

static bool
add_reader(struct walk *w, const struct qdqi_use *use)
{
    const struct qdqi_node *node = &w->model->graph.nodes[use->node];
    struct qdqi_reader *reader = &w->a->readers[w->a->n_readers];
    if (node->scope != w->a->at->scope)
        return reject(w, "it is read in a nested graph");
    if (use->input != 0 || !qdqi_weight_has(node))
        return reject(
            w, qdqi_arena_printf(w->arena, "%s reads it, too", node->proto->op_type));
    const char *why = qdqi_weight_read(w->model, node, &reader->weight);
    if (why)
        return reject(w,
                      qdqi_arena_printf(w->arena, "a weight that it meets is %s", why));
    if (qdqi_node_is(node->proto, "Gemm") && qdqi_node_int(node->proto, "transA", 0))
        return reject(w, "a layer reads it transposed");
    size_t rank = rank_of(node), channels = reader->weight.n_in;
    if (w->a->n_readers > 0 &&
        (channels != w->a->channels || (rank > 2) != (w->axis.rank > 2)))
        return reject(w, "layers read different axes of it");
    w->axis.rank = rank > w->axis.rank ? rank : w->axis.rank;
    w->axis.is_last = w->axis.rank <= 2;
    w->a->channels = channels;
    reader->node = use->node;
    w->a->n_readers++;
    return true;
}

/* Returns the axis of the channels, counted from the end: 1 is the last. */
static size_t
from_end(const struct walk *w)
{
    return w->axis.is_last ? 1 : w->axis.rank - 1;
}

static bool
add_readers(struct walk *w)
{
    size_t n = 0;
    for (const struct qdqi_use *use = w->a->at->uses; use; use = use->next)
        n++;
    w->a->readers = qdqi_arena_array(w->arena, n, sizeof *w->a->readers);
    if (!w->a->readers)
        return reject(w, "out of memory"); /* the arena remembers */
    for (const struct qdqi_use *use = w->a->at->uses; use; use = use->next)
        if (!add_reader(w, use))
            return false;
    w->a->from_end = from_end(w);
    return true;
}

/* --- what makes the activation -------------------------------------------- */

/* Normalizations whose inputs 1 and 2 are a scale and a bias for each channel. */
static const struct {
    const char *op;
    bool is_last_axis; /* channels are the last axis; else axis 1 */
} norms[] = {{"LayerNormalization", true},
             {"RMSNormalization", true},
             {"BatchNormalization", false},
             {"InstanceNormalization", false}};

enum { N_NORMS = sizeof norms / sizeof *norms };

static bool
add_constant(struct walk *w, const struct qdqi_tensor *t, size_t axis_from_end)
{
    struct qdqi_absorption *a = w->a;
    struct qdqi_constant *c = &a->constants[a->n_constants];
    if (a->n_constants == QDQI_MAX_ABSORBING)
        return reject(w, "more constants are added to it than are followed");
    const char *why = qdqi_weight_check(w->model, t, c);
    if (!why && (!qdqi_is_per_channel(c, axis_from_end, a->channels) ||
                 (w->axis.rank && c->rank > w->axis.rank)))
        why = "not one value for each channel";
    if (why)
        return reject(
            w, qdqi_arena_printf(w->arena, "a constant that makes it is %s", why));
    a->tensors[a->n_constants++] = t;
    return true;
}

static void
end_at_layer(struct walk *w, const struct qdqi_node *node)
{
    const char *why = qdqi_weight_read(w->model, node, &w->a->maker_weight);
    bool has_bias = !qdqi_node_is(node->proto, "MatMul") && node->proto->n_input > 2 &&
                    node->inputs[2];
    if (why)
        reject(w, qdqi_arena_printf(w->arena, "the weight of the layer before it is %s",
                                    why));
    else if (is_conv(node) == w->axis.is_last ||
             w->a->maker_weight.n_out != w->a->channels)
        reject(w, "the layer before it has other channels");
    else if (!has_bias || add_constant(w, node->inputs[2], 1))
        w->a->maker = (size_t)(node - w->model->graph.nodes);
}

/* Ends at the layer that makes the values of attention, whose product with probabilities
   the walk has reached. */
static void
end_at_values(struct walk *w)
{
    struct qdqi_absorption *a = w->a;
    struct qdqi_values v;
    const char *why = w->axis.is_last && a->n_constants == 0
                          ? qdqi_values_find(w->model, a->at, a->channels, w->arena, &v)
                          : "MatMul makes it";
    if (why) {
        reject(w, why);
        return;
    }
    a->maker = v.maker;
    a->maker_weight = v.weight;
    a->outputs = v.outputs;
    a->n_constants = v.n_constants;
    memcpy(a->constants, v.constants, sizeof a->constants);
    memcpy(a->tensors, v.tensors, sizeof a->tensors);
}

static void
end_at_norm(struct walk *w, const struct qdqi_node *node, bool is_last_axis)
{
    int64_t axis = qdqi_node_int(node->proto, "axis", -1);
    size_t rank = w->axis.rank;
    if ((is_last_axis ? !w->axis.is_last : w->axis.is_last && rank != 2) ||
        (is_last_axis && axis != -1 && (rank == 0 || axis != (int64_t)rank - 1)) ||
        qdqi_node_int(node->proto, "training_mode", 0)) {
        reject(w, "the normalization before it has other channels");
        return;
    }
    for (size_t i = 1; i < 3 && i < node->proto->n_input; i++)
        if (node->inputs[i] && !add_constant(w, node->inputs[i], 1))
            return;
}

/* Returns whether a node multiplies two computed matrices. */
static bool
multiplies_activations(const struct qdqi_node *node)
{
    return qdqi_node_is(node->proto, "MatMul") && node->proto->n_input == 2 &&
           node->inputs[0] && node->inputs[1] && !node->inputs[0]->is_fixed &&
           !node->inputs[1]->is_fixed;
}

/* Goes on with an input of the node, which only the node may read. */
static bool
go_on(struct walk *w, const struct qdqi_node *node, int input)
{
    const struct qdqi_tensor *t = node->inputs[input];
    if (t->is_output || t->is_captured)
        return reject(w, "an output of the model is made on the way to it");
    if (t->uses->next)
        return reject(w, "a tensor on the way to it is read elsewhere, too");
    w->at = t;
    return true;
}

/* Takes one step back. Returns false at the end: where the divisors are taken in, or
   where `reason` is set. */
static bool
step(struct walk *w)
{
    if (w->at->producer < 0)
        return reject(w, "it is an input of the model");
    const struct qdqi_node *node = &w->model->graph.nodes[w->at->producer];
    bool sums = qdqi_node_is(node->proto, "Add");
    int input = qdqi_node_variable_input(node);
    if (node->outputs[0] != w->at || node->scope != w->at->scope)
        return reject(w, "no layer before it can take factors in");
    if (multiplies_activations(node)) {
        end_at_values(w);
        return false;
    }
    if (qdqi_weight_has(node)) {
        end_at_layer(w, node);
        return false;
    }
    for (size_t i = 0; i < N_NORMS; i++)
        if (qdqi_node_is(node->proto, norms[i].op)) {
            end_at_norm(w, node, norms[i].is_last_axis);
            return false;
        }
    if (qdqi_passes_factor(w->model, node, w->axis.is_last ? 2 : w->axis.rank) ||
        qdqi_channel_axis_back(w->model, node, w->a->channels, &w->axis))
        return go_on(w, node, 0);
    if (input >= 0 && qdqi_node_is(node->proto, "Mul") &&
        qdqi_is_scalar(w->model, node->inputs[!input]))
        return go_on(w, node, input);
    if (input >= 0 && (sums || qdqi_node_is(node->proto, "Mul")))
        return add_constant(w, node->inputs[!input], from_end(w)) && sums &&
               go_on(w, node, input);
    return reject(w, qdqi_arena_printf(w->arena, "%s makes it", node->proto->op_type));
}

static void
follow(struct walk *w)
{
    const struct qdqi_tensor *t = w->a->at;
    w->a->maker = w->model->graph.n_nodes;
    if (t->is_output || t->is_captured)
        reject(w, "it is an output, too");
    else if (t->scope != 0)
        reject(w, "it is in a nested graph");
    else if (add_readers(w)) {
        w->at = t;
        while (step(w))
            ;
    }
}

/* --- the model ------------------------------------------------------------ */

/* Returns the activation that a layer with a constant weight reads; NULL: the node is no
   such layer. */
static const struct qdqi_tensor *
activation_of(const struct qdqi_graph *graph, const struct qdqi_node *node)
{
    if (graph->scopes[node->scope].is_opaque || !qdqi_weight_has(node) ||
        node->proto->n_input < 2 || !node->inputs[0] || !node->inputs[1] ||
        !node->inputs[1]->is_fixed || node->inputs[0]->is_fixed)
        return NULL;
    return node->inputs[0];
}

/* Leaves the activation alone when an earlier one changes the same layer's outputs. */
static void
check_maker(struct qdqi_absorption *all, struct qdqi_absorption *a)
{
    for (struct qdqi_absorption *earlier = all; a->outputs && earlier < a; earlier++)
        if (!a->reason && !earlier->reason && earlier->maker == a->maker)
            a->reason = "another activation comes from the same layer";
}

enum qdq_code
qdqi_absorptions_find(const struct qdq_model *model, struct qdqi_arena *arena,
                      struct qdqi_absorption **ret, size_t *ret_n,
                      struct qdq_error *err)
{
    const struct qdqi_graph *graph = &model->graph;
    struct qdqi_map *seen = qdqi_map_new(arena);
    struct qdqi_absorption *all = qdqi_arena_array(arena, graph->n_nodes, sizeof *all);
    if (!seen || !all)
        return qdqi_no_memory(err);
    *ret = all;
    *ret_n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_tensor *t = activation_of(graph, &graph->nodes[i]);
        if (!t || qdqi_map_get(seen, t->name))
            continue;
        struct qdqi_absorption *a = &all[(*ret_n)++];
        *a = (struct qdqi_absorption){.at = t};
        if (!qdqi_map_put(seen, t->name, a))
            return qdqi_no_memory(err);
        follow(&(struct walk){.model = model, .arena = arena, .a = a});
        check_maker(all, a);
    }
    return qdqi_arena_exhausted(arena) ? qdqi_no_memory(err) : QDQ_OK;
}
