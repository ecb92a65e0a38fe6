/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/prepare/convert_opset.h"

#include "transform/prepare/adapt.h"

#include <stdio.h>
#include <string.h>

struct raising {
    struct qdqi_opset_conversion
        r; /* must be first: the adapters' pointer points here */
    struct qdqi_obstacle *obstacle;
    struct qdq_error *err;
};

static void *
copy_of(struct raising *w, const void *from, size_t n, size_t size)
{
    return qdqi_arena_copy(w->r.arena, from, n, size);
}

/* --- one node ------------------------------------------------------------- */

static const char *
label_of(const Onnx__NodeProto *node, const char *name)
{
    if (name)
        return name;
    if (node->name && *node->name)
        return node->name;
    return node->n_output ? node->output[0] : "";
}

static enum qdq_code
check_valid(const struct raising *w, const struct qdqi_adapting *a, const char *name)
{
    const char *label = label_of(a->node, name);
    if (!a->invalid)
        return QDQ_OK;
    return qdq_error_set(w->err, QDQ_INVALID_MODEL, QDQ_AT_NODE, label,
                         "node '%s' (%s) lacks %s", label, a->node->op_type,
                         a->invalid);
}

/* Applies the rows of all opsets between the two. */
static enum qdq_code
adapt(struct raising *w, struct qdqi_adapting *a, const char *name)
{
    for (int64_t opset = w->r.from + 1; opset <= w->r.to; opset++)
        for (size_t i = 0; i < qdqi_n_opset_rows; i++) {
            const struct qdqi_opset_row *row = &qdqi_opset_rows[i];
            if (row->opset != opset || strcmp(row->op, a->node->op_type) != 0)
                continue;
            const char *why = row->adapt(a);
            if (why) {
                struct qdqi_obstacle *o = w->obstacle;
                o->opset = opset;
                snprintf(o->node, sizeof o->node, "%s", label_of(a->node, name));
                snprintf(o->op, sizeof o->op, "%s", row->op);
                snprintf(o->why, sizeof o->why, "%s", why);
            }
            if (why || a->invalid)
                return check_valid(w, a, name);
            /* the node may have another operator now; an opset has at most one row
               for it */
            break;
        }
    return QDQ_OK;
}

static enum qdq_code raise_nested(struct raising *w, Onnx__NodeProto *node,
                                  const struct qdqi_node *indexed);

/* Converts a node. `indexed` is the source's node; NULL for a node of a local
   function. */
static enum qdq_code
raise_node(struct raising *w, const Onnx__NodeProto *source,
           const struct qdqi_node *indexed)
{
    struct qdqi_adapting a = {.r = &w->r,
                              .node = qdqi_arena_alloc(w->r.arena, sizeof *a.node)};
    enum qdq_code code = QDQ_OK;
    if (!a.node)
        return QDQ_OK; /* the arena is checked at the end */
    *a.node = *source;
    if (!source->op_type || !*source->op_type)
        return qdq_error_set(w->err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                             "a node has no operator");
    a.node->input = copy_of(w, source->input, source->n_input, sizeof *source->input);
    a.node->output =
        copy_of(w, source->output, source->n_output, sizeof *source->output);
    a.node->attribute =
        copy_of(w, source->attribute, source->n_attribute, sizeof *source->attribute);
    if (!a.node->input || !a.node->output || !a.node->attribute)
        return QDQ_OK;
    if (qdqi_is_onnx_domain(source->domain))
        code = adapt(w, &a, indexed ? indexed->name : NULL);
    if (!code && !w->obstacle->opset)
        code = raise_nested(w, a.node, indexed);
    if (code || w->obstacle->opset)
        return code;
    qdqi_nodes_add(&w->r.nodes, w->r.arena, a.node);
    for (size_t i = 0; i < a.after.n; i++)
        qdqi_nodes_add(&w->r.nodes, w->r.arena, a.after.rows[i]);
    qdqi_value_types_infer(w->r.known, w->r.arena, source);
    return QDQ_OK;
}

/* --- graphs --------------------------------------------------------------- */

/* Converts the nodes of a graph or function; sets *ret and *ret_n to the new ones. */
static enum qdq_code
raise_nodes(struct raising *w, Onnx__NodeProto *const *nodes, size_t n,
            const struct qdqi_scope *scope, Onnx__NodeProto ***ret, size_t *ret_n)
{
    const struct qdqi_graph *graph = &w->r.source->graph;
    const struct qdqi_nodes outer = w->r.nodes;
    enum qdq_code code = QDQ_OK;
    w->r.nodes = (struct qdqi_nodes){.n = 0};
    for (size_t i = 0; i < n && !code && !w->obstacle->opset; i++)
        code = raise_node(w, nodes[i], scope ? &graph->nodes[scope->nodes[i]] : NULL);
    *ret = w->r.nodes.rows;
    *ret_n = w->r.nodes.n;
    w->r.nodes = outer;
    return code;
}

static enum qdq_code
raise_graph(struct raising *w, const Onnx__GraphProto *source,
            const struct qdqi_scope *scope, Onnx__GraphProto **ret)
{
    Onnx__GraphProto *graph = copy_of(w, source, 1, sizeof *source);
    if (!graph)
        return QDQ_OK;
    *ret = graph;
    qdqi_value_types_declare(w->r.known, w->r.arena, source);
    return raise_nodes(w, source->node, source->n_node, scope, &graph->node,
                       &graph->n_node);
}

/* Converts *graph, the next one of the graphs that the node owns. */
static enum qdq_code
raise_body(struct raising *w, Onnx__GraphProto **graph, size_t *next)
{
    const struct qdqi_scope *scope = *next ? &w->r.source->graph.scopes[*next] : NULL;
    if (scope && scope->proto != *graph)
        scope = NULL;
    else if (scope)
        *next = scope->next;
    return raise_graph(w, *graph, scope, graph);
}

/* Converts the node's own graphs, in a copy of its attributes. */
static enum qdq_code
raise_nested(struct raising *w, Onnx__NodeProto *node, const struct qdqi_node *indexed)
{
    size_t next = indexed ? indexed->body : 0;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < node->n_attribute && !code; i++) {
        Onnx__AttributeProto *a = node->attribute[i];
        if (!a->g && !a->n_graphs)
            continue;
        if (!(a = copy_of(w, a, 1, sizeof *a)))
            return QDQ_OK;
        node->attribute[i] = a;
        if (a->g)
            code = raise_body(w, &a->g, &next);
        Onnx__GraphProto **graphs = copy_of(w, a->graphs, a->n_graphs, sizeof *graphs);
        if (!graphs)
            return QDQ_OK;
        for (size_t k = 0; k < a->n_graphs && !code; k++)
            code = raise_body(w, &graphs[k], &next);
        a->graphs = graphs;
    }
    return code;
}

/* --- local functions ------------------------------------------------------ */

/* Returns the imports, with ONNX's own domain at the wanted opset. */
static Onnx__OperatorSetIdProto **
raise_imports(struct raising *w, Onnx__OperatorSetIdProto *const *imports, size_t n)
{
    Onnx__OperatorSetIdProto **all = copy_of(w, imports, n, sizeof *all);
    for (size_t i = 0; all && i < n; i++) {
        if (!qdqi_is_onnx_domain(all[i]->domain) || all[i]->version >= w->r.to)
            continue;
        Onnx__OperatorSetIdProto *id = copy_of(w, all[i], 1, sizeof *id);
        if (!id)
            return NULL;
        id->has_version = 1;
        id->version = w->r.to;
        all[i] = id;
    }
    return all;
}

/* Marks the names within a function as used, so that new names differ from them. */
static void
take_names(struct raising *w, const Onnx__FunctionProto *f)
{
    for (size_t i = 0; i < f->n_input; i++)
        qdqi_map_put(w->r.names, f->input[i], w);
    for (size_t i = 0; i < f->n_node; i++) {
        const Onnx__NodeProto *node = f->node[i];
        if (node->name)
            qdqi_map_put(w->r.names, node->name, w);
        for (size_t k = 0; k < node->n_output; k++)
            qdqi_map_put(w->r.names, node->output[k], w);
    }
}

static enum qdq_code
raise_function(struct raising *w, const Onnx__FunctionProto *source,
               Onnx__FunctionProto **ret)
{
    Onnx__FunctionProto *f = copy_of(w, source, 1, sizeof *source);
    if (!f)
        return QDQ_OK;
    *ret = f;
    for (size_t i = 0; i < source->n_opset_import; i++)
        if (qdqi_is_onnx_domain(source->opset_import[i]->domain))
            w->r.from = source->opset_import[i]->version;
    if (w->r.from < QDQI_OPSET_MIN) {
        struct qdqi_obstacle *o = w->obstacle;
        o->opset = QDQI_OPSET_MIN;
        snprintf(o->node, sizeof o->node, "%s", source->name ? source->name : "");
        snprintf(o->op, sizeof o->op, "a local function");
        snprintf(o->why, sizeof o->why, "its own opset is older than %d",
                 QDQI_OPSET_MIN);
        return QDQ_OK;
    }
    w->r.known = qdqi_map_new(w->r.arena);
    if (!w->r.known)
        return QDQ_OK;
    take_names(w, source);
    f->opset_import = raise_imports(w, source->opset_import, source->n_opset_import);
    return raise_nodes(w, source->node, source->n_node, NULL, &f->node, &f->n_node);
}

static enum qdq_code
raise_functions(struct raising *w, Onnx__ModelProto *model)
{
    Onnx__FunctionProto **all =
        copy_of(w, model->functions, model->n_functions, sizeof *all);
    enum qdq_code code = QDQ_OK;
    int64_t from = w->r.from;
    for (size_t i = 0; all && i < model->n_functions && !code && !w->obstacle->opset;
         i++) {
        w->r.from = from;
        code = raise_function(w, all[i], &all[i]);
    }
    model->functions = all;
    return code;
}

/* --- the model ------------------------------------------------------------ */

/* The first opset that each IR version was released with. */
static const struct {
    int64_t opset, ir_version;
} ir_versions[] = {
    {7, 3},  {9, 4},   {10, 5},  {11, 6},  {12, 7},  {15, 8},
    {19, 9}, {21, 10}, {23, 11}, {24, 12}, {25, 13}, {28, 14},
};

enum { IR_VERSION_OVERRIDABLE = 4 };

/*
 * Sets the IR version. Up to version 3 every initializer is also listed as an input and
 * is a constant; from version 4 on such an initializer could be overridden, so the
 * inputs are removed.
 */
static void
raise_ir_version(struct raising *w, Onnx__ModelProto *model)
{
    int64_t wanted = model->ir_version, before = model->ir_version;
    for (size_t i = 0; i < sizeof ir_versions / sizeof *ir_versions; i++)
        if (ir_versions[i].opset <= w->r.to && ir_versions[i].ir_version > wanted)
            wanted = ir_versions[i].ir_version;
    model->ir_version = wanted;
    if (before < IR_VERSION_OVERRIDABLE && wanted >= IR_VERSION_OVERRIDABLE)
        qdqi_drop_constant_inputs(w->r.source, w->r.arena, model->graph);
}

static enum qdq_code
raise_model(struct raising *w, const Onnx__ModelProto **ret)
{
    const Onnx__ModelProto *source = w->r.source->proto;
    Onnx__ModelProto *model = copy_of(w, source, 1, sizeof *source);
    enum qdq_code code;
    if (!model ||
        (code = raise_graph(w, source->graph, &w->r.source->graph.scopes[0],
                            &model->graph)) ||
        w->obstacle->opset || qdqi_arena_exhausted(w->r.arena))
        return model ? code : QDQ_OK;
    raise_ir_version(w, model);
    model->opset_import =
        raise_imports(w, source->opset_import, source->n_opset_import);
    *ret = model;
    return raise_functions(w, model);
}

enum qdq_code
qdqi_convert_opset(const struct qdq_model *source, int64_t to, struct qdqi_arena *arena,
                   struct qdqi_edited *ret, struct qdqi_obstacle *obstacle,
                   struct qdq_error *err)
{
    struct raising w = {.r = {.source = source,
                              .arena = arena,
                              .names = qdqi_map_new(arena),
                              .known = qdqi_map_new(arena),
                              .from = qdqi_model_opset(source->proto),
                              .to = to},
                        .obstacle = obstacle,
                        .err = err};
    *obstacle = (struct qdqi_obstacle){.opset = 0};
    if (!w.r.names || !w.r.known)
        return qdqi_no_memory(err);
    if (source->proto->n_training_info) {
        *obstacle = (struct qdqi_obstacle){.opset = w.r.from + 1,
                                           .op = "training_info",
                                           .why = "the model can be trained on"};
        return QDQ_OK;
    }
    enum qdq_code code = raise_model(&w, &ret->proto);
    ret->bulks = source->bulks;
    if (!code && qdqi_arena_exhausted(arena))
        return qdqi_no_memory(err);
    return code;
}
