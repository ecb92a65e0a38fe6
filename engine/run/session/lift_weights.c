/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/session/lift_weights.h"

#include <string.h>

/* bytes; smaller weights are left where they are, since copying them is cheap */
enum { MIN_LIFTED = 1 << 20 };

/* Functions here do not report a failed allocation: the arena remembers it, and
   qdqi_lift_weights() checks it at its end. */
struct lifting {
    const struct qdqi_bulks *bulks;
    struct qdqi_arena *arena;
    struct qdqi_map *names; /* names of the main graph's initializers */
    Onnx__TensorProto **rows;
    size_t n, cap;
};

static void *
copy_of(struct lifting *l, const void *message, size_t size)
{
    void *copy = qdqi_arena_alloc(l->arena, size);
    if (copy)
        memcpy(copy, message, size);
    return copy;
}

static bool
is_large(const struct lifting *l, const Onnx__TensorProto *t)
{
    for (size_t i = 0; t && i < t->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *f = &t->base.unknown_fields[i];
        int64_t index = f->tag == QDQI_BULK_FIELD
                            ? qdqi_bulk_index(f->data, f->len, l->bulks->n)
                            : -1;
        if (index >= 0)
            return l->bulks->rows[index].size >= MIN_LIFTED;
    }
    return false;
}

/* Adds the tensor to the lifted ones. Returns false when an initializer already has
   the name, as happens between the two halves of a twin, or when out of memory. */
static bool
lift(struct lifting *l, const Onnx__TensorProto *t, char *name)
{
    if (!name || !*name || qdqi_map_get(l->names, name))
        return false;
    Onnx__TensorProto *copy = copy_of(l, t, sizeof *copy);
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 16;
        Onnx__TensorProto **rows = qdqi_arena_array(l->arena, cap, sizeof *rows);
        if (!rows)
            return false;
        if (l->n)
            memcpy(rows, l->rows, l->n * sizeof *rows);
        l->rows = rows;
        l->cap = cap;
    }
    if (!copy || !qdqi_map_put(l->names, name, copy))
        return false;
    copy->name = name;
    l->rows[l->n++] = copy;
    return true;
}

/* Lifts the value of a Constant node. Returns whether the node is replaced by an
   initializer. */
static bool
lift_constant(struct lifting *l, const Onnx__NodeProto *node)
{
    const Onnx__AttributeProto *value =
        qdqi_node_is(node, "Constant") && node->n_output == 1
            ? qdqi_node_attribute(node, "value")
            : NULL;
    return value && is_large(l, value->t) && lift(l, value->t, node->output[0]);
}

static Onnx__GraphProto *lift_graph(struct lifting *l, Onnx__GraphProto *g,
                                    bool is_main);

static bool
has_graphs(const Onnx__NodeProto *node)
{
    bool found = false;
    for (size_t i = 0; i < node->n_attribute; i++)
        found |= node->attribute[i]->g || node->attribute[i]->n_graphs;
    return found;
}

static bool
is_control_flow(const Onnx__NodeProto *node)
{
    return qdqi_node_is(node, "If") || qdqi_node_is(node, "Loop") ||
           qdqi_node_is(node, "Scan");
}

static Onnx__NodeProto *
lift_bodies(struct lifting *l, Onnx__NodeProto *node)
{
    Onnx__NodeProto *copy = copy_of(l, node, sizeof *copy);
    Onnx__AttributeProto **all =
        qdqi_arena_array(l->arena, node->n_attribute, sizeof *all);
    for (size_t i = 0; copy && all && i < node->n_attribute; i++) {
        all[i] = node->attribute[i];
        if (!all[i]->g || !(all[i] = copy_of(l, all[i], sizeof **all)))
            continue;
        all[i]->g = lift_graph(l, all[i]->g, false);
    }
    if (!copy || !all)
        return NULL;
    copy->attribute = all;
    return copy;
}

static void
lift_initializers(struct lifting *l, Onnx__GraphProto *g)
{
    Onnx__TensorProto **left =
        qdqi_arena_array(l->arena, g->n_initializer, sizeof *left);
    size_t n = 0;
    for (size_t i = 0; left && i < g->n_initializer; i++)
        if (!is_large(l, g->initializer[i]) ||
            !lift(l, g->initializer[i], g->initializer[i]->name))
            left[n++] = g->initializer[i];
    g->initializer = left;
    g->n_initializer = left ? n : 0;
}

static Onnx__GraphProto *
lift_graph(struct lifting *l, Onnx__GraphProto *g, bool is_main)
{
    Onnx__GraphProto *copy = copy_of(l, g, sizeof *copy);
    Onnx__NodeProto **nodes = qdqi_arena_array(l->arena, g->n_node, sizeof *nodes);
    size_t n = 0;
    if (!copy || !nodes)
        return NULL;
    if (!is_main)
        lift_initializers(l, copy);
    for (size_t i = 0; i < g->n_node; i++) {
        bool bodies = has_graphs(g->node[i]) && is_control_flow(g->node[i]);
        if (!lift_constant(l, g->node[i]))
            nodes[n++] = bodies ? lift_bodies(l, g->node[i]) : g->node[i];
    }
    copy->node = nodes;
    copy->n_node = n;
    return copy;
}

/* Appends the lifted tensors to the initializers of the main graph. */
static void
add_lifted(struct lifting *l, Onnx__GraphProto *g)
{
    size_t n = g->n_initializer;
    Onnx__TensorProto **all = qdqi_arena_array(l->arena, n + l->n, sizeof *all);
    if (!all)
        return;
    if (n)
        memcpy(all, g->initializer, n * sizeof *all);
    if (l->n)
        memcpy(all + n, l->rows, l->n * sizeof *all);
    g->initializer = all;
    g->n_initializer = n + l->n;
}

enum qdq_code
qdqi_lift_weights(const struct qdqi_runnable *model, struct qdqi_arena *arena,
                  const Onnx__ModelProto **ret, struct qdq_error *err)
{
    struct lifting l = {
        .bulks = &model->bulks, .arena = arena, .names = qdqi_map_new(arena)};
    Onnx__GraphProto *main_graph = model->proto->graph, *graph;
    Onnx__ModelProto *copy = copy_of(&l, model->proto, sizeof *copy);
    if (!l.names || !copy)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < main_graph->n_initializer; i++)
        if (main_graph->initializer[i]->name &&
            !qdqi_map_put(l.names, main_graph->initializer[i]->name, &l))
            return qdqi_no_memory(err);
    graph = lift_graph(&l, main_graph, true);
    if (graph)
        add_lifted(&l, graph);
    if (qdqi_arena_exhausted(arena) || !graph)
        return qdqi_no_memory(err);
    copy->graph = graph;
    *ret = l.n ? copy : model->proto;
    return QDQ_OK;
}
