/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/prepare/prepare.h"

#include "numbers/arithmetic/both.h"
#include "files/model/constant.h"
#include "graph/edit/edit.h"

#include <string.h>

struct stripping {
    const struct qdq_model *model;
    struct qdqi_arena *arena;
    struct qdqi_edit *edit;
    /* for each node: the tensor that replaces a DequantizeLinear's output */
    const char **sources;
    bool *goes; /* for each node: a QuantizeLinear without another reader */
    size_t n;   /* number of DequantizeLinear nodes to remove */
};

static bool
is_op(const struct qdqi_node *node, const char *op)
{
    return qdqi_node_is(node->proto, op) && node->proto->n_input >= 2 &&
           node->inputs[0] && node->inputs[1] && node->proto->n_output == 1 &&
           node->outputs[0];
}

static const struct qdqi_node *
maker_of(const struct stripping *s, const struct qdqi_tensor *t)
{
    return t->producer < 0 ? NULL : &s->model->graph.nodes[t->producer];
}

/* --- stored integers ----------------------------------------------------- */

static int32_t
integer_at(const struct qdqi_constant *c, size_t i)
{
    const uint8_t *at = c->bytes + i * qdqi_dtype_size((int)c->dtype);
    int16_t s16;
    uint16_t u16;
    int32_t s32;
    switch (c->dtype) {
    case QDQI_INT8:
        return (int8_t)*at;
    case QDQI_UINT8:
        return *at;
    case QDQI_INT16:
        memcpy(&s16, at, sizeof s16);
        return s16;
    case QDQI_UINT16:
        memcpy(&u16, at, sizeof u16);
        return u16;
    default:
        memcpy(&s32, at, sizeof s32);
        return s32;
    }
}

static bool
is_integer(enum qdqi_dtype dtype)
{
    return dtype == QDQI_INT8 || dtype == QDQI_UINT8 || dtype == QDQI_INT16 ||
           dtype == QDQI_UINT16 || dtype == QDQI_INT32;
}

/* The constant inputs of a DequantizeLinear. */
struct stored {
    struct qdqi_constant x, scale, zero; /* zero.n is 0 when there is no zero point */
    /* number of scales; elements that share one, side by side */
    size_t channels, inner;
};

static bool
read_input(const struct stripping *s, const struct qdqi_node *node, size_t i,
           struct qdqi_constant *ret)
{
    const struct qdqi_tensor *t = node->inputs[i];
    return t && t->is_fixed && !qdqi_constant_read(s->model, t, ret, NULL) &&
           !ret->strides;
}

/* Reads the constants. Returns false for a form that is not supported: 4 bits,
   blocks, scales of float16. */
static bool
read_stored(const struct stripping *s, const struct qdqi_node *node, struct stored *ret)
{
    bool has_zero = node->proto->n_input > 2 && node->inputs[2];
    *ret = (struct stored){.channels = 1, .inner = 1};
    if (!read_input(s, node, 0, &ret->x) || !is_integer(ret->x.dtype) ||
        !read_input(s, node, 1, &ret->scale) || ret->scale.dtype != QDQI_FLOAT32 ||
        (has_zero &&
         (!read_input(s, node, 2, &ret->zero) || ret->zero.dtype != ret->x.dtype ||
          ret->zero.n != ret->scale.n)) ||
        qdqi_node_int(node->proto, "block_size", 0) ||
        qdqi_node_int(node->proto, "output_dtype", QDQI_FLOAT32) != QDQI_FLOAT32)
        return false;
    if (ret->scale.n == 1)
        return true;
    int64_t rank = (int64_t)ret->x.rank;
    int64_t axis = qdqi_node_int(node->proto, "axis", 1);
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || ret->scale.rank != 1 ||
        ret->scale.dims[0] != ret->x.dims[axis])
        return false;
    ret->channels = ret->scale.n;
    for (int64_t i = axis + 1; i < rank; i++)
        ret->inner *= (size_t)ret->x.dims[i];
    return true;
}

/* Computes the floats of the node: (x - zero) * scale, as DequantizeLinear defines
   it. */
static float *
dequantized(const struct stripping *s, const struct stored *d)
{
    float *to = qdqi_arena_array(s->arena, d->x.n, sizeof *to);
    for (size_t i = 0; to && i < d->x.n; i++) {
        size_t channel = i / d->inner % d->channels;
        int64_t zero = d->zero.n ? integer_at(&d->zero, channel) : 0;
        to[i] = (float)(integer_at(&d->x, i) - zero) *
                qdqi_float_at(d->scale.bytes, channel);
    }
    return to;
}

/* Stores the floats as an initializer and returns its name; NULL when that fails. */
static const char *
store_floats(struct stripping *s, const struct qdqi_node *node)
{
    struct stored d;
    if (!read_stored(s, node, &d) || d.x.n == 0)
        return NULL;
    const char *name = qdqi_edit_name(s->edit, node->inputs[0]->name, "_dequantized");
    float *floats = dequantized(s, &d);
    if (!name || !floats)
        return NULL;
    qdqi_edit_add_tensor(s->edit, name, QDQI_FLOAT32, d.x.rank, d.x.dims, floats,
                         d.x.n * sizeof *floats);
    return name;
}

/* --- pairs ---------------------------------------------------------------- */

/* Returns the tensor that replaces the output of a DequantizeLinear; NULL: the node
   stays. */
static const char *
source_of(struct stripping *s, const struct qdqi_node *node)
{
    const struct qdqi_node *q = maker_of(s, node->inputs[0]);
    if (!q || !is_op(q, "QuantizeLinear"))
        return node->inputs[0]->is_fixed ? store_floats(s, node) : NULL;
    const struct qdqi_tensor *x = q->inputs[0];
    enum qdqi_dtype before = x->dtype, after = node->outputs[0]->dtype;
    if (before != after && before != QDQI_UNKNOWN && after != QDQI_UNKNOWN)
        return NULL; /* a pair that changes the type */
    const char *further = x->producer >= 0 ? s->sources[x->producer] : NULL;
    return further ? further : x->name;
}

static void
find_pairs(struct stripping *s)
{
    const struct qdqi_graph *graph = &s->model->graph;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        if (graph->scopes[node->scope].is_opaque || !is_op(node, "DequantizeLinear"))
            continue;
        s->sources[i] = source_of(s, node);
        s->n += s->sources[i] != NULL;
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        if (!is_op(node, "QuantizeLinear"))
            continue;
        const struct qdqi_tensor *t = node->outputs[0];
        s->goes[i] = t->uses && !t->is_output && !t->is_captured;
        for (const struct qdqi_use *use = t->uses; use; use = use->next)
            s->goes[i] = s->goes[i] && s->sources[use->node];
    }
}

static void
strip(struct stripping *s)
{
    const struct qdqi_graph *graph = &s->model->graph;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_tensor *t = s->sources[i] ? graph->nodes[i].outputs[0] : NULL;
        for (const struct qdqi_use *use = t ? t->uses : NULL; use; use = use->next)
            if (!s->goes[use->node])
                qdqi_edit_set_input(s->edit, use->node, (size_t)use->input,
                                    s->sources[i]);
        if (t && (t->is_output || t->is_captured))
            qdqi_edit_pass_on(s->edit, i, s->sources[i]);
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_tensor *t =
            s->sources[i] || s->goes[i] ? graph->nodes[i].outputs[0] : NULL;
        if (t)
            qdqi_edit_drop_unused(s->edit, t->name);
    }
}

/* Adds one warning for all nodes that form no pair or have an unsupported form. */
static enum qdq_code
warn_left_pairs(struct qdqi_preparing *p, const struct stripping *s,
                struct qdq_error *err)
{
    const struct qdqi_graph *graph = &s->model->graph;
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct qdqi_node *node = &graph->nodes[i];
        if ((qdqi_node_is(node->proto, "DequantizeLinear") && !s->sources[i]) ||
            (qdqi_node_is(node->proto, "QuantizeLinear") && !s->goes[i]))
            first = n++ ? first : node->name;
    }
    if (n == 0)
        return QDQ_OK;
    return qdqi_warn(&p->warnings, p->arena, err, "qdq_left", first,
                     "%zu Q/DQ nodes, this one first, are no pair that can be taken "
                     "out, and stay",
                     n);
}

enum qdq_code
qdqi_step_remove_pairs(struct qdqi_preparing *p, struct qdq_model **ret,
                       struct qdq_error *err)
{
    struct stripping s = {.model = p->model};
    size_t n = p->model->graph.n_nodes;
    enum qdq_code code = QDQ_OK;
    if (p->spec->existing_qdq != QDQ_EXISTING_STRIP)
        return QDQ_OK;
    if ((s.arena = qdqi_arena_new())) {
        s.edit = qdqi_edit_new(p->model, s.arena);
        s.sources = qdqi_arena_array(s.arena, n, sizeof *s.sources);
        s.goes = qdqi_arena_array(s.arena, n, sizeof *s.goes);
    }
    if (!s.edit || !s.sources || !s.goes) {
        code = qdqi_no_memory(err);
        goto out;
    }
    find_pairs(&s);
    if (qdqi_arena_exhausted(s.arena)) {
        code = qdqi_no_memory(err);
        goto out;
    }
    strip(&s);
    if (!(code = warn_left_pairs(p, &s, err)) && s.n > 0)
        code = qdqi_edit_derive(s.edit, &s.arena, ret, err);
out:
    qdqi_arena_free(&s.arena);
    return code;
}
