/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "rewrite/edit.h"

#include <stdio.h>
#include <string.h>

/* IR version from which initializers need not be listed as inputs (onnx.proto). */
enum { IR_VERSION_INITIALIZERS = 4 };

/* A list of pointers that grows in the arena. */
struct list {
    void **rows;
    size_t n, cap;
};

struct insertion {
    Onnx__NodeProto *node;
    struct insertion *next;
};

struct qdqi_edit {
    const struct qdq_model *source;
    struct qdqi_arena *arena;
    struct qdqi_map *names;    /* those added here; the source's are in its index */
    Onnx__NodeProto **changed; /* by source node: its copy, or NULL */
    struct insertion **first, **last; /* by place, n_nodes + 1 of them */
    size_t n_added;
    struct list initializers, imports, metadata;
    bool out_of_memory;
};

static void *
grab(struct qdqi_edit *e, size_t n, size_t size)
{
    void *p = qdqi_arena_array(e->arena, n, size);
    if (!p)
        e->out_of_memory = true;
    return p;
}

static char *
copy_text(struct qdqi_edit *e, const char *text)
{
    char *copy = text ? qdqi_arena_strdup(e->arena, text) : NULL;
    if (!copy)
        e->out_of_memory = true;
    return copy;
}

static void
append(struct qdqi_edit *e, struct list *list, void *row)
{
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 64;
        void **rows = grab(e, cap, sizeof *rows);
        if (!rows)
            return;
        if (list->n)
            memcpy(rows, list->rows, list->n * sizeof *rows);
        list->rows = rows;
        list->cap = cap;
    }
    list->rows[list->n++] = row;
}

struct qdqi_edit *
qdqi_edit_new(const struct qdq_model *source, struct qdqi_arena *arena)
{
    struct qdqi_edit *e = qdqi_arena_alloc(arena, sizeof *e);
    if (!e)
        return NULL;
    size_t n = source->graph.n_nodes;
    e->source = source;
    e->arena = arena;
    e->names = qdqi_map_new(arena);
    e->changed = grab(e, n, sizeof *e->changed);
    e->first = grab(e, n + 1, sizeof *e->first);
    e->last = grab(e, n + 1, sizeof *e->last);
    return e->names && !e->out_of_memory ? e : NULL;
}

/* --- names ---------------------------------------------------------------- */

const char *
qdqi_edit_name(struct qdqi_edit *e, const char *base, const char *suffix)
{
    if (!e)
        return NULL;
    const char *name = qdqi_arena_printf(e->arena, "%s%s", base, suffix);
    for (unsigned n = 1; name && (qdqi_map_get(e->source->graph.names, name) ||
                                  qdqi_map_get(e->names, name));
         n++)
        name = qdqi_arena_printf(e->arena, "%s%s_%u", base, suffix, n);
    if (!name || !qdqi_map_put(e->names, name, e)) {
        e->out_of_memory = true;
        return NULL;
    }
    return name;
}

/* --- nodes ---------------------------------------------------------------- */

static bool
fill_node(struct qdqi_edit *e, Onnx__NodeProto *node, const char *op, const char *name,
          const char *const *inputs, size_t n_inputs, const char *output)
{
    onnx__node_proto__init(node);
    node->op_type = copy_text(e, op);
    node->name = copy_text(e, name);
    node->input = grab(e, n_inputs, sizeof *node->input);
    for (size_t i = 0; node->input && i < n_inputs; i++)
        node->input[i] = copy_text(e, inputs[i]);
    node->n_input = n_inputs;
    if (output) {
        node->output = grab(e, 1, sizeof *node->output);
        if (node->output)
            node->output[0] = copy_text(e, output);
        node->n_output = 1;
    }
    return !e->out_of_memory;
}

Onnx__NodeProto *
qdqi_edit_add_node(struct qdqi_edit *e, size_t at, const char *op, const char *name,
                   const char *const *inputs, size_t n_inputs, const char *output)
{
    if (!e)
        return NULL;
    Onnx__NodeProto *node = grab(e, 1, sizeof *node);
    struct insertion *insertion = grab(e, 1, sizeof *insertion);
    if (!node || !insertion || !fill_node(e, node, op, name, inputs, n_inputs, output))
        return NULL;
    insertion->node = node;
    if (e->last[at])
        e->last[at]->next = insertion;
    else
        e->first[at] = insertion;
    e->last[at] = insertion;
    e->n_added++;
    return node;
}

void
qdqi_edit_set_domain(Onnx__NodeProto *node, char *domain)
{
    if (node)
        node->domain = domain;
}

void
qdqi_edit_add_int(struct qdqi_edit *e, Onnx__NodeProto *node, const char *name,
                  int64_t value)
{
    if (!e || !node)
        return;
    Onnx__AttributeProto *a = grab(e, 1, sizeof *a);
    Onnx__AttributeProto **all = grab(e, node->n_attribute + 1, sizeof *all);
    if (!a || !all)
        return;
    onnx__attribute_proto__init(a);
    a->name = copy_text(e, name);
    a->has_type = 1;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    a->has_i = 1;
    a->i = value;
    if (node->n_attribute)
        memcpy(all, node->attribute, node->n_attribute * sizeof *all);
    all[node->n_attribute++] = a;
    node->attribute = all;
}

/* The copy of a source's node that may be changed. */
static Onnx__NodeProto *
change_node(struct qdqi_edit *e, size_t i)
{
    if (e->changed[i])
        return e->changed[i];
    const Onnx__NodeProto *source = e->source->graph.nodes[i].proto;
    Onnx__NodeProto *node = grab(e, 1, sizeof *node);
    char **inputs = grab(e, source->n_input, sizeof *inputs);
    if (!node || !inputs)
        return NULL;
    *node = *source;
    if (source->n_input)
        memcpy(inputs, source->input, source->n_input * sizeof *inputs);
    node->input = inputs;
    e->changed[i] = node;
    return node;
}

void
qdqi_edit_set_input(struct qdqi_edit *e, size_t node, size_t i, const char *tensor)
{
    Onnx__NodeProto *copy = e && tensor ? change_node(e, node) : NULL;
    if (copy)
        copy->input[i] = copy_text(e, tensor);
}

/* --- initializers, imports, metadata -------------------------------------- */

void
qdqi_edit_add_initializer(struct qdqi_edit *e, const char *name, enum qdqi_dtype dtype,
                          size_t n, bool scalar, const void *data)
{
    if (!e)
        return;
    Onnx__TensorProto *t = grab(e, 1, sizeof *t);
    int64_t *dims = grab(e, 1, sizeof *dims);
    if (!t || !dims)
        return;
    onnx__tensor_proto__init(t);
    t->name = copy_text(e, name);
    t->has_data_type = 1;
    t->data_type = (int32_t)dtype;
    dims[0] = (int64_t)n;
    t->dims = dims;
    t->n_dims = scalar ? 0 : 1;
    t->has_raw_data = 1;
    t->raw_data.data = (uint8_t *)(uintptr_t)data;
    t->raw_data.len = n * qdqi_dtype_size((int)dtype);
    append(e, &e->initializers, t);
}

void
qdqi_edit_import(struct qdqi_edit *e, const char *domain, int64_t version)
{
    Onnx__OperatorSetIdProto *id = e ? grab(e, 1, sizeof *id) : NULL;
    if (!id)
        return;
    onnx__operator_set_id_proto__init(id);
    id->domain = copy_text(e, domain);
    id->has_version = 1;
    id->version = version;
    append(e, &e->imports, id);
}

void
qdqi_edit_metadata(struct qdqi_edit *e, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *entry = e ? grab(e, 1, sizeof *entry) : NULL;
    if (!entry)
        return;
    onnx__string_string_entry_proto__init(entry);
    entry->key = copy_text(e, key);
    entry->value = copy_text(e, value);
    append(e, &e->metadata, entry);
}

/* --- putting it together -------------------------------------------------- */

/* A source's rows followed by those added here. */
static void *
joined(struct qdqi_edit *e, void *rows, size_t n, const struct list *added,
       size_t *ret_n)
{
    void **all = grab(e, n + added->n, sizeof *all);
    if (!all)
        return NULL;
    if (n)
        memcpy(all, rows, n * sizeof *all);
    if (added->n)
        memcpy(all + n, added->rows, added->n * sizeof *all);
    *ret_n = n + added->n;
    return all;
}

static void
merge_nodes(struct qdqi_edit *e, Onnx__GraphProto *graph)
{
    size_t n = e->source->graph.n_nodes, filled = 0;
    Onnx__NodeProto **nodes = grab(e, n + e->n_added, sizeof *nodes);
    if (!nodes)
        return;
    for (size_t i = 0; i <= n; i++) {
        for (const struct insertion *k = e->first[i]; k; k = k->next)
            nodes[filled++] = k->node;
        if (i == n)
            break;
        const char *rename = e->source->graph.nodes[i].rename;
        Onnx__NodeProto *copy = rename ? change_node(e, i) : e->changed[i];
        if (copy && rename)
            copy->name = copy_text(e, rename);
        nodes[filled++] = copy ? copy : e->source->proto->graph->node[i];
    }
    graph->node = nodes;
    graph->n_node = filled;
}

/*
 * Before IR version 4 every initializer is an input, too. Ours are not, so the version
 * is raised, and the inputs that are constants are taken out: they would become
 * overridable ones.
 */
static void
raise_ir_version(struct qdqi_edit *e, Onnx__ModelProto *model, Onnx__GraphProto *graph)
{
    if (model->ir_version >= IR_VERSION_INITIALIZERS || e->initializers.n == 0)
        return;
    model->ir_version = IR_VERSION_INITIALIZERS;
    Onnx__ValueInfoProto **inputs = grab(e, graph->n_input, sizeof *inputs);
    if (!inputs)
        return;
    size_t n = 0;
    for (size_t i = 0; i < graph->n_input; i++) {
        const struct qdqi_tensor *t =
            qdqi_map_get(e->source->graph.tensors, graph->input[i]->name);
        if (!t->constant)
            inputs[n++] = graph->input[i];
    }
    graph->input = inputs;
    graph->n_input = n;
}

static void
merge_metadata(struct qdqi_edit *e, Onnx__ModelProto *model)
{
    Onnx__StringStringEntryProto **kept =
        grab(e, model->n_metadata_props, sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; kept && i < model->n_metadata_props; i++) {
        bool replaced = false;
        for (size_t k = 0; k < e->metadata.n; k++) {
            const Onnx__StringStringEntryProto *entry = e->metadata.rows[k];
            const char *key = model->metadata_props[i]->key;
            replaced |= key && entry->key && strcmp(key, entry->key) == 0;
        }
        if (!replaced)
            kept[n++] = model->metadata_props[i];
    }
    model->metadata_props = joined(e, kept, n, &e->metadata, &model->n_metadata_props);
}

enum qdq_code
qdqi_edit_finish(struct qdqi_edit *e, const Onnx__ModelProto **ret,
                 struct qdq_error *err)
{
    Onnx__ModelProto *model = e ? grab(e, 1, sizeof *model) : NULL;
    Onnx__GraphProto *graph = e ? grab(e, 1, sizeof *graph) : NULL;
    if (!model || !graph)
        return qdqi_no_memory(err);
    *model = *e->source->proto;
    *graph = *model->graph;
    model->graph = graph;
    merge_nodes(e, graph);
    graph->initializer = joined(e, graph->initializer, graph->n_initializer,
                                &e->initializers, &graph->n_initializer);
    model->opset_import = joined(e, model->opset_import, model->n_opset_import,
                                 &e->imports, &model->n_opset_import);
    merge_metadata(e, model);
    raise_ir_version(e, model, graph);
    if (e->out_of_memory)
        return qdqi_no_memory(err);
    *ret = model;
    return QDQ_OK;
}
