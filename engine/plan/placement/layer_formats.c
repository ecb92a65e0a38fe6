/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/layer_formats.h"

#include "plan/placement/formats.h"
#include "plan/placement/target.h"

#include <stdio.h>

const struct qdq_layer_format *
qdqi_node_format(const struct planner *p, size_t node)
{
    const struct qdq_layer_format *own = p->formats ? p->formats[node] : NULL;
    return own ? own : &p->plan->format;
}

/* --- conflicts ---------------------------------------------------------------- */

static bool
same_weights(const struct qdq_weights *a, const struct qdq_weights *b)
{
    return a->format == b->format && a->granularity == b->granularity &&
           (a->granularity != QDQ_PER_BLOCK || a->block == b->block) &&
           a->storage == b->storage && a->method == b->method &&
           a->rounding == b->rounding && a->range == b->range && a->scales == b->scales;
}

static bool
same_activations(const struct qdq_activations *a, const struct qdq_activations *b)
{
    return a->format == b->format && a->symmetric == b->symmetric;
}

/* Fails because the entries of two nodes state different formats of one tensor. */
static enum qdq_code
conflict(const struct planner *p, size_t first, size_t second, const char *member,
         const char *tensor, struct qdq_error *err)
{
    const struct qdqi_choice *a = &p->selection.choices[first],
                             *b = &p->selection.choices[second];
    const struct qdqi_node *nodes = p->model->graph.nodes;
    const bool is_case = b->rank == QDQI_BY_CASE;
    char place[96];
    snprintf(place, sizeof place, is_case ? "%s" : "%s/%s", b->pointer, member);
    return qdq_error_set(
        err, is_case ? QDQ_CASE_FAILED : QDQ_INVALID_SPEC, QDQ_AT_POINTER, place,
        "%s and %s give '%.96s' different %s, for '%.96s' and "
        "'%.96s', which share it: state the same in both, or in one",
        a->reason, b->reason, tensor, member, nodes[first].name, nodes[second].name);
}

/* --- weights ------------------------------------------------------------------- */

/* Returns the weight of a node whose class has one, or NULL. */
static const struct qdqi_tensor *
weight_of(const struct planner *p, size_t node)
{
    const struct qdqi_class *cls = p->graph->classes[node];
    const struct qdqi_node *n = &p->model->graph.nodes[node];
    if (!cls || cls->kind != QDQ_WEIGHTED || cls->is_operand)
        return NULL;
    const int w = qdqi_weight_input(cls, n);
    return w >= 0 && qdqi_input_is_constant(n, w) ? n->inputs[w] : NULL;
}

/* Sets the formats of the nodes whose entries state some. Returns how many there are in
   *ret. */
static enum qdq_code
resolve(struct planner *p, size_t *ret, struct qdq_error *err)
{
    const size_t n = p->model->graph.n_nodes;
    *ret = 0;
    for (size_t i = 0; i < n; i++) {
        const struct qdq_layer_entry *entry = p->selection.choices[i].entry;
        if (!entry || !p->graph->classes[i] || !(entry->weights || entry->activations))
            continue;
        struct qdq_layer_format *f = qdqi_arena_alloc(p->plan->arena, sizeof *f);
        if (!p->formats)
            p->formats = qdqi_arena_array(p->plan->arena, n, sizeof(*p->formats));
        if (!f || !p->formats)
            return qdqi_no_memory(err);
        *f = qdqi_entry_format(p->spec, entry);
        p->formats[i] = f;
        *ret += 1;
    }
    return QDQ_OK;
}

static bool
states_weights(const struct planner *p, size_t node)
{
    const struct qdq_layer_entry *entry = p->selection.choices[node].entry;
    return entry && entry->weights && entry->quantize_weight;
}

/* Maps each weight for which an entry states a format to the format of its first node. */
static enum qdq_code
map_weights(struct planner *p, struct qdqi_map *stated, struct qdq_error *err)
{
    for (size_t i = 0; i < p->model->graph.n_nodes; i++) {
        const struct qdqi_tensor *t = states_weights(p, i) ? weight_of(p, i) : NULL;
        if (!t)
            continue;
        const struct qdq_layer_format **first = qdqi_map_get(stated, t->name);
        if (!first && !qdqi_map_put(stated, t->name, (void *)&p->formats[i]))
            return qdqi_no_memory(err);
        if (first && !same_weights(&(*first)->weights, &p->formats[i]->weights))
            return conflict(p, (size_t)(first - p->formats), i, "weights", t->name,
                            err);
    }
    return QDQ_OK;
}

/* Gives weights that an entry states a format for that format in their other layers. */
static enum qdq_code
share_weights(struct planner *p, struct qdqi_map *stated, struct qdq_error *err)
{
    for (size_t i = 0; i < p->model->graph.n_nodes; i++) {
        const struct qdqi_tensor *t = states_weights(p, i) ? NULL : weight_of(p, i);
        const struct qdq_layer_format **first =
            t ? qdqi_map_get(stated, t->name) : NULL;
        if (!first)
            continue;
        struct qdq_layer_format *f = qdqi_arena_alloc(p->plan->arena, sizeof *f);
        if (!f)
            return qdqi_no_memory(err);
        *f = *qdqi_node_format(p, i);
        f->weights = (*first)->weights;
        p->formats[i] = f;
    }
    return QDQ_OK;
}

enum qdq_code
qdqi_layer_formats_begin(struct planner *p, struct qdq_error *err)
{
    size_t n;
    p->plan->format = qdqi_entry_format(p->spec, NULL);
    enum qdq_code code = resolve(p, &n, err);
    if (code || n == 0)
        return code;
    struct qdqi_map *stated = qdqi_map_new(p->plan->arena);
    if (!stated)
        return qdqi_no_memory(err);
    code = map_weights(p, stated, err);
    return code ? code : share_weights(p, stated, err);
}

/* --- activations ------------------------------------------------------------------ */

/* The formats that entries state of a tensor. A layer that reads it from a pair goes before the one that
   makes it. */
struct claim {
    const struct qdq_activations *format; /* NULL: no entry says anything */
    size_t node;
    bool by_reader;
};

/* Returns what the entry of a layer says of activations, or NULL. */
static const struct qdq_activations *
stated(const struct planner *p, size_t node)
{
    const struct qdq_layer_entry *entry = p->selection.choices[node].entry;
    return p->by_node[node] && entry && entry->activations && entry->quantize_input
               ? &p->formats[node]->activations
               : NULL;
}

/* Adds a claim to another, if it is not weaker. */
static enum qdq_code
join(const struct planner *p, struct claim *to, const struct claim *from,
     const char *tensor, struct qdq_error *err)
{
    if (!from->format || (to->format && to->by_reader && !from->by_reader))
        return QDQ_OK;
    if (to->format && to->by_reader == from->by_reader &&
        !same_activations(to->format, from->format))
        return conflict(p, to->node, from->node, "activations", tensor, err);
    if (!to->format || to->by_reader != from->by_reader)
        *to = *from;
    return QDQ_OK;
}

/* Returns whether a node's layer has a pair on its output `t`. */
static bool
makes_pair(const struct planner *p, size_t node, const struct qdqi_tensor *t)
{
    const struct qdq_layer *layer = p->by_node[node];
    for (size_t i = 0; layer && i < layer->n_outputs; i++)
        if (qdqi_node_of(p, layer)->outputs[layer->quantized_outputs[i]] == t)
            return true;
    return false;
}

static enum qdq_code
claim_of(const struct planner *p, const struct qdqi_tensor *t, struct claim *ret,
         struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    *ret = (struct claim){NULL};
    if (t->producer >= 0 && makes_pair(p, (size_t)t->producer, t))
        *ret =
            (struct claim){stated(p, (size_t)t->producer), (size_t)t->producer, false};
    for (const struct qdqi_use *use = t->uses; use && !code; use = use->next) {
        const struct claim c = {stated(p, use->node), use->node, true};
        if (c.format && qdqi_layer_has_pair(p->by_node[use->node], use->input))
            code = join(p, ret, &c, t->name, err);
    }
    return code;
}

const struct qdq_activations *
qdqi_tensor_format(const struct planner *p, const struct qdqi_tensor *t)
{
    struct claim c = {NULL};
    if (p->formats && claim_of(p, t, &c, NULL))
        return &p->plan->format.activations; /* which the settling refuses */
    if (c.format || t->producer < 0)
        return c.format ? c.format : &p->plan->format.activations;
    return &qdqi_node_format(p, (size_t)t->producer)->activations;
}

enum qdq_code
qdqi_tensor_formats_settle(struct planner *p, struct qdq_error *err)
{
    struct qdq_plan *plan = p->plan;
    const size_t n = plan->view.n_tensors;
    struct claim *claims =
        p->formats ? qdqi_arena_array(plan->arena, n, sizeof *claims) : NULL;
    enum qdq_code code = claims || !p->formats ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; i < n && claims && !code; i++) {
        struct claim c;
        code = claim_of(p, plan->activations[i].tensor, &c, err);
        if (!code)
            code = join(p, &claims[plan->activations[i].leader], &c,
                        plan->view.tensors[i], err);
    }
    for (size_t i = 0; i < n && !code; i++) {
        struct qdqi_planned_tensor *t = &plan->activations[i];
        const struct qdq_activations *f = claims ? claims[t->leader].format : NULL;
        t->is_stated = f != NULL;
        f = f ? f : &plan->format.activations;
        t->format = (enum qdqi_format)f->format;
        t->symmetric = f->symmetric == QDQ_YES;
    }
    return code;
}

/* --- what targets ask ---------------------------------------------------------------- */

bool
qdqi_layer_multiplies_bytes(const struct planner *p, const struct qdq_layer *layer)
{
    return !p->spec->weight_only &&
           qdqi_is_8_bit_integer(layer->format->weights.format) &&
           qdqi_is_8_bit_integer(layer->format->activations.format);
}

void
qdqi_layer_formats_note(struct planner *p)
{
    const struct qdq_plan *plan = p->plan;
    for (size_t i = 0; i < p->n_layers; i++) {
        struct qdq_layer *layer = &p->layers[i];
        if (layer->weight_input >= 0) {
            const struct qdqi_planned_weight *w = &plan->weights[layer->weight_row];
            layer->weight_dtype = qdqi_format_row((int)w->format)->name;
            layer->weight_block = w->block;
        }
        if (layer->n_inputs > 0)
            layer->input_dtype =
                qdqi_format_row((int)plan->activations[layer->input_rows[0]].format)
                    ->name;
    }
}
