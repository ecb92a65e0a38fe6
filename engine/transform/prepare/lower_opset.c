/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/prepare/lower_opset.h"

#include <stdio.h>
#include <string.h>

/* A change behind the opset that runs. An operator that is new has no attribute. */
struct change {
    const char *op;
    int64_t opset;
    const char *attribute, *by_default;
};

static const struct change changes[] = {
#define LATER_OPERATOR(op, opset) {op, opset, NULL, NULL},
#define LATER_ATTRIBUTE(op, opset, attribute, by_default) \
    {op, opset, attribute, by_default},
#define LATER_TYPES(op, opset)
#include "ground/tbl/later_opsets.h"
#undef LATER_OPERATOR
#undef LATER_ATTRIBUTE
#undef LATER_TYPES
};

/* Failed allocations are found at the end, by the arena. */
struct lowering {
    struct qdqi_arena *arena;
    struct qdqi_obstacle *obstacle;
};

/* --- one node --------------------------------------------------------------- */

static const struct change *
find_change(const Onnx__NodeProto *node)
{
    if (!qdqi_is_onnx_domain(node->domain) || !node->op_type)
        return NULL;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (strcmp(changes[i].op, node->op_type) == 0)
            return &changes[i];
    return NULL;
}

static bool
has_default(const Onnx__AttributeProto *a, const char *text)
{
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)a->i);
    if (a->ref_attr_name && *a->ref_attr_name)
        return false;
    if (a->type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT)
        return strcmp(number, text) == 0;
    return a->s.len == strlen(text) && memcmp(a->s.data, text, a->s.len) == 0;
}

static void
set_obstacle(struct lowering *w, const Onnx__NodeProto *node,
             const struct change *change)
{
    struct qdqi_obstacle *o = w->obstacle;
    if (o->opset)
        return;
    o->opset = change->opset;
    snprintf(o->node, sizeof o->node, "%s",
             node->name && *node->name ? node->name
             : node->n_output          ? node->output[0]
                                       : "");
    snprintf(o->op, sizeof o->op, "%s", change->op);
    snprintf(o->why, sizeof o->why, "%s%s%s came with opset %lld",
             change->attribute ? "its attribute '" : "the operator",
             change->attribute ? change->attribute : "", change->attribute ? "'" : "",
             (long long)change->opset);
}

static Onnx__GraphProto *lower_graph(struct lowering *w,
                                     const Onnx__GraphProto *source);

/* Returns a copy of an attribute with its graphs lowered. */
static Onnx__AttributeProto *
lower_attribute(struct lowering *w, Onnx__AttributeProto *source)
{
    if (!source->g && !source->n_graphs)
        return source;
    Onnx__AttributeProto *a = qdqi_arena_copy(w->arena, source, 1, sizeof *source);
    Onnx__GraphProto **graphs =
        qdqi_arena_array(w->arena, source->n_graphs, sizeof *graphs);
    if (!a || !graphs)
        return source;
    if (source->g)
        a->g = lower_graph(w, source->g);
    for (size_t i = 0; i < source->n_graphs; i++)
        graphs[i] = lower_graph(w, source->graphs[i]);
    a->graphs = graphs;
    return a;
}

static Onnx__NodeProto *
lower_node(struct lowering *w, Onnx__NodeProto *source)
{
    const struct change *change = find_change(source);
    if (change && !change->attribute)
        set_obstacle(w, source, change);
    if (source->n_attribute == 0)
        return source;
    Onnx__NodeProto *node = qdqi_arena_copy(w->arena, source, 1, sizeof *source);
    Onnx__AttributeProto **all =
        qdqi_arena_array(w->arena, source->n_attribute, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; node && all && i < source->n_attribute; i++) {
        Onnx__AttributeProto *a = source->attribute[i];
        const bool is_later = change && change->attribute && a->name &&
                              strcmp(a->name, change->attribute) == 0;
        if (is_later && !has_default(a, change->by_default))
            set_obstacle(w, source, change);
        if (!is_later)
            all[n++] = lower_attribute(w, a);
    }
    if (!node || !all)
        return source;
    node->attribute = all;
    node->n_attribute = n;
    return node;
}

/* --- graphs ------------------------------------------------------------------- */

static Onnx__NodeProto **
lower_nodes(struct lowering *w, Onnx__NodeProto *const *source, size_t n)
{
    Onnx__NodeProto **nodes = qdqi_arena_array(w->arena, n, sizeof *nodes);
    for (size_t i = 0; nodes && i < n; i++)
        nodes[i] = lower_node(w, source[i]);
    return nodes;
}

static Onnx__GraphProto *
lower_graph(struct lowering *w, const Onnx__GraphProto *source)
{
    Onnx__GraphProto *graph = qdqi_arena_copy(w->arena, source, 1, sizeof *source);
    if (graph)
        graph->node = lower_nodes(w, source->node, source->n_node);
    return graph;
}

static bool
is_later_import(const Onnx__OperatorSetIdProto *id)
{
    return qdqi_is_onnx_domain(id->domain) && id->version > QDQI_OPSET_THAT_RUNS;
}

/* Returns whether nobody here knows what nodes of the opset mean. */
static bool
is_unknown_import(const Onnx__OperatorSetIdProto *id)
{
    return qdqi_is_onnx_domain(id->domain) && id->version > QDQI_OPSET_MAX;
}

static bool
has_unknown_import(Onnx__OperatorSetIdProto *const *imports, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= is_unknown_import(imports[i]);
    return any;
}

static bool
has_later_import(Onnx__OperatorSetIdProto *const *imports, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= is_later_import(imports[i]);
    return any;
}

static Onnx__OperatorSetIdProto **
lower_imports(struct lowering *w, Onnx__OperatorSetIdProto *const *imports, size_t n)
{
    Onnx__OperatorSetIdProto **all = qdqi_arena_copy(w->arena, imports, n, sizeof *all);
    for (size_t i = 0; all && i < n; i++) {
        if (!is_later_import(all[i]))
            continue;
        Onnx__OperatorSetIdProto *id = qdqi_arena_copy(w->arena, all[i], 1, sizeof *id);
        if (!id)
            return NULL;
        id->version = QDQI_OPSET_THAT_RUNS;
        all[i] = id;
    }
    return all;
}

/* --- the model ------------------------------------------------------------------ */

static bool
is_unknown(const Onnx__ModelProto *model)
{
    bool is = model->ir_version > QDQI_IR_KNOWN ||
              has_unknown_import(model->opset_import, model->n_opset_import);
    for (size_t i = 0; i < model->n_functions; i++)
        is |= has_unknown_import(model->functions[i]->opset_import,
                                 model->functions[i]->n_opset_import);
    return is;
}

bool
qdqi_is_later(const Onnx__ModelProto *model)
{
    if (is_unknown(model))
        return false;
    bool is = model->ir_version > QDQI_IR_THAT_RUNS ||
              has_later_import(model->opset_import, model->n_opset_import);
    for (size_t i = 0; i < model->n_functions; i++)
        is |= has_later_import(model->functions[i]->opset_import,
                               model->functions[i]->n_opset_import);
    return is;
}

/* Lowers the functions that have an opset of their own which is a later one. */
static Onnx__FunctionProto **
lower_functions(struct lowering *w, const Onnx__ModelProto *model)
{
    Onnx__FunctionProto **all =
        qdqi_arena_copy(w->arena, model->functions, model->n_functions, sizeof *all);
    for (size_t i = 0; all && i < model->n_functions; i++) {
        if (!has_later_import(all[i]->opset_import, all[i]->n_opset_import))
            continue;
        Onnx__FunctionProto *f = qdqi_arena_copy(w->arena, all[i], 1, sizeof *f);
        if (!f)
            return NULL;
        f->opset_import = lower_imports(w, f->opset_import, f->n_opset_import);
        f->node = lower_nodes(w, f->node, f->n_node);
        all[i] = f;
    }
    return all;
}

enum qdq_code
qdqi_lower_opset(const Onnx__ModelProto *model, struct qdqi_arena *arena,
                 const Onnx__ModelProto **ret, struct qdqi_obstacle *obstacle,
                 struct qdq_error *err)
{
    struct lowering w = {arena, obstacle};
    *obstacle = (struct qdqi_obstacle){.opset = 0};
    *ret = model;
    if (!qdqi_is_later(model))
        return QDQ_OK;
    Onnx__ModelProto *lowered = qdqi_arena_copy(arena, model, 1, sizeof *model);
    if (!lowered)
        return qdqi_no_memory(err);
    if (lowered->ir_version > QDQI_IR_THAT_RUNS)
        lowered->ir_version = QDQI_IR_THAT_RUNS;
    if (has_later_import(model->opset_import, model->n_opset_import))
        lowered->graph = lower_graph(&w, model->graph);
    lowered->opset_import =
        lower_imports(&w, model->opset_import, model->n_opset_import);
    lowered->functions = lower_functions(&w, model);
    if (qdqi_arena_exhausted(arena))
        return qdqi_no_memory(err);
    *ret = obstacle->opset ? model : lowered;
    return QDQ_OK;
}
