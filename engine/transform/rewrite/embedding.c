/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/rewrite/embedding.h"

#include "graph/layers/operators.h"

#include <string.h>

enum { MOST_AXES = 8 };

/* The integers that are gathered in the place of rows of the table. */
struct sharing {
    struct qdqi_pairs *p;
    const struct qdqi_nbits *stored; /* NULL: Gathers are counted alone */
    const struct qdqi_tensor *table; /* the transposed weight, as the Gather reads it */
    size_t node;                     /* the Gather */
    size_t rank;                     /* of its indices */
    size_t n;                        /* Gathers */
};

/* --- the graph ------------------------------------------------------------------- */

/* Returns the rank of the indices, which are an input of the model; 0: it is not known. */
static size_t
rank_of_indices(const struct qdqi_pairs *p, const struct qdqi_tensor *indices)
{
    const struct qdq_model_info *info = &p->source->info;
    for (size_t i = 0; indices && i < info->n_inputs; i++)
        if (strcmp(info->inputs[i].name, indices->name) == 0)
            return info->inputs[i].has_shape ? info->inputs[i].rank : 0;
    return 0;
}

/* --- new nodes --------------------------------------------------------------------- */

static const char *
name_of(const struct sharing *s, const char *suffix)
{
    const struct qdqi_node *node = &s->p->source->graph.nodes[s->node];
    return qdqi_pairs_name(s->p, node->outputs[0]->name, suffix);
}

/* Adds a node. Returns the name of what it makes; NULL when out of memory. */
static const char *
add(const struct sharing *s, const char *op, const char *suffix,
    const char *const *inputs, size_t n, Onnx__NodeProto **ret)
{
    const char *name = name_of(s, suffix), *output = name_of(s, suffix);
    bool ok = name && output;
    for (size_t i = 0; i < n; i++)
        ok = ok && inputs[i];
    *ret = ok ? qdqi_edit_add_node(s->p->edit, s->node, op, name, inputs, n, output)
              : NULL;
    return ok ? output : NULL;
}

static const char *
gather(const struct sharing *s, const char *from, const char *suffix)
{
    const struct qdqi_node *node = &s->p->source->graph.nodes[s->node];
    const char *inputs[] = {from, node->inputs[1]->name};
    Onnx__NodeProto *made;
    return add(s, "Gather", suffix, inputs, 2, &made);
}

/* Adds a constant of one axis, or of none where n is 0: it has one element then. */
static const char *
add_constant(const struct sharing *s, const char *suffix, enum qdqi_dtype dtype,
             const void *values, size_t n, size_t size)
{
    const char *name = name_of(s, suffix);
    const size_t bytes = (n ? n : 1) * size;
    void *copy = qdqi_arena_copy(s->p->arena, values, bytes, 1);
    const int64_t dims[] = {(int64_t)n};
    if (!name || !copy)
        return NULL;
    qdqi_edit_add_tensor(s->p->edit, name, dtype, n ? 1 : 0, dims, copy, bytes);
    return name;
}

static const char *
constant(const struct sharing *s, const char *suffix, const int64_t *values, size_t n)
{
    return add_constant(s, suffix, QDQI_INT64, values, n, sizeof *values);
}

static const char *
number(const struct sharing *s, const char *suffix, float value)
{
    return add_constant(s, suffix, QDQI_FLOAT32, &value, 0, sizeof value);
}

static const char *
to_float(const struct sharing *s, const char *from, const char *suffix)
{
    Onnx__NodeProto *made;
    const char *output = add(s, "Cast", suffix, &from, 1, &made);
    qdqi_edit_add_int(s->p->edit, made, "to", QDQI_FLOAT32);
    return output;
}

static const char *
compute(const struct sharing *s, const char *op, const char *suffix, const char *a,
        const char *b)
{
    const char *inputs[] = {a, b};
    Onnx__NodeProto *made;
    return add(s, op, suffix, inputs, 2, &made);
}

/* Reshapes what was gathered: the axes of the indices stay, those behind them become these. */
static const char *
reshape(const struct sharing *s, const char *from, const char *suffix,
        const int64_t *behind, size_t n)
{
    int64_t shape[MOST_AXES + 2] = {0}; /* 0: as it is */
    memcpy(shape + s->rank, behind, n * sizeof *behind);
    return compute(s, "Reshape", suffix, from,
                   constant(s, "_shape", shape, s->rank + n));
}

/* Parts bytes that hold two numbers of 4 bits, the first one in the lower bits. The numbers have an
   axis of two behind the others. This is done by floats, which are exact, because runtimes
   differ in what they compute with bytes. */
static const char *
part(const struct sharing *s, const char *bytes, const char *axes)
{
    Onnx__NodeProto *made;
    const char *shifted =
        compute(s, "Mul", "_shifted", bytes, number(s, "_sixteenth", 1.0f / 16));
    const char *high = add(s, "Floor", "_high", &shifted, 1, &made);
    const char *low =
        compute(s, "Sub", "_low", bytes,
                compute(s, "Mul", "_high_part", high, number(s, "_sixteen", 16.0f)));
    const char *both[] = {compute(s, "Unsqueeze", "_low_last", low, axes),
                          compute(s, "Unsqueeze", "_high_last", high, axes)};
    const char *output = add(s, "Concat", "_both", both, 2, &made);
    qdqi_edit_add_int(s->p->edit, made, "axis", -1);
    return output;
}

/* Gathers the stored integers of rows, as floats [indices..., blocks, block]. */
static const char *
gather_integers(const struct sharing *s, const char *axes)
{
    const struct qdqi_nbits *w = s->stored;
    const int64_t whole[] = {w->blocks, w->block};
    const char *bytes =
        to_float(s, gather(s, w->integers, "_quantized"), "_quantized_float");
    return w->bits == 8 ? bytes
                        : reshape(s, part(s, bytes, axes), "_integers", whole, 2);
}

/* Gathers their zero points, as floats [indices..., blocks, 1], or makes the one that all have. A row of
   4 bits with an odd number of blocks has half a byte more. */
static const char *
gather_zeros(const struct sharing *s, const char *axes)
{
    static const int64_t begin[] = {0};
    const struct qdqi_nbits *w = s->stored;
    const int64_t stored[] = {(w->blocks + 1) / 2 * 2}, end[] = {w->blocks};
    if (!w->zeros)
        return number(s, "_zero_point", (float)(1 << (w->bits - 1)));
    const char *zeros =
        to_float(s, gather(s, w->zeros, "_zero_point"), "_zero_point_float");
    if (w->bits == 4)
        zeros = reshape(s, part(s, zeros, axes), "_zero_points", stored, 1);
    if (w->bits == 4 && stored[0] > w->blocks) {
        const char *inputs[] = {zeros, constant(s, "_first", begin, 1),
                                constant(s, "_end", end, 1), axes};
        Onnx__NodeProto *made;
        zeros = add(s, "Slice", "_sliced", inputs, 4, &made);
    }
    return compute(s, "Unsqueeze", "_zero_point_last", zeros, axes);
}

/* Dequantizes rows that were gathered. A DequantizeLinear in blocks would do, too, and have the same
   bits, but not every runtime reads one whose input has open sizes. */
static const char *
dequantize(const struct sharing *s, const char *axes)
{
    const char *integers = gather_integers(s, axes), *zeros = gather_zeros(s, axes);
    const char *scales = compute(s, "Unsqueeze", "_scale_last",
                                 gather(s, s->stored->scales, "_scale"), axes);
    return compute(s, "Mul", "_dequantized",
                   compute(s, "Sub", "_difference", integers, zeros), scales);
}

static bool
replace(const struct sharing *s)
{
    static const int64_t last[] = {-1};
    const char *all = reshape(s, dequantize(s, constant(s, "_last_axis", last, 1)),
                              "_rows", &s->stored->k, 1);
    if (!all)
        return false;
    qdqi_edit_pass_on(s->p->edit, s->node, all);
    qdqi_edit_drop_unused(s->p->edit, s->table->name);
    return true;
}

/* --- the weight -------------------------------------------------------------------- */

/* Replaces the Gathers that read rows of the table. */
static bool
share(struct sharing *s)
{
    const struct qdqi_graph *graph = &s->p->source->graph;
    for (const struct qdqi_use *use = s->table->uses; use; use = use->next) {
        const struct qdqi_node *node = &graph->nodes[use->node];
        const int64_t axis = qdqi_node_int(node->proto, "axis", 0);
        if (use->input != 0 || !qdqi_node_is(node->proto, "Gather") ||
            node->proto->n_input != 2 || node->proto->n_output != 1 ||
            (axis != 0 && axis != -2) || node->scope != 0)
            continue;
        s->node = use->node;
        s->rank = rank_of_indices(s->p, node->inputs[1]);
        if (s->rank == 0 || s->rank > MOST_AXES)
            continue;
        s->n++;
        if (s->stored && !replace(s))
            return false;
    }
    return true;
}

/* Visits the Gathers. The weight is the transpose of the table, or the table that of the weight. */
static bool
visit(struct sharing *s, const struct qdqi_tensor *weight)
{
    const struct qdqi_graph *graph = &s->p->source->graph;
    const struct qdqi_node *maker = qdqi_maker_of(graph, weight);
    if (maker && qdqi_swaps_axes(maker)) {
        s->table = maker->inputs[0];
        if (!share(s))
            return false;
    }
    for (const struct qdqi_use *use = weight->uses; use; use = use->next) {
        const struct qdqi_node *node = &graph->nodes[use->node];
        s->table = qdqi_swaps_axes(node) ? node->outputs[0] : NULL;
        if (s->table && !s->table->is_output && !share(s))
            return false;
    }
    return true;
}

bool
qdqi_is_table(const struct qdqi_pairs *p, const struct qdqi_tensor *weight)
{
    struct sharing s = {.p = (struct qdqi_pairs *)(uintptr_t)p};
    return visit(&s, weight) && s.n > 0;
}

bool
qdqi_share_table(struct qdqi_pairs *p, const struct qdqi_tensor *weight,
                 const struct qdqi_nbits *stored)
{
    struct sharing s = {.p = p, .stored = stored};
    return visit(&s, weight);
}
