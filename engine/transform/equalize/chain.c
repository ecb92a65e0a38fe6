/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/equalize/chain.h"

#include "transform/equalize/axis.h"
#include "transform/equalize/pass.h"
#include "transform/equalize/readers.h"

#include <math.h>
#include <string.h>

/* The state of a walk from an activation back to what makes it. */
struct walk {
    const struct qdq_model *model;
    struct qdqi_arena *arena;
    struct qdqi_chain *chain;
    const struct qdqi_tensor *at;  /* the tensor that the walk has reached */
    struct qdqi_channel_axis axis; /* of that tensor */
};

/* Sets the reason; returns false, for use in `return`. */
static bool
reject(struct walk *w, const char *text)
{
    w->chain->reason = text;
    return false;
}

/* --- the readers ---------------------------------------------------------- */

static bool
add_readers(struct walk *w)
{
    struct qdqi_chain *chain = w->chain;
    if (!qdqi_readers_begin(chain, w->arena))
        return reject(w, "out of memory"); /* the arena remembers */
    for (const struct qdqi_use *use = chain->at->uses; use; use = use->next) {
        const char *why = qdqi_readers_add(w->model, chain, use, w->arena);
        if (why)
            return reject(w, why);
    }
    w->axis = (struct qdqi_channel_axis){chain->rank, chain->rank <= 2};
    return true;
}

/* Returns the axis of the channels, counted from the end: 1 is the last. */
static size_t
from_end(const struct walk *w)
{
    return w->axis.is_last ? 1 : w->axis.rank - 1;
}

/* --- what makes the activation -------------------------------------------- */

/* Normalizations whose inputs 1 and 2 are a scale and a bias for each channel: along the last
   axis, and along axis 1. */
static const char *const norms_of_last_axis[] = {
    "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", NULL};
static const char *const norms_of_axis_1[] = {"BatchNormalization",
                                              "InstanceNormalization", NULL};

/* Normalizations of com.microsoft along the last axis, which add a second input to the first: the
   inputs from `first` to end - 1 are the scale and the bias. A bias that is
   added before the normalization is none of them. */
static const struct sum_norm {
    const char *op;
    size_t first, end;
} sum_norms[] = {{"SkipSimplifiedLayerNormalization", 2, 3},
                 {"SkipLayerNormalization", 2, 4}};

/* Returns the row of a normalization of a sum; NULL: the node is none. */
static const struct sum_norm *
find_sum_norm(const struct qdqi_node *node)
{
    const size_t n = sizeof sum_norms / sizeof *sum_norms;
    for (size_t i = 0; qdqi_node_is_microsoft(node->proto) && i < n; i++)
        if (strcmp(node->proto->op_type, sum_norms[i].op) == 0)
            return &sum_norms[i];
    return NULL;
}

static bool
add_constant(struct walk *w, const struct qdqi_tensor *t, size_t axis_from_end)
{
    struct qdqi_chain *chain = w->chain;
    struct qdqi_maker *maker = &chain->maker;
    chain->fault = qdqi_maker_add(w->model, maker, t, axis_from_end, chain->channels);
    if (!chain->fault && w->axis.rank &&
        maker->constants[maker->n_constants - 1].rank > w->axis.rank)
        chain->fault = "not one value for each channel";
    return !chain->fault ||
           reject(w, qdqi_arena_printf(w->arena, "a constant that makes it is %s",
                                       chain->fault));
}

static void
end_at_layer(struct walk *w, const struct qdqi_node *node)
{
    struct qdqi_chain *chain = w->chain;
    const char *why = qdqi_weight_read(w->model, node, &chain->maker.weight);
    bool has_bias = !qdqi_node_is(node->proto, "MatMul") && node->proto->n_input > 2 &&
                    node->inputs[2];
    if (why)
        reject(w, qdqi_arena_printf(w->arena, "the weight of the layer before it is %s",
                                    why));
    else if (qdqi_weight_is_conv(node) == w->axis.is_last ||
             chain->maker.weight.n_out != chain->channels)
        reject(w, "the layer before it has other channels");
    else if (!has_bias || add_constant(w, node->inputs[2], 1))
        chain->maker.layer = (size_t)(node - w->model->graph.nodes);
}

/* Ends at the layer that makes the values of attention, whose product with probabilities
   the walk has reached. */
static void
end_at_values(struct walk *w)
{
    struct qdqi_chain *chain = w->chain;
    if (!w->axis.is_last || chain->block > 1 || chain->maker.n_constants > 0)
        reject(w, "MatMul makes it");
    else
        chain->reason = qdqi_values_find(w->model, chain->at, chain->channels, w->arena,
                                         &chain->maker);
}

static void
end_at_norm(struct walk *w, const struct qdqi_node *node)
{
    bool is_last_axis = qdqi_node_is_one_of(node->proto, norms_of_last_axis);
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

static void
end_at_sum_norm(struct walk *w, const struct qdqi_node *node,
                const struct sum_norm *row)
{
    if (!w->axis.is_last) {
        reject(w, "the normalization before it has other channels");
        return;
    }
    for (size_t i = row->first; i < row->end && i < node->proto->n_input; i++)
        if (node->inputs[i] && !add_constant(w, node->inputs[i], 1))
            return;
}

/* Returns the layer that makes the values of a GroupQueryAttention, alone or behind the queries and
   keys, and sets the first of its outputs that are values; NULL: there is none. */
static const struct qdqi_node *
layer_of_values(const struct walk *w, const struct qdqi_node *node, int64_t heads,
                int64_t groups, size_t head, size_t *ret_first)
{
    const size_t n = node->proto->n_input;
    const size_t input = n > 2 && node->inputs[2] ? 2 : 0;
    const struct qdqi_tensor *t = n > 2 ? node->inputs[input] : NULL;
    const size_t before = input == 2 ? 0 : (size_t)(heads + groups) * head;
    struct qdqi_weight weight;
    if (!t || t->producer < 0 || t->is_output || t->is_captured || t->uses->next)
        return NULL;
    const struct qdqi_node *layer = &w->model->graph.nodes[t->producer];
    *ret_first = before;
    return qdqi_node_is(layer->proto, "MatMul") && layer->scope == node->scope &&
                   qdqi_weight_is_of_layer(&w->model->graph, layer) &&
                   !qdqi_weight_read(w->model, layer, &weight) &&
                   weight.n_out == before + (size_t)groups * head
               ? layer
               : NULL;
}

/*
 * Ends at the layer that makes the values of grouped attention: heads of a group read the same
 * ones. The cache that the node makes has the factors, too, so the chain has a reason against it
 * unless the caller allows for that.
 */
static void
end_at_grouped_values(struct walk *w, const struct qdqi_node *node)
{
    struct qdqi_chain *chain = w->chain;
    const int64_t heads = qdqi_node_int(node->proto, "num_heads", 0);
    const int64_t groups = qdqi_node_int(node->proto, "kv_num_heads", 0);
    size_t first;
    reject(w, "GroupQueryAttention makes it");
    if (!w->axis.is_last || chain->block > 1 || chain->maker.n_constants > 0 ||
        heads < 1 || groups < 1 || heads % groups != 0 ||
        (uint64_t)heads > chain->channels || chain->channels % (uint64_t)heads != 0 ||
        qdqi_node_int(node->proto, "kv_cache_bit_width", 0) != 0)
        return;
    const size_t head = chain->channels / (size_t)heads;
    const struct qdqi_node *layer =
        layer_of_values(w, node, heads, groups, head, &first);
    uint32_t *outputs = qdqi_arena_array(w->arena, chain->channels, sizeof *outputs);
    if (!layer || !outputs || qdqi_weight_read(w->model, layer, &chain->maker.weight))
        return;
    for (size_t c = 0; c < chain->channels; c++)
        outputs[c] =
            (uint32_t)(first + c / head / (size_t)(heads / groups) * head + c % head);
    chain->maker.outputs = outputs;
    chain->maker.layer = (size_t)(layer - w->model->graph.nodes);
    chain->is_cached = true;
}

/* Ends the walk where a node can take the factors in. Returns whether it ends. */
static bool
ends(struct walk *w, const struct qdqi_node *node)
{
    const struct sum_norm *sum_norm = find_sum_norm(node);
    if (sum_norm)
        end_at_sum_norm(w, node, sum_norm);
    else if (qdqi_node_is_microsoft(node->proto) &&
             strcmp(node->proto->op_type, "GroupQueryAttention") == 0)
        end_at_grouped_values(w, node);
    else if (qdqi_multiplies_activations(node))
        end_at_values(w);
    else if (qdqi_weight_has(node))
        end_at_layer(w, node);
    else if (qdqi_node_is_one_of(node->proto, norms_of_last_axis) ||
             qdqi_node_is_one_of(node->proto, norms_of_axis_1))
        end_at_norm(w, node);
    else
        return false;
    return true;
}

/* --- the way back ----------------------------------------------------------- */

/* Returns the layer that makes a tensor by way of operators alone that keep the rank and the
   axis of channels; NULL: none does. */
static const struct qdqi_node *
layer_before(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    static const char *const sums[] = {"Add", "Mul", NULL};
    while (t && t->producer >= 0) {
        const struct qdqi_node *node = &model->graph.nodes[t->producer];
        int input = 0;
        if (qdqi_weight_has(node))
            return node;
        if (qdqi_node_is_one_of(node->proto, sums))
            input = qdqi_node_variable_input(node);
        else if (!qdqi_passes_factor(model, node, 3) && !qdqi_keeps_rank(node) &&
                 !qdqi_node_is_one_of(node->proto, norms_of_axis_1))
            return NULL;
        t = input < 0 ? NULL : node->inputs[input];
    }
    return NULL;
}

/* Goes back through a Flatten, which makes a block of each channel of the layer before it.
   Returns false when the node is none, or the walk cannot go on. */
static bool
unflatten(struct walk *w, const struct qdqi_node *node)
{
    struct qdqi_chain *chain = w->chain;
    struct qdqi_weight weight;
    if (!qdqi_is_flatten(w->model, node) || !w->axis.is_last ||
        chain->maker.n_constants > 0)
        return false;
    const struct qdqi_node *layer = layer_before(w->model, node->inputs[0]);
    if (!layer || qdqi_weight_read(w->model, layer, &weight) ||
        qdqi_reader_rank(layer) == 0)
        return false;
    if (chain->channels % weight.n_out) {
        chain->end = layer;
        return reject(w, "the layer before it has other channels");
    }
    w->axis.rank = qdqi_reader_rank(layer);
    w->axis.is_last = w->axis.rank == 2;
    if (!w->axis.is_last) {
        chain->block *= chain->channels / weight.n_out;
        chain->channels = weight.n_out;
    }
    return true;
}

/* Returns the input of a product of two activations that a layer with as many outputs as there are
   channels makes, which can take the factors in while the other one stays (the gate of a gated
   layer); -1: there is none. */
static int
gated_input(const struct walk *w, const struct qdqi_node *node)
{
    const struct qdqi_graph *graph = &w->model->graph;
    struct qdqi_weight weight;
    if (!qdqi_node_is(node->proto, "Mul") || node->proto->n_input != 2 ||
        !w->axis.is_last || w->chain->block > 1)
        return -1;
    for (int i = 1; i >= 0; i--) {
        const struct qdqi_tensor *t = node->inputs[i];
        if (!t || t->is_fixed || !node->inputs[!i] || node->inputs[!i]->is_fixed ||
            t->producer < 0 || t->uses->next)
            continue;
        const struct qdqi_node *layer = &graph->nodes[t->producer];
        if (qdqi_weight_is_of_layer(graph, layer) && !qdqi_weight_is_conv(layer) &&
            !qdqi_weight_read(w->model, layer, &weight) &&
            weight.n_out == w->chain->channels)
            return i;
    }
    return -1;
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

/* Takes one step back. Returns false at the end: where the factors are taken in, or where
   `reason` is set. */
static bool
step(struct walk *w)
{
    if (w->at->producer < 0)
        return reject(w, "it is an input of the model");
    const struct qdqi_node *node = &w->model->graph.nodes[w->at->producer];
    bool sums = qdqi_node_is(node->proto, "Add"),
         multiplies = qdqi_node_is(node->proto, "Mul");
    int input = qdqi_node_variable_input(node);
    w->chain->end = node;
    if (node->outputs[0] != w->at || node->scope != w->at->scope)
        return reject(w, "no layer before it can take factors in");
    if (ends(w, node))
        return false;
    if (qdqi_passes_factor(w->model, node, w->axis.is_last ? 2 : w->axis.rank) ||
        unflatten(w, node) ||
        qdqi_channel_axis_back(w->model, node, w->chain->channels, &w->axis))
        return go_on(w, node, 0);
    if (input >= 0 && multiplies && qdqi_is_scalar(w->model, node->inputs[!input]))
        return go_on(w, node, input);
    const int gated = gated_input(w, node);
    if (gated >= 0)
        return go_on(w, node, gated);
    if (input >= 0 && (sums || multiplies))
        return add_constant(w, node->inputs[!input], from_end(w)) && sums &&
               go_on(w, node, input);
    return !w->chain->reason &&
           reject(w, qdqi_arena_printf(w->arena, "%s makes it", node->proto->op_type));
}

static void
follow(struct walk *w)
{
    const struct qdqi_tensor *t = w->chain->at;
    w->chain->maker.layer = w->model->graph.n_nodes;
    if (t->is_output || t->is_captured)
        reject(w, "it is an output, too");
    else if (add_readers(w)) {
        w->at = t;
        while (step(w))
            ;
    }
}

/* --- the model ------------------------------------------------------------ */

void
qdqi_chain_fold(const struct qdqi_chain *chain, double *values)
{
    for (size_t c = 0; c < chain->channels; c++) {
        double largest = 0;
        for (size_t k = 0; k < chain->block; k++)
            largest = fmax(largest, values[c * chain->block + k]);
        values[c] = largest;
    }
}

/* Leaves the activation alone when an earlier one changes the same layer's outputs. */
static void
check_maker(const struct qdqi_chain *all, struct qdqi_chain *chain)
{
    for (const struct qdqi_chain *e = all; chain->maker.outputs && e < chain; e++)
        if (!chain->reason && !e->reason && e->maker.layer == chain->maker.layer)
            chain->reason = "another activation comes from the same layer";
}

enum qdq_code
qdqi_chains_find(const struct qdq_model *model, struct qdqi_arena *arena,
                 struct qdqi_chains *ret, struct qdq_error *err)
{
    const struct qdqi_graph *graph = &model->graph;
    struct qdqi_chain *all = qdqi_arena_array(arena, graph->n_nodes, sizeof *all);
    *ret = (struct qdqi_chains){.all = all, .by_tensor = qdqi_map_new(arena)};
    if (!ret->by_tensor || !all)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        const struct qdqi_tensor *t = node->proto->n_input ? node->inputs[0] : NULL;
        if (!qdqi_weight_is_of_layer(graph, node) || !t || t->is_fixed ||
            qdqi_map_get(ret->by_tensor, t->name))
            continue;
        struct qdqi_chain *chain = &all[ret->n++];
        *chain = (struct qdqi_chain){.at = t, .block = 1};
        if (!qdqi_map_put(ret->by_tensor, t->name, chain))
            return qdqi_no_memory(err);
        follow(&(struct walk){.model = model, .arena = arena, .chain = chain});
        check_maker(all, chain);
    }
    return qdqi_arena_exhausted(arena) ? qdqi_no_memory(err) : QDQ_OK;
}
