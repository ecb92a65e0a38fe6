/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/reconstruct/layers.h"

#include "graph/layers/bias.h"
#include "graph/layers/moment_form.h"

#include <stdlib.h>
#include <string.h>

/* Returns the Add that alone reads a tensor, beside another one that is computed from data; NULL: there
   is none. */
static const struct qdqi_node *
sum_behind(const struct qdq_model *model, const struct qdqi_tensor *t)
{
    if (!t->uses || t->uses->next || t->is_captured)
        return NULL;
    const struct qdqi_node *node = &model->graph.nodes[t->uses->node];
    const struct qdqi_tensor *other = node->inputs[1 - (t->uses->input > 0)];
    return qdqi_node_is(node->proto, "Add") && node->scope == t->scope && other &&
                   other != t && !other->is_fixed && node->outputs[0]
               ? node
               : NULL;
}

static const struct qdqi_tensor *
find_target(const struct qdq_model *model, const struct qdqi_node *layer)
{
    const struct qdqi_bias_place bias = qdqi_bias_find(model, layer);
    const struct qdqi_tensor *t = layer->outputs[0];
    const struct qdqi_node *sum;
    if (bias.tensor && model->graph.nodes[bias.node].outputs[0])
        t = model->graph.nodes[bias.node].outputs[0];
    while ((sum = sum_behind(model, t)))
        t = sum->outputs[0];
    return t;
}

static size_t
count_users(const struct qdq_plan_view *plan, size_t weight)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->n_layers; i++)
        n += plan->layers[i].weight_input >= 0 && plan->layers[i].weight_row == weight;
    return n;
}

/* Sets *ret to layer i. Returns why its weight cannot be rounded against outputs, or NULL. */
static const char *
make_row(const struct qdqi_attempt *a, size_t i, struct qdqi_rebuilt *ret)
{
    const struct qdq_layer *layer = &a->plan->view.layers[i];
    const struct qdqi_node *node = &a->model->graph.nodes[layer->node];
    const struct qdqi_tensor *weight = node->inputs[layer->weight_input];
    *ret =
        (struct qdqi_rebuilt){.layer = i,
                              .weight = layer->weight_row,
                              .shifted = QDQI_NONE,
                              .form = qdqi_map_get(a->moments->by_weight, weight->name),
                              .input = node->inputs[0],
                              .fits = true};
    if (count_users(&a->plan->view, ret->weight) > 1)
        return "several layers share the weight";
    if (node->scope != 0)
        return "the layer is in a nested graph";
    if (ret->form->moments[0].block < ret->form->moments[0].k)
        return "an output of the layer has more than 4,608 weights";
    if (!qdqi_layer_window(node, weight, &ret->window))
        return "the layer's attributes do not fit its weight";
    ret->target = find_target(a->model, node);
    for (size_t k = 0; k < a->scales.n_shifted; k++)
        if (a->scales.shifted[k].layer == i)
            ret->shifted = k;
    return ret->target->dtype == QDQI_FLOAT32 ? NULL : "it does not make float32";
}

enum qdq_code
qdqi_warn_kept(const struct qdqi_attempt *a, size_t layer, size_t n, const char *why,
               struct qdq_error *err)
{
    return qdqi_attempt_warn(
        a, err, "not_reconstructed", a->plan->view.layers[layer].name,
        "%zu layers, this one first, keep the rounding \"gptq\": %s", n, why);
}

/* Layers that cannot be rounded so, for one reason. */
struct kept {
    const char *why;
    size_t first, n;
};

enum { MAX_REASONS = 8 };

static void
count_kept(struct kept *rows, const char *why, size_t layer)
{
    struct kept *row = rows;
    while (row < rows + MAX_REASONS - 1 && row->why && strcmp(row->why, why) != 0)
        row++;
    row->why = why;
    if (row->n++ == 0)
        row->first = layer;
}

static enum qdq_code
warn_all(const struct qdqi_attempt *a, const struct kept *rows, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < MAX_REASONS && rows[i].n > 0 && !code; i++)
        code = qdqi_warn_kept(a, rows[i].first, rows[i].n, rows[i].why, err);
    return code;
}

static int
by_node(const void *a, const void *b)
{
    const struct qdqi_rebuilt *x = a, *y = b;
    return x->layer < y->layer ? -1 : x->layer > y->layer; /* as the nodes */
}

/* Divides the layers among steps. */
static void
choose_steps(struct qdqi_rebuilt_layers *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const bool is_new = i == 0 || l->rows[i].input != l->rows[i - 1].input;
        l->steps += is_new;
        l->rows[i].step = l->steps - 1;
    }
    for (size_t i = 0; i < l->n && l->steps > QDQI_MOST_STEPS; i++)
        l->rows[i].step = l->rows[i].step * QDQI_MOST_STEPS / l->steps;
    l->steps = l->steps < QDQI_MOST_STEPS ? l->steps : QDQI_MOST_STEPS;
}

/* Returns whether the weight of layer i is to be rounded so, and was rounded by moments. */
static bool
is_wanted(const struct qdqi_attempt *a, size_t i)
{
    const struct qdq_layer *layer = &a->plan->view.layers[i];
    return layer->weight_input >= 0 &&
           a->plan->weights[layer->weight_row].rounding == QDQ_ROUND_RECONSTRUCT &&
           a->scales.weights[layer->weight_row].rounded;
}

enum qdq_code
qdqi_rebuilt_find(struct qdqi_attempt *a, struct qdqi_rebuilt_layers *ret,
                  struct qdq_error *err)
{
    const size_t n = a->plan->view.n_layers;
    struct kept kept[MAX_REASONS] = {{0}};
    *ret = (struct qdqi_rebuilt_layers){
        .rows = qdqi_arena_array(a->scratch, n, sizeof *ret->rows)};
    if (!ret->rows)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n && a->moments; i++) {
        if (!is_wanted(a, i))
            continue;
        const char *why = make_row(a, i, &ret->rows[ret->n]);
        ret->n += !why;
        if (why)
            count_kept(kept, why, i);
    }
    qsort(ret->rows, ret->n, sizeof *ret->rows, by_node);
    choose_steps(ret);
    return warn_all(a, kept, err);
}
