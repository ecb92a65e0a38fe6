/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/rewrite/tied.h"

#include "files/model/constant.h"
#include "graph/weights/integers.h"
#include "numbers/arithmetic/packed.h"

struct tied {
    struct qdqi_pairs *p;
    struct qdqi_quantized q; /* of the table */
    size_t at, first; /* the places of the weight's nodes, and of the first Gather */
    const char *integers;
    struct qdqi_beside beside;
    const char *scales, *zeros; /* as Gathers read them; NULL: zero points are 0 */
};

/* Adds a node whose name and output are made from a tensor's name. Returns its output. */
static const char *
add(const struct tied *t, size_t at, const char *op, const char *tensor,
    const char *suffix, const char *const *inputs, size_t n, Onnx__NodeProto **ret)
{
    const char *name = qdqi_pairs_name(t->p, tensor, suffix),
               *output = qdqi_pairs_name(t->p, tensor, suffix);
    bool ok = name && output;
    for (size_t i = 0; i < n; i++)
        ok = ok && inputs[i];
    *ret = ok ? qdqi_edit_add_node(t->p->edit, at, op, name, inputs, n, output) : NULL;
    return *ret ? output : NULL;
}

/* Returns the integers that a weight was given in the order of its transpose. */
static const uint8_t *
transpose(struct qdqi_arena *arena, enum qdqi_format format, const uint8_t *from,
          const int64_t *dims)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    const size_t rows = (size_t)dims[0], columns = (size_t)dims[1];
    uint8_t *ret = qdqi_arena_alloc(arena, qdqi_packed_size(row, rows * columns));
    for (size_t i = 0; ret && i < rows; i++)
        for (size_t k = 0; k < columns; k++)
            qdqi_packed_put(row, ret, k * rows + i,
                            qdqi_packed_get(row, from, i * columns + k));
    return ret;
}

/* Makes a constant that is a matrix its transpose. Returns false when out of memory. */
static bool
swap_axes(struct qdqi_arena *arena, struct qdqi_constant *c)
{
    int64_t *dims = qdqi_arena_array(arena, 2, sizeof *dims);
    int64_t *strides = qdqi_arena_array(arena, 2, sizeof *strides);
    if (!dims || !strides)
        return false;
    strides[0] = c->strides ? c->strides[1] : 1;
    strides[1] = c->strides ? c->strides[0] : c->dims[1];
    dims[0] = c->dims[1];
    dims[1] = c->dims[0];
    c->dims = dims;
    c->strides = strides;
    return true;
}

/* Makes the parameters of the table, or without one of the weight's transpose, from those of the weight.
   Returns false when out of memory. */
static bool
turn(struct tied *t, const struct qdqi_tensor *weight, const struct qdqi_tensor *table)
{
    struct qdqi_arena *arena = t->p->arena;
    struct qdqi_params *params = qdqi_arena_alloc(arena, sizeof *params);
    struct qdqi_constant *c = qdqi_arena_alloc(arena, sizeof *c);
    if (!params || !c ||
        qdqi_constant_read(t->p->source, table ? table : weight, c, NULL) ||
        (!table && !swap_axes(arena, c)))
        return false;
    *params = *t->q.params;
    params->axis = params->axis < 0 ? -1 : 0;
    params->rounded_floats = NULL;
    if (params->rounded && !(params->rounded = transpose(arena, params->format,
                                                         params->rounded, t->q.dims)))
        return false;
    params->integers = qdqi_integers_new(arena, c, params);
    t->q.dims = c->dims;
    t->q.params = params;
    return params->integers;
}

static const char *
dequantize(const struct tied *t, const struct qdqi_beside *beside)
{
    const char *inputs[] = {t->integers, beside->scale, beside->zero};
    Onnx__NodeProto *node;
    const char *made = add(t, t->at, "DequantizeLinear", t->q.tensor,
                           "_DequantizeLinear", inputs, 3, &node);
    if (t->q.params->axis >= 0)
        qdqi_edit_add_int(t->p->edit, node, "axis", t->q.params->axis);
    return made;
}

static const char *
turn_back(const struct tied *t, const char *table)
{
    static const int64_t swapped[] = {1, 0};
    Onnx__NodeProto *node;
    const char *made =
        add(t, t->at, "Transpose", t->q.tensor, "_Transpose", &table, 1, &node);
    qdqi_edit_add_ints(t->p->edit, node, "perm", 2, swapped);
    return made;
}

/* Gives scales or zero points of rows a last axis of one element. One for the whole table stays as it
   is. */
static const char *
widen(const struct tied *t, const char *tensor)
{
    static const int64_t last = -1;
    const char *inputs[] = {tensor, qdqi_pairs_name(t->p, t->q.tensor, "_last_axis")};
    Onnx__NodeProto *node;
    if (t->q.params->axis < 0)
        return tensor;
    if (!inputs[1])
        return NULL;
    qdqi_edit_add_tensor(t->p->edit, inputs[1], QDQI_INT64, 1, (const int64_t[]){1},
                         &last, sizeof last);
    return add(t, t->first, "Unsqueeze", t->q.tensor, "_rows", inputs, 2, &node);
}

static const char *
gather(const struct tied *t, size_t i, const char *from, const char *suffix)
{
    const struct qdqi_node *gather = &t->p->source->graph.nodes[i];
    const char *inputs[] = {from, gather->inputs[1]->name};
    Onnx__NodeProto *node;
    return add(t, i, "Gather", gather->outputs[0]->name, suffix, inputs, 2, &node);
}

static const char *
cast(const struct tied *t, size_t i, const char *from, const char *suffix)
{
    Onnx__NodeProto *node;
    const char *made = add(t, i, "Cast", t->p->source->graph.nodes[i].outputs[0]->name,
                           suffix, &from, 1, &node);
    qdqi_edit_add_int(t->p->edit, node, "to", t->q.dtype);
    return made;
}

/* Makes Gather i select integers. The node itself becomes the last one of those in its place. */
static bool
replace(const struct tied *t, size_t i)
{
    const bool each = t->q.params->axis >= 0;
    const char *rows = cast(t, i, gather(t, i, t->integers, "_quantized"), "_float");
    const char *scales = each ? gather(t, i, t->scales, "_scale") : t->scales;
    if (t->zeros) {
        const char *output = t->p->source->graph.nodes[i].outputs[0]->name;
        const char *inputs[] = {
            rows, cast(t, i, each ? gather(t, i, t->zeros, "_zero_point") : t->zeros,
                       "_zero_point_float")};
        Onnx__NodeProto *node;
        rows = add(t, i, "Sub", output, "_difference", inputs, 2, &node);
    }
    if (!rows || !scales)
        return false;
    qdqi_edit_become(t->p->edit, i, "Mul", (const char *const[]){rows, scales});
    return true;
}

/* Returns the first Gather of those that read a table, from a use on; NULL: there is none. */
static const struct qdqi_use *
next_gather(const struct qdqi_pairs *p, const struct qdqi_use *from)
{
    while (from && (from->input != 0 ||
                    !qdqi_node_is(p->source->graph.nodes[from->node].proto, "Gather")))
        from = from->next;
    return from;
}

/* Makes the Gathers of the table select from the dequantized one. Returns that for the layers. */
static const char *
share_whole(struct tied *t, const struct qdqi_tensor *table, bool turned)
{
    const struct qdqi_use *use = next_gather(t->p, table->uses);
    for (const struct qdqi_use *u = use; u; u = next_gather(t->p, u->next))
        t->at = u->node < t->at ? u->node : t->at;
    const char *made = (t->integers = qdqi_pairs_store(t->p, &t->q, &t->beside))
                           ? dequantize(t, &t->beside)
                           : NULL;
    for (; made && use; use = next_gather(t->p, use->next))
        qdqi_edit_set_input(t->p->edit, use->node, 0, made);
    return made && turned ? turn_back(t, made) : made;
}

/* Stores the integers, and makes the Gathers of the table, if there is one, select from them. */
static bool
store(struct tied *t, const struct qdqi_tensor *table)
{
    const struct qdqi_use *use = table ? next_gather(t->p, table->uses) : NULL;
    if (!(t->integers = qdqi_pairs_store(t->p, &t->q, &t->beside)))
        return false;
    if (!use)
        return true;
    t->first = use->node;
    if (!(t->scales = widen(t, t->beside.scale)) ||
        (t->q.params->zero_points && !(t->zeros = widen(t, t->beside.zero))))
        return false;
    for (; use; use = next_gather(t->p, use->next))
        if (!replace(t, use->node))
            return false;
    return true;
}

const char *
qdqi_store_tied(struct qdqi_pairs *p, size_t at, size_t row,
                const struct qdqi_quantized *q)
{
    const struct qdqi_planned_weight *w = &p->plan->weights[row];
    struct tied t = {.p = p, .q = *q, .at = at};
    const bool turned = w->table != w->tensor;
    if (turned && !turn(&t, w->tensor, w->table))
        return NULL;
    if (w->is_whole)
        return share_whole(&t, w->table, turned);
    const char *made = store(&t, w->table) ? dequantize(&t, &t.beside) : NULL;
    return made && turned ? turn_back(&t, made) : made;
}

bool
qdqi_store_apart(struct qdqi_pairs *p, size_t at, size_t row,
                 const struct qdqi_quantized *q)
{
    const struct qdq_plan_view *view = &p->plan->view;
    const struct qdqi_planned_weight *w = &p->plan->weights[row];
    struct tied t = {.p = p, .q = *q, .at = at};
    bool ok = turn(&t, w->tensor, w->table) && store(&t, w->table), first = true;
    for (size_t i = 0; ok && i < view->n_layers; i++) {
        const struct qdq_layer *layer = &view->layers[i];
        struct qdqi_beside beside = t.beside;
        if (layer->weight_input < 0 || layer->weight_row != row)
            continue;
        ok = first || qdqi_pairs_add_beside(p, &t.q, &beside);
        const char *made = ok ? dequantize(&t, &beside) : NULL;
        if (made && (made = turn_back(&t, made)))
            qdqi_edit_set_input(p->edit, layer->node, (size_t)layer->weight_input,
                                made);
        ok = made;
        first = false;
    }
    return ok;
}
