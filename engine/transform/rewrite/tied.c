/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/rewrite/tied.h"

#include "files/model/constant.h"
#include "graph/weights/integers.h"

#include <string.h>

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
static const int16_t *
transpose(struct qdqi_arena *arena, const int16_t *from, const int64_t *dims)
{
    const size_t rows = (size_t)dims[0], columns = (size_t)dims[1];
    int16_t *ret = qdqi_arena_array(arena, rows * columns, sizeof *ret);
    for (size_t i = 0; ret && i < rows; i++)
        for (size_t k = 0; k < columns; k++)
            ret[k * rows + i] = from[i * columns + k];
    return ret;
}

/* Makes the parameters of the table from those of its transpose. Returns false when out of memory. */
static bool
turn(struct tied *t, const struct qdqi_tensor *table)
{
    struct qdqi_arena *arena = t->p->arena;
    struct qdqi_params *params = qdqi_arena_alloc(arena, sizeof *params);
    struct qdqi_constant *c = qdqi_arena_alloc(arena, sizeof *c);
    if (!params || !c || qdqi_constant_read(t->p->source, table, c, NULL))
        return false;
    *params = *t->q.params;
    params->axis = params->axis < 0 ? -1 : 0;
    params->rounded_floats = NULL;
    if (params->rounded &&
        !(params->rounded = transpose(arena, params->rounded, t->q.dims)))
        return false;
    params->integers = qdqi_integers_new(arena, c, params);
    t->q.dims = c->dims;
    t->q.params = params;
    return params->integers;
}

static const char *
dequantize(const struct tied *t, bool turned)
{
    static const int64_t swapped[] = {1, 0};
    const char *inputs[] = {t->integers, t->beside.scale, t->beside.zero};
    Onnx__NodeProto *node;
    const char *made = add(t, t->at, "DequantizeLinear", t->q.tensor,
                           "_DequantizeLinear", inputs, 3, &node);
    if (t->q.params->axis >= 0)
        qdqi_edit_add_int(t->p->edit, node, "axis", t->q.params->axis);
    if (!turned || !made)
        return made;
    made = add(t, t->at, "Transpose", t->q.tensor, "_Transpose", &made, 1, &node);
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

const char *
qdqi_store_tied(struct qdqi_pairs *p, size_t at, const struct qdqi_tensor *table,
                const struct qdqi_quantized *q)
{
    const struct qdqi_use *use = next_gather(p, table->uses);
    const bool turned = strcmp(table->name, q->tensor) != 0;
    struct tied t = {.p = p, .q = *q, .at = at, .first = use->node};
    if ((turned && !turn(&t, table)) ||
        !(t.integers = qdqi_pairs_store(p, &t.q, &t.beside)) ||
        !(t.scales = widen(&t, t.beside.scale)) ||
        (q->params->zero_points && !(t.zeros = widen(&t, t.beside.zero))))
        return NULL;
    for (; use; use = next_gather(p, use->next))
        if (!replace(&t, use->node))
            return NULL;
    return dequantize(&t, turned);
}
