/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "transform/rewrite/twin.h"

#include "files/model/constant.h"
#include "transform/rewrite/insert.h"

#include <string.h>

/* The names that a nested graph defines itself. Scopes are linked from the innermost
   one outwards. */
struct scope {
    struct qdqi_map *own;
    const struct scope *outer;
};

struct joining {
    const struct qdq_model *f, *q;
    struct qdqi_arena *arena;
    /* tensor of the quantized half -> its name in the joined graph */
    struct qdqi_map *renamed;
    struct qdqi_map *fresh; /* names made for the joined graph */
    Onnx__GraphProto *graph;
};

/*
 * Allocates an array in the arena. Callers need not check every allocation: the arena
 * remembers a failure, and qdqi_twin() checks it at its end. Functions return NULL
 * after a failure; callers pass the NULL on or leave the rest out.
 */
static void *
alloc(struct joining *j, size_t n, size_t size)
{
    return qdqi_arena_array(j->arena, n, size);
}

static void *
copy_of(struct joining *j, const void *message, size_t size)
{
    return qdqi_arena_copy(j->arena, message, 1, size);
}

/* --- names ---------------------------------------------------------------- */

static bool
is_taken(const struct joining *j, const char *name)
{
    return qdqi_map_get(j->f->graph.names, name) ||
           qdqi_map_get(j->q->graph.names, name) || qdqi_map_get(j->fresh, name);
}

/* Returns a name that occurs in neither model, nested graphs included. */
static char *
fresh_name(struct joining *j, const char *base, const char *suffix)
{
    char *name = qdqi_arena_printf(j->arena, "%s%s", base, suffix);
    for (unsigned n = 1; name && is_taken(j, name); n++)
        name = qdqi_arena_printf(j->arena, "%s%s_%u", base, suffix, n);
    return name && qdqi_map_put(j->fresh, name, j) ? name : NULL;
}

/* Chooses a new name for a tensor of the quantized half. Inputs keep theirs, because
   both halves share them. */
static void
rename_tensor(struct joining *j, const char *name)
{
    const struct qdqi_tensor *t = qdqi_map_get(j->q->graph.tensors, name);
    if (!t || t->is_input || qdqi_map_get(j->renamed, name))
        return;
    char *renamed = fresh_name(j, name, "_quantized_half");
    if (renamed)
        qdqi_map_put(j->renamed, name, renamed); /* the arena remembers a failure */
}

static void
rename_all(struct joining *j)
{
    const Onnx__GraphProto *g = j->q->proto->graph;
    for (size_t i = 0; i < g->n_initializer; i++)
        rename_tensor(j, g->initializer[i]->name);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            rename_tensor(j, g->node[i]->output[k]);
}

/* Returns the name in the joined graph of a tensor that has `name` in that scope of
   the quantized half. `scope` is NULL for the main graph. */
static char *
name_of(const struct joining *j, const struct scope *scope, char *name)
{
    for (; scope; scope = scope->outer)
        if (qdqi_map_get(scope->own, name))
            return name;
    char *renamed = qdqi_map_get(j->renamed, name);
    return renamed ? renamed : name;
}

static char **
names_of(struct joining *j, const struct scope *scope, char **names, size_t n)
{
    char **all = alloc(j, n, sizeof *all);
    for (size_t i = 0; all && i < n; i++)
        all[i] = name_of(j, scope, names[i]);
    return all;
}

/* --- copies of the quantized half ---------------------------------------- */

static Onnx__TensorProto *
copy_tensor(struct joining *j, const Onnx__TensorProto *t)
{
    Onnx__TensorProto *copy = t ? copy_of(j, t, sizeof *copy) : NULL;
    int64_t index = copy ? qdqi_tensor_bulk(copy, j->q->bulks.n) : -1;
    if (index >= 0) /* those of the quantized half are behind the float half's */
        qdqi_tensor_refer(j->arena, copy, j->f->bulks.n + (size_t)index);
    return copy;
}

static Onnx__SparseTensorProto *
copy_sparse(struct joining *j, const Onnx__SparseTensorProto *s)
{
    Onnx__SparseTensorProto *copy = s ? copy_of(j, s, sizeof *copy) : NULL;
    if (copy) {
        copy->values = copy_tensor(j, s->values);
        copy->indices = copy_tensor(j, s->indices);
    }
    return copy;
}

static Onnx__NodeProto *copy_node(struct joining *j, const struct scope *scope,
                                  const Onnx__NodeProto *node);

static void
own_name(const struct scope *scope, const char *name)
{
    static char own;
    if (name && *name)
        qdqi_map_put(scope->own, name, &own);
}

static void
own_names(const struct scope *scope, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        own_name(scope, g->initializer[i]->name);
    for (size_t i = 0; i < g->n_input; i++)
        own_name(scope, g->input[i]->name);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            own_name(scope, g->node[i]->output[k]);
}

static Onnx__ValueInfoProto *
copy_value(struct joining *j, const struct scope *scope, const Onnx__ValueInfoProto *v)
{
    Onnx__ValueInfoProto *copy = copy_of(j, v, sizeof *copy);
    if (copy && v->name)
        copy->name = name_of(j, scope, v->name);
    return copy;
}

/* Copies a list of messages. An element is NULL when out of memory. */
#define COPY_LIST(to, n, one)                     \
    do {                                          \
        void *rows_ = alloc(j, n, sizeof *(to));  \
        (to) = rows_;                             \
        for (size_t i = 0; rows_ && i < (n); i++) \
            (to)[i] = one;                        \
    } while (0)

/* Copies a nested graph. Names that it defines itself stay; names that it captures
   are replaced. */
static Onnx__GraphProto *
copy_body(struct joining *j, const struct scope *outer, const Onnx__GraphProto *g)
{
    struct scope scope = {qdqi_map_new(j->arena), outer};
    Onnx__GraphProto *copy = g ? copy_of(j, g, sizeof *copy) : NULL;
    if (!copy || !scope.own)
        return NULL;
    own_names(&scope, g);
    COPY_LIST(copy->node, g->n_node, copy_node(j, &scope, g->node[i]));
    COPY_LIST(copy->initializer, g->n_initializer, copy_tensor(j, g->initializer[i]));
    COPY_LIST(copy->sparse_initializer, g->n_sparse_initializer,
              copy_sparse(j, g->sparse_initializer[i]));
    COPY_LIST(copy->output, g->n_output, copy_value(j, &scope, g->output[i]));
    return copy;
}

static Onnx__AttributeProto *
copy_attribute(struct joining *j, const struct scope *scope,
               const Onnx__AttributeProto *a)
{
    Onnx__AttributeProto *copy = copy_of(j, a, sizeof *copy);
    if (!copy)
        return NULL;
    copy->t = copy_tensor(j, a->t);
    copy->g = copy_body(j, scope, a->g);
    copy->sparse_tensor = copy_sparse(j, a->sparse_tensor);
    COPY_LIST(copy->tensors, a->n_tensors, copy_tensor(j, a->tensors[i]));
    COPY_LIST(copy->graphs, a->n_graphs, copy_body(j, scope, a->graphs[i]));
    COPY_LIST(copy->sparse_tensors, a->n_sparse_tensors,
              copy_sparse(j, a->sparse_tensors[i]));
    return copy;
}

static Onnx__NodeProto *
copy_node(struct joining *j, const struct scope *scope, const Onnx__NodeProto *node)
{
    Onnx__NodeProto *copy = copy_of(j, node, sizeof *copy);
    if (!copy)
        return NULL;
    copy->input = names_of(j, scope, node->input, node->n_input);
    copy->output = names_of(j, scope, node->output, node->n_output);
    if (!scope && node->name && *node->name)
        copy->name = fresh_name(j, node->name, "_quantized_half");
    COPY_LIST(copy->attribute, node->n_attribute,
              copy_attribute(j, scope, node->attribute[i]));
    return copy;
}

/* --- the joined graph ----------------------------------------------------- */

/* Copies a list of the float half with room for `more` elements. */
static void *
with_room(struct joining *j, const void *rows, size_t n, size_t more)
{
    void *all = alloc(j, n + more, sizeof(void *));
    if (all && n)
        memcpy(all, rows, n * sizeof(void *));
    return all;
}

static void
join_initializers(struct joining *j)
{
    const Onnx__GraphProto *f = j->f->proto->graph, *q = j->q->proto->graph;
    Onnx__TensorProto **all =
        with_room(j, f->initializer, f->n_initializer, q->n_initializer);
    for (size_t i = 0; all && i < q->n_initializer; i++) {
        Onnx__TensorProto *t = copy_tensor(j, q->initializer[i]);
        if (t)
            t->name = name_of(j, NULL, t->name);
        all[f->n_initializer + i] = t;
    }
    j->graph->initializer = all;
    j->graph->n_initializer = f->n_initializer + q->n_initializer;
}

/* Joins the types and shapes of tensors, because the runtime cannot infer them for
   every operator. */
static void
join_values(struct joining *j)
{
    const Onnx__GraphProto *f = j->f->proto->graph, *q = j->q->proto->graph;
    Onnx__ValueInfoProto **all =
        with_room(j, f->value_info, f->n_value_info, q->n_value_info);
    size_t n = f->n_value_info;
    for (size_t i = 0; all && i < q->n_value_info; i++)
        if (qdqi_map_get(j->renamed, q->value_info[i]->name))
            all[n++] = copy_value(j, NULL, q->value_info[i]);
    j->graph->value_info = all;
    j->graph->n_value_info = n;
}

/* Makes the node one of our operators with that slot. */
static void
set_slot(struct joining *j, Onnx__NodeProto *node, size_t slot)
{
    if (node && qdqi_node_add_int(j->arena, node, "slot", (int64_t)slot))
        node->domain = (char *)(uintptr_t)QDQI_DOMAIN;
}

/*
 * Returns whether Pass supports the type: it supports neither strings nor types of less
 * than a byte. Identity is used for those, but the runtime may optimize it away.
 */
static bool
can_pass(const Onnx__ValueInfoProto *v)
{
    return v->type && v->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
           qdqi_dtype_size(v->type->tensor_type->elem_type) > 0;
}

/* Adds a graph output of one half under a new name, because both halves can return
   the same input. */
static void
add_output(struct joining *j, const Onnx__ValueInfoProto *v, char *tensor, size_t i)
{
    Onnx__ValueInfoProto *value = copy_of(j, v, sizeof *value);
    char *name = fresh_name(j, tensor, "_output");
    Onnx__NodeProto *node =
        qdqi_node_new(j->arena, can_pass(v) ? QDQI_PASS : "Identity", NULL,
                      (const char *const[]){tensor}, 1, name);
    if (!value || !node)
        return;
    if (can_pass(v))
        set_slot(j, node, 0);
    value->name = name;
    j->graph->node[j->graph->n_node++] = node;
    j->graph->output[i] = value;
}

static void
join_outputs(struct joining *j)
{
    const Onnx__GraphProto *f = j->f->proto->graph, *q = j->q->proto->graph;
    size_t n = f->n_output;
    j->graph->n_output = 2 * n;
    j->graph->output = alloc(j, 2 * n, sizeof *f->output);
    for (size_t i = 0; j->graph->output && i < n; i++) {
        char *name = name_of(j, NULL, q->output[i]->name);
        add_output(j, f->output[i], f->output[i]->name, i);
        add_output(j, q->output[i], name, n + i);
    }
}

static void
join_nodes(struct joining *j, const char *const *tensors, size_t n)
{
    const Onnx__GraphProto *f = j->f->proto->graph, *q = j->q->proto->graph;
    j->graph->node = with_room(j, f->node, f->n_node, q->n_node + 2 * f->n_output + n);
    if (!j->graph->node)
        return;
    for (size_t i = 0; i < q->n_node; i++)
        j->graph->node[j->graph->n_node++] = copy_node(j, NULL, q->node[i]);
    join_outputs(j);
    for (size_t i = n; i-- > 0;) {
        char *name = (char *)(uintptr_t)tensors[i];
        const char *const both[] = {name, name_of(j, NULL, name)};
        Onnx__NodeProto *node =
            qdqi_node_new(j->arena, QDQI_COMPARE, NULL, both, 2, NULL);
        set_slot(j, node, i);
        j->graph->node[j->graph->n_node++] = node;
    }
}

/* --- joining both halves ------------------------------------------------- */

/* Returns whether the quantized model has the float model's operator sets; others may stand
   behind them. */
static bool
same_imports(const Onnx__ModelProto *f, const Onnx__ModelProto *q)
{
    bool same = f->n_opset_import <= q->n_opset_import;
    for (size_t i = 0; same && i < f->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *a = f->opset_import[i], *b = q->opset_import[i];
        same = a->version == b->version &&
               (qdqi_is_onnx_domain(a->domain)
                    ? qdqi_is_onnx_domain(b->domain)
                    : b->domain && strcmp(a->domain, b->domain) == 0);
    }
    return same;
}

static bool
same_values(const struct qdq_value *f, const struct qdq_value *q, size_t n)
{
    size_t i = 0;
    while (i < n && strcmp(f[i].name, q[i].name) == 0)
        i++;
    return i == n;
}

/*
 * ONNX Runtime merges initializers that are equal. Those of a BatchNormalization in
 * training mode would then be written by both halves, and Pass makes its running mean one
 * that is no output of the model.
 */
static enum qdq_code
check_stateless(const struct qdq_model *f, struct qdq_error *err)
{
    if (!qdqi_model_keeps_state(f))
        return QDQ_OK;
    return qdq_error_set(
        err, QDQ_UNSUPPORTED, QDQ_AT_NOTHING, NULL,
        "ONNX Runtime runs a BatchNormalization in training mode, whose "
        "running mean or variance is used, with a state that the two "
        "models would share");
}

static enum qdq_code
check_fit(const struct qdq_model *f, const struct qdq_model *q, struct qdq_error *err)
{
    const struct qdq_model_info *a = &f->info, *b = &q->info;
    const char *what = !same_imports(f->proto, q->proto) ? "operator sets"
                       : a->n_inputs != b->n_inputs      ? "inputs"
                       : a->n_outputs != b->n_outputs    ? "outputs"
                       : !same_values(a->inputs, b->inputs, a->n_inputs) ? "inputs"
                                                                         : NULL;
    if (!what)
        return QDQ_OK;
    return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_NOTHING, NULL,
                         "the two models cannot be compared: their %s differ", what);
}

static void
join_imports(struct joining *j, Onnx__ModelProto *model)
{
    Onnx__OperatorSetIdProto *id = alloc(j, 1, sizeof *id);
    Onnx__OperatorSetIdProto **all =
        with_room(j, model->opset_import, model->n_opset_import, 1);
    if (!id || !all)
        return;
    onnx__operator_set_id_proto__init(id);
    id->domain = (char *)(uintptr_t)QDQI_DOMAIN;
    id->has_version = 1;
    id->version = 1;
    all[model->n_opset_import++] = id;
    model->opset_import = all;
}

static struct qdqi_bulks
join_bulks(struct joining *j)
{
    const struct qdqi_bulks *f = &j->f->bulks, *q = &j->q->bulks;
    struct qdqi_bulk *rows = alloc(j, f->n + q->n, sizeof *rows);
    for (size_t i = 0; rows && i < f->n + q->n; i++) {
        rows[i] = i < f->n ? f->rows[i] : q->rows[i - f->n];
        rows[i].file += i < f->n ? 0 : (unsigned)j->f->n_files;
    }
    return (struct qdqi_bulks){rows, f->n + q->n};
}

static const struct qdqi_mapped *
join_files(struct joining *j)
{
    size_t n = j->f->n_files, more = j->q->n_files;
    struct qdqi_mapped *files = alloc(j, n + more, sizeof *files);
    if (!files)
        return NULL;
    memcpy(files, j->f->files, n * sizeof *files);
    memcpy(files + n, j->q->files, more * sizeof *files);
    return files;
}

enum qdq_code
qdqi_twin(const struct qdq_model *f, const struct qdq_model *quantized,
          const char *const *tensors, size_t n, struct qdqi_arena *arena,
          struct qdqi_twin *ret, struct qdq_error *err)
{
    struct joining j = {.f = f,
                        .q = quantized,
                        .arena = arena,
                        .renamed = qdqi_map_new(arena),
                        .fresh = qdqi_map_new(arena)};
    Onnx__ModelProto *model = copy_of(&j, f->proto, sizeof *model);
    j.graph = copy_of(&j, f->proto->graph, sizeof *j.graph);
    if (!j.renamed || !j.fresh || !model || !j.graph)
        return qdqi_no_memory(err);
    enum qdq_code code = check_fit(f, quantized, err);
    if (code || (code = check_stateless(f, err)))
        return code;
    model->graph = j.graph;
    /* the insertion of pairs may have raised the one and added to the other */
    model->ir_version = quantized->proto->ir_version;
    model->opset_import = quantized->proto->opset_import;
    model->n_opset_import = quantized->proto->n_opset_import;
    rename_all(&j);
    /* a value for a constant is never fed */
    qdqi_drop_constant_inputs(f, arena, j.graph);
    join_initializers(&j);
    join_values(&j);
    join_nodes(&j, tensors, n);
    join_imports(&j, model);
    *ret = (struct qdqi_twin){.model = {.proto = model,
                                        .bulks = join_bulks(&j),
                                        .files = join_files(&j),
                                        .n_files = f->n_files + quantized->n_files}};
    return qdqi_arena_exhausted(arena) ? qdqi_no_memory(err) : QDQ_OK;
}
