/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inlines local functions: replaces each call by the nodes of the function, so that
 * layers in a function are planned like others, and each call has scales of its own.
 * Tensors and nodes of the function get the call's name as a prefix.
 */
#include "config.h"
#include "transform/prepare/functions.h"
#include "transform/prepare/nodes.h"
#include "transform/prepare/prepare.h"

#include <string.h>

/* Limits the model after inlining, counted in nodes and their parts; a long name
   counts as several parts, one for each LONG_NAME bytes. */
enum { MAX_PARTS = 1 << 21, LONG_NAME = 128 };

struct inlining {
    struct qdqi_functions functions;
    const struct qdq_model *source;
    struct qdqi_arena *arena;
    struct qdqi_map *taken; /* names that were made here */
    /* from a name that was needed more than once to its last suffix */
    struct qdqi_map *suffixes;
    size_t n_parts;
};

/* One call: the meaning of names inside the function, and the values of its
   attributes. */
struct call {
    const struct qdqi_function *function;
    const Onnx__NodeProto *node; /* the calling node, with its names outside */
    const char *name;
    struct qdqi_map *names; /* from a name inside to the name outside */
};

static enum qdq_code expand_nodes(struct inlining *in, const struct call *call,
                                  Onnx__NodeProto *const *from, size_t n,
                                  struct qdqi_nodes *to, struct qdq_error *err);

static void *
copy_of(struct inlining *in, const void *message, size_t size)
{
    return qdqi_arena_copy(in->arena, message, 1, size);
}

/* Returns the code for a failed copy, unless a nested copy has set an error already. */
static enum qdq_code
failed(const struct inlining *in, struct qdq_error *err)
{
    return in->n_parts > MAX_PARTS
               ? qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                               "the model's functions come to more than %d nodes, "
                               "their inputs, outputs and attributes",
                               MAX_PARTS)
               : qdqi_no_memory(err);
}

/* --- names ---------------------------------------------------------------- */

static bool
is_taken(const struct inlining *in, const char *name)
{
    return qdqi_map_get(in->source->graph.names, name) || qdqi_map_get(in->taken, name);
}

/* Counts parts against the limit, weighted by their cost. */
static bool
count(struct inlining *in, size_t n)
{
    in->n_parts += n;
    return in->n_parts <= MAX_PARTS;
}

static char *
fresh_name(struct inlining *in, const struct call *call, const char *inside)
{
    char *base = qdqi_arena_printf(in->arena, "%s/%s", call->name, inside),
         *name = base;
    unsigned *last = base ? qdqi_map_get(in->suffixes, base) : NULL;
    if (!name || !count(in, 1 + strlen(base) / LONG_NAME))
        return NULL;
    if (!last && is_taken(in, base)) {
        last = qdqi_arena_alloc(in->arena, sizeof *last);
        if (!last || !qdqi_map_put(in->suffixes, base, last))
            return NULL;
    }
    while (name && last && is_taken(in, name))
        name = qdqi_arena_printf(in->arena, "%s_%u", base, ++*last);
    return name && qdqi_map_put(in->taken, name, in) ? name : NULL;
}

/* Returns the name outside for a name inside the function; NULL when out of memory. */
static char *
outer_name(struct inlining *in, const struct call *call, char *inside)
{
    if (!call || !inside || !*inside)
        return inside;
    char *name = qdqi_map_get(call->names, inside);
    if (name)
        return name;
    name = fresh_name(in, call, inside);
    return name && qdqi_map_put(call->names, inside, name) ? name : NULL;
}

static bool
outer_names(struct inlining *in, const struct call *call, char ***names, size_t n)
{
    char **all = qdqi_arena_array(in->arena, n, sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        if (!(all[i] = outer_name(in, call, (*names)[i])))
            return false;
    *names = all;
    return all;
}

/* --- copying messages ---------------------------------------------------- */

/* Copies every message of a list into `copy`, and applies `change` to the copy. */
#define COPY_EACH(list, n, copy, change)                                          \
    do {                                                                          \
        void *rows_ = qdqi_arena_array(in->arena, n, sizeof *(list));             \
        if (!rows_)                                                               \
            return NULL;                                                          \
        if (n)                                                                    \
            memcpy(rows_, list, (n) * sizeof *(list));                            \
        (list) = rows_;                                                           \
        for (size_t i_ = 0; i_ < (n); i_++) {                                     \
            if (!((copy) = copy_of(in, (list)[i_], sizeof *(copy))) || !(change)) \
                return NULL;                                                      \
            (list)[i_] = (copy);                                                  \
        }                                                                         \
    } while (0)

static bool
change_name(struct inlining *in, const struct call *call, char **name)
{
    char *outer = outer_name(in, call, *name);
    bool ok = outer || !*name;
    *name = outer;
    return ok;
}

static bool
change_sparse(struct inlining *in, const struct call *call, Onnx__SparseTensorProto *s)
{
    if (!s->values)
        return true;
    s->values = copy_of(in, s->values, sizeof *s->values);
    return s->values && change_name(in, call, &s->values->name);
}

/* Copies a graph and maps the names that it defines and uses, except those in its
   nodes. */
static Onnx__GraphProto *
copy_names(struct inlining *in, const struct call *call, const Onnx__GraphProto *from)
{
    Onnx__GraphProto *g = copy_of(in, from, sizeof *g);
    Onnx__TensorProto *t;
    Onnx__SparseTensorProto *s;
    Onnx__ValueInfoProto *v;
    if (!g || !count(in, g->n_initializer + g->n_sparse_initializer + g->n_input +
                             g->n_output + g->n_value_info))
        return NULL;
    COPY_EACH(g->initializer, g->n_initializer, t, change_name(in, call, &t->name));
    COPY_EACH(g->sparse_initializer, g->n_sparse_initializer, s,
              change_sparse(in, call, s));
    COPY_EACH(g->input, g->n_input, v, change_name(in, call, &v->name));
    COPY_EACH(g->output, g->n_output, v, change_name(in, call, &v->name));
    COPY_EACH(g->value_info, g->n_value_info, v, change_name(in, call, &v->name));
    if (call)
        g->n_quantization_annotation = 0; /* it refers to the old names */
    return g;
}

static Onnx__GraphProto *
expand_graph(struct inlining *in, const struct call *call, const Onnx__GraphProto *from,
             struct qdq_error *err)
{
    struct qdqi_nodes nodes = {.n = 0};
    Onnx__GraphProto *g = copy_names(in, call, from);
    if (!g || expand_nodes(in, call, g->node, g->n_node, &nodes, err))
        return NULL;
    g->node = nodes.rows;
    g->n_node = nodes.n;
    return g;
}

/* Returns the value of an attribute that refers to an attribute of the function;
   NULL when that is not set. */
static const Onnx__AttributeProto *
referred(struct inlining *in, const struct call *call, const Onnx__AttributeProto *a)
{
    if (!call || !a->ref_attr_name || !*a->ref_attr_name)
        return a;
    const Onnx__AttributeProto *given =
        qdqi_node_attribute(call->node, a->ref_attr_name);
    return given ? given
                 : qdqi_function_default(call->function, a->ref_attr_name, in->arena);
}

/* Copies an attribute and expands the nodes of its graphs. A graph that the call
   passes in belongs to the calling graph, so its names stay. */
static Onnx__AttributeProto *
expand_attribute(struct inlining *in, const struct call *call,
                 const Onnx__AttributeProto *from, const char *name,
                 struct qdq_error *err)
{
    Onnx__AttributeProto *a = copy_of(in, from, sizeof *a);
    Onnx__GraphProto **graphs =
        a ? qdqi_arena_array(in->arena, a->n_graphs, sizeof *graphs) : NULL;
    if (!graphs)
        return NULL;
    a->name = (char *)(uintptr_t)name;
    if (a->g && !(a->g = expand_graph(in, call, a->g, err)))
        return NULL;
    for (size_t i = 0; i < a->n_graphs; i++)
        if (!(graphs[i] = expand_graph(in, call, a->graphs[i], err)))
            return NULL;
    a->graphs = graphs;
    return a;
}

static bool
expand_attributes(struct inlining *in, const struct call *call, Onnx__NodeProto *node,
                  struct qdq_error *err)
{
    Onnx__AttributeProto **all =
        qdqi_arena_array(in->arena, node->n_attribute, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; all && i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        const Onnx__AttributeProto *value = referred(in, call, a);
        if (value && !(all[n++] = expand_attribute(in, value == a ? call : NULL, value,
                                                   a->name, err)))
            return false;
    }
    node->attribute = all;
    node->n_attribute = n;
    return all;
}

/* Copies a node with its names outside. */
static Onnx__NodeProto *
copy_node(struct inlining *in, const struct call *call, const Onnx__NodeProto *from,
          struct qdq_error *err)
{
    Onnx__NodeProto *node = copy_of(in, from, sizeof *node);
    if (!node || !outer_names(in, call, &node->input, node->n_input) ||
        !outer_names(in, call, &node->output, node->n_output) ||
        !expand_attributes(in, call, node, err))
        return NULL;
    if (call && node->name && *node->name &&
        !(node->name = fresh_name(in, call, node->name)))
        return NULL;
    return node;
}

/* --- calls ---------------------------------------------------------------- */

static bool
add_identity(struct inlining *in, char *from, char *to, struct qdqi_nodes *nodes)
{
    Onnx__NodeProto *node =
        qdqi_node_new(in->arena, "Identity", NULL, (const char *const[]){from}, 1, to);
    return node && qdqi_nodes_add(nodes, in->arena, node);
}

/* Binds the call's inputs and outputs to their names outside. An output that is also
   an input, or that occurs twice, is copied behind the call. */
static bool
bind(struct inlining *in, struct call *call, struct qdqi_nodes *copies)
{
    static char none[] = "";
    const Onnx__FunctionProto *f = call->function->proto;
    const Onnx__NodeProto *node = call->node;
    for (size_t i = 0; i < f->n_input; i++) {
        char *outer = i < node->n_input ? node->input[i] : none;
        if (!qdqi_map_put(call->names, f->input[i], outer))
            return false;
    }
    for (size_t i = 0; i < f->n_output && i < node->n_output; i++) {
        char *inner = qdqi_map_get(call->names, f->output[i]);
        if (!*node->output[i])
            continue;
        if (inner ? !add_identity(in, inner, node->output[i], copies)
                  : !qdqi_map_put(call->names, f->output[i], node->output[i]))
            return false;
    }
    return true;
}

static enum qdq_code
expand_call(struct inlining *in, const struct qdqi_function *function,
            const Onnx__NodeProto *node, struct qdqi_nodes *to, struct qdq_error *err)
{
    struct qdqi_nodes copies = {.n = 0};
    struct call call = {.function = function,
                        .node = node,
                        .name = node->name && *node->name ? node->name
                                : node->n_output          ? node->output[0]
                                                          : function->proto->name,
                        .names = qdqi_map_new(in->arena)};
    if (!call.names || !bind(in, &call, &copies))
        return qdqi_no_memory(err);
    enum qdq_code code = expand_nodes(in, &call, function->proto->node,
                                      function->proto->n_node, to, err);
    for (size_t i = 0; i < copies.n && !code; i++)
        if (!qdqi_nodes_add(to, in->arena, copies.rows[i]))
            code = qdqi_no_memory(err);
    return code;
}

/* Expands the nodes of a graph, or of the called function, with their names outside. */
static enum qdq_code
expand_nodes(struct inlining *in, const struct call *call, Onnx__NodeProto *const *from,
             size_t n, struct qdqi_nodes *to, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < n && !code; i++) {
        const struct qdqi_function *called =
            qdqi_function_called(&in->functions, from[i]);
        Onnx__NodeProto *node =
            count(in, 1 + from[i]->n_input + from[i]->n_output + from[i]->n_attribute)
                ? copy_node(in, call, from[i], err)
                : NULL;
        if (!node)
            code = failed(in, err);
        else if (called && called->is_inlined)
            code = expand_call(in, called, node, to, err);
        else if (!qdqi_nodes_add(to, in->arena, node))
            code = qdqi_no_memory(err);
    }
    return code;
}

/* --- the model ------------------------------------------------------------ */

/* Imports the operator sets of the inlined functions whose domains the model does
   not import. */
static bool
add_imports(struct inlining *in, Onnx__ModelProto *model)
{
    const struct qdqi_functions *f = &in->functions;
    size_t n = model->n_opset_import, most = n;
    for (size_t i = 0; i < f->n; i++)
        most += f->rows[i].is_inlined ? f->rows[i].proto->n_opset_import : 0;
    Onnx__OperatorSetIdProto **all = qdqi_arena_array(in->arena, most, sizeof *all);
    if (!all)
        return false;
    memcpy(all, model->opset_import, n * sizeof *all);
    model->opset_import = all;
    for (size_t i = 0; i < f->n; i++) {
        const Onnx__FunctionProto *proto = f->rows[i].proto;
        for (size_t k = 0; f->rows[i].is_inlined && k < proto->n_opset_import; k++)
            if (!qdqi_import_of(all, n, proto->opset_import[k]->domain))
                all[n++] = proto->opset_import[k];
    }
    model->n_opset_import = n;
    return true;
}

static bool
keep_functions(struct inlining *in, Onnx__ModelProto *model)
{
    const struct qdqi_functions *f = &in->functions;
    Onnx__FunctionProto **kept = qdqi_arena_array(in->arena, f->n, sizeof *kept);
    size_t n = 0;
    if (!kept)
        return false;
    qdqi_functions_mark_needed(f);
    for (size_t i = 0; i < f->n; i++)
        if (f->rows[i].is_needed || model->n_training_info)
            kept[n++] = (Onnx__FunctionProto *)(uintptr_t)f->rows[i].proto;
    model->functions = kept;
    model->n_functions = n;
    return true;
}

static enum qdq_code
warn_foreign(struct qdqi_preparing *p, const struct qdqi_functions *f,
             struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < f->n && !code; i++)
        if (f->rows[i].is_foreign)
            code = qdqi_warn(&p->warnings, p->arena, err, "function_not_inlined", NULL,
                             "layers of the function '%.128s' are left alone: its "
                             "operator sets are of other versions than the model's",
                             f->rows[i].proto->name ? f->rows[i].proto->name : "");
    return code;
}

static enum qdq_code
make_model(struct inlining *in, struct qdq_model **ret, struct qdq_error *err)
{
    Onnx__ModelProto *model = copy_of(in, in->source->proto, sizeof *model);
    in->taken = qdqi_map_new(in->arena);
    in->suffixes = qdqi_map_new(in->arena);
    if (!model || !in->taken || !in->suffixes)
        return qdqi_no_memory(err);
    model->graph = expand_graph(in, NULL, model->graph, err);
    if (!model->graph)
        return failed(in, err);
    if (!add_imports(in, model) || !keep_functions(in, model) ||
        qdqi_arena_exhausted(in->arena))
        return qdqi_no_memory(err);
    const struct qdqi_edited edited = {.proto = model, .bulks = in->source->bulks};
    return qdqi_model_derive(in->source, &edited, &in->arena, ret, err);
}

enum qdq_code
qdqi_step_inline(struct qdqi_preparing *p, struct qdq_model **ret,
                 struct qdq_error *err)
{
    struct inlining in = {.source = p->model};
    bool any = false;
    if (p->model->proto->n_functions == 0)
        return QDQ_OK;
    if (!(in.arena = qdqi_arena_new()))
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_functions_find(p, in.arena, &in.functions, err);
    for (size_t i = 0; i < in.functions.n; i++)
        any |= in.functions.rows[i].is_inlined;
    if (!code && !(code = warn_foreign(p, &in.functions, err)) && any)
        code = make_model(&in, ret, err);
    qdqi_arena_free(&in.arena);
    return code;
}
