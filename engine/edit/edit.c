/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "edit/edit.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* IR version from which initializers need not be listed as inputs (onnx.proto). */
enum { IR_VERSION_INITIALIZERS = 4 };

enum { RAW_DATA = 9 }; /* field of TensorProto */

/* A list of pointers that grows in the arena. */
struct list {
    void **rows;
    size_t n, cap;
};

struct insertion {
    Onnx__NodeProto *node;
    struct insertion *next;
};

/* An initializer of the edit; see place_initializers(). */
struct added {
    Onnx__TensorProto *tensor;
    size_t scope; /* the graph that it goes to */
    bool is_read;
};

/* How often a tensor of the source is read; kept from when it is first asked for. */
struct usage {
    size_t left;
    bool dropped;
};

struct qdqi_edit {
    const struct qdq_model *source;
    struct qdqi_arena *arena;
    struct qdqi_map *names;    /* those added here; the source's are in its index */
    struct qdqi_map *read;     /* tensors of the source that added nodes read */
    struct qdqi_map *usages;   /* tensor -> struct usage */
    struct qdqi_map *replaced; /* initializer -> what stands in its place */
    bool *dropped;             /* by source node */
    size_t n_dropped;          /* initializers and nodes */
    struct qdqi_bulks all_bulks;
    size_t *origins;                  /* of the nodes of the finished main graph */
    Onnx__NodeProto **changed;        /* by source node: its copy, or NULL */
    struct insertion **first, **last; /* by place: n_nodes + n_scopes of them */
    size_t n_added;
    struct list initializers, imports, metadata, bulks;
    struct list *placed; /* by graph: the initializers that it gets */
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
    e->read = qdqi_map_new(arena);
    e->usages = qdqi_map_new(arena);
    e->replaced = qdqi_map_new(arena);
    e->dropped = grab(e, n, sizeof *e->dropped);
    e->changed = grab(e, n, sizeof *e->changed);
    e->first = grab(e, n + source->graph.n_scopes, sizeof *e->first);
    e->last = grab(e, n + source->graph.n_scopes, sizeof *e->last);
    return e->names && e->read && e->usages && e->replaced && !e->out_of_memory ? e
                                                                                : NULL;
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

size_t
qdqi_edit_behind(const struct qdq_model *source, const struct qdqi_tensor *tensor)
{
    const struct qdqi_graph *graph = &source->graph;
    const struct qdqi_scope *scope = &graph->scopes[tensor->scope];
    size_t place = tensor->producer >= 0 ? graph->nodes[tensor->producer].place + 1 : 0;
    return place < scope->proto->n_node ? scope->nodes[place]
                                        : graph->n_nodes + tensor->scope;
}

size_t
qdqi_edit_before_uses(const struct qdq_model *source, const struct qdqi_tensor *tensor)
{
    const struct qdqi_graph *graph = &source->graph;
    size_t scope = graph->nodes[tensor->uses->node].scope;
    for (const struct qdqi_use *use = tensor->uses; use; use = use->next)
        while (!qdqi_scope_sees(graph, graph->nodes[use->node].scope, scope))
            scope = graph->scopes[scope].outer;
    return qdqi_scope_lift(graph, tensor->uses->node, scope);
}

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

static void
note_read(struct qdqi_edit *e, const char *name)
{
    struct qdqi_tensor *t = qdqi_map_get(e->source->graph.tensors, name);
    if (t && !qdqi_map_put(e->read, t->name, t))
        e->out_of_memory = true;
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
    for (size_t i = 0; i < n_inputs; i++)
        note_read(e, inputs[i]);
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
    char **outputs = grab(e, source->n_output, sizeof *outputs);
    if (!node || !inputs || !outputs)
        return NULL;
    *node = *source;
    if (source->n_output)
        memcpy(outputs, source->output, source->n_output * sizeof *outputs);
    node->output = outputs;
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
    char *name = copy ? copy_text(e, tensor) : NULL;
    if (!name)
        return;
    copy->input[i] = name;
    note_read(e, tensor);
}

void
qdqi_edit_pass_on(struct qdqi_edit *e, size_t i, const char *tensor)
{
    Onnx__NodeProto *copy = e && tensor ? change_node(e, i) : NULL;
    char *name = copy ? copy_text(e, tensor) : NULL;
    if (!name)
        return;
    /* What it read before is asked for in this list yet, whatever its length. */
    for (size_t k = 1; k < copy->n_input; k++)
        copy->input[k] = (char *)(uintptr_t) "";
    copy->input[0] = name;
    copy->n_input = 1;
    copy->op_type = (char *)(uintptr_t) "Identity";
    copy->n_attribute = 0;
    note_read(e, tensor);
}

void
qdqi_edit_set_output(struct qdqi_edit *e, size_t node, size_t i, const char *tensor)
{
    Onnx__NodeProto *copy = e && tensor ? change_node(e, node) : NULL;
    if (copy)
        copy->output[i] = copy_text(e, tensor);
}

/* --- initializers, imports, metadata -------------------------------------- */

/* An initializer whose data is still to be set; NULL when out of memory. */
static Onnx__TensorProto *
add_tensor(struct qdqi_edit *e, const char *name, enum qdqi_dtype dtype, size_t rank,
           const int64_t *dims)
{
    Onnx__TensorProto *t = grab(e, 1, sizeof *t);
    int64_t *own = grab(e, rank, sizeof *own);
    if (!t || !own)
        return NULL;
    onnx__tensor_proto__init(t);
    t->name = copy_text(e, name);
    t->has_data_type = 1;
    t->data_type = (int32_t)dtype;
    if (rank)
        memcpy(own, dims, rank * sizeof *own);
    t->dims = own;
    t->n_dims = rank;
    struct added *added = grab(e, 1, sizeof *added);
    if (!added)
        return NULL;
    added->tensor = t;
    append(e, &e->initializers, added);
    return t;
}

void
qdqi_edit_add_initializer(struct qdqi_edit *e, const char *name, enum qdqi_dtype dtype,
                          size_t n, bool scalar, const void *data)
{
    const int64_t dims[] = {(int64_t)n};
    qdqi_edit_add_tensor(e, name, dtype, scalar ? 0 : 1, dims, data,
                         n * qdqi_dtype_size((int)dtype));
}

void
qdqi_edit_add_tensor(struct qdqi_edit *e, const char *name, enum qdqi_dtype dtype,
                     size_t rank, const int64_t *dims, const void *data, size_t size)
{
    Onnx__TensorProto *t = e ? add_tensor(e, name, dtype, rank, dims) : NULL;
    if (!t)
        return;
    t->has_raw_data = 1;
    t->raw_data.data = (uint8_t *)(uintptr_t)data;
    t->raw_data.len = size;
}

/*
 * Makes a tensor's data a bulk of the edit: a private field behind what else the file
 * says of the tensor that is unknown.
 */
static void
set_made(struct qdqi_edit *e, Onnx__TensorProto *t, uint64_t size,
         const struct qdqi_made *made)
{
    size_t n = t->base.n_unknown_fields, kept = 0;
    struct qdqi_bulk *bulk = grab(e, 1, sizeof *bulk);
    ProtobufCMessageUnknownField *fields = grab(e, n + 1, sizeof *fields);
    uint8_t *reference = grab(e, QDQI_BULK_REFERENCE, 1);
    if (!bulk || !fields || !reference)
        return;
    for (size_t i = 0; i < n; i++)
        if (t->base.unknown_fields[i].tag != QDQI_BULK_FIELD)
            fields[kept++] = t->base.unknown_fields[i];
    size_t len = qdqi_bulk_reference(reference, e->source->bulks.n + e->bulks.n);
    *bulk = (struct qdqi_bulk){.size = size, .field = RAW_DATA, .made = made};
    fields[kept++] = (ProtobufCMessageUnknownField){
        QDQI_BULK_FIELD, PROTOBUF_C_WIRE_TYPE_VARINT, len, reference};
    t->base.unknown_fields = fields;
    t->base.n_unknown_fields = kept;
    append(e, &e->bulks, bulk);
}

void
qdqi_edit_add_made(struct qdqi_edit *e, const char *name, enum qdqi_dtype dtype,
                   size_t rank, const int64_t *dims, uint64_t size,
                   const struct qdqi_made *made)
{
    Onnx__TensorProto *t = e ? add_tensor(e, name, dtype, rank, dims) : NULL;
    if (t)
        set_made(e, t, size, made);
}

/* Makes a Constant hold another tensor. */
static void
set_value(struct qdqi_edit *e, size_t i, Onnx__TensorProto *t)
{
    Onnx__NodeProto *node = change_node(e, i);
    Onnx__AttributeProto **all = node ? grab(e, node->n_attribute, sizeof *all) : NULL;
    Onnx__AttributeProto *value = grab(e, 1, sizeof *value);
    if (!all || !value)
        return;
    for (size_t k = 0; k < node->n_attribute; k++) {
        all[k] = node->attribute[k];
        if (!all[k]->name || strcmp(all[k]->name, "value") != 0)
            continue;
        *value = *all[k];
        value->t = t;
        all[k] = value;
    }
    node->attribute = all;
}

void
qdqi_edit_set_made(struct qdqi_edit *e, const struct qdqi_tensor *tensor, uint64_t size,
                   const struct qdqi_made *made)
{
    Onnx__TensorProto *t = e ? grab(e, 1, sizeof *t) : NULL;
    if (!t)
        return;
    *t = *tensor->constant;
    t->n_float_data = t->n_double_data = t->n_int32_data = t->n_int64_data = 0;
    t->n_uint64_data = 0;
    t->has_raw_data = 0;
    set_made(e, t, size, made);
    if (tensor->producer >= 0)
        set_value(e, (size_t)tensor->producer, t);
    else if (!qdqi_map_put(e->replaced, tensor->name, t))
        e->out_of_memory = true;
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

/* --- what nothing reads any more ------------------------------------------ */

static bool
still_reads(const struct qdqi_edit *e, const struct qdqi_use *use, const char *name)
{
    const Onnx__NodeProto *copy = e->changed[use->node];
    return !copy || strcmp(copy->input[use->input], name) == 0;
}

/* NULL when out of memory. A use that cannot be taken away counts, too. */
static struct usage *
usage_of(struct qdqi_edit *e, const struct qdqi_tensor *t)
{
    struct usage *u = qdqi_map_get(e->usages, t->name);
    if (u || !(u = grab(e, 1, sizeof *u)))
        return u;
    u->left = t->is_output || t->is_captured || t->is_overridable ||
              qdqi_map_get(e->read, t->name);
    for (const struct qdqi_use *use = t->uses; use; use = use->next)
        u->left += still_reads(e, use, t->name);
    if (!qdqi_map_put(e->usages, t->name, u))
        e->out_of_memory = true;
    return u;
}

/* Drops a node none of whose outputs is read; its inputs are to be looked at next. */
static void
drop_node(struct qdqi_edit *e, size_t i, struct list *todo)
{
    const struct qdqi_node *node = &e->source->graph.nodes[i];
    if (e->dropped[i] || e->changed[i])
        return;
    for (size_t k = 0; k < node->proto->n_output; k++) {
        struct usage *u = node->outputs[k] ? usage_of(e, node->outputs[k]) : NULL;
        if (node->outputs[k] && (!u || u->left))
            return;
    }
    for (size_t k = 0; k < node->proto->n_output; k++)
        if (node->outputs[k])
            usage_of(e, node->outputs[k])->dropped = true;
    for (size_t k = 0; k < node->proto->n_input; k++) {
        struct usage *u = node->inputs[k] ? usage_of(e, node->inputs[k]) : NULL;
        if (!u)
            continue;
        u->left--;
        append(e, todo, node->inputs[k]);
    }
    e->dropped[i] = true;
    e->n_dropped++;
}

static void
drop_tensor(struct qdqi_edit *e, const struct qdqi_tensor *t, struct list *todo)
{
    struct usage *u = usage_of(e, t);
    if (!u || u->left || u->dropped)
        return;
    if (t->producer >= 0) {
        drop_node(e, (size_t)t->producer, todo);
    } else if (t->constant) {
        u->dropped = true;
        e->n_dropped++;
    }
}

void
qdqi_edit_drop_unused(struct qdqi_edit *e, const char *tensor)
{
    struct list todo = {.n = 0};
    void *t = e ? qdqi_map_get(e->source->graph.tensors, tensor) : NULL;
    if (!t || e->source->proto->n_training_info) /* which names initializers, too */
        return;
    append(e, &todo, t);
    while (todo.n > 0 && !e->out_of_memory)
        drop_tensor(e, todo.rows[--todo.n], &todo);
}

static bool
is_dropped(const struct qdqi_edit *e, const char *tensor)
{
    const struct usage *u = tensor ? qdqi_map_get(e->usages, tensor) : NULL;
    return u && u->dropped;
}

/* Messages without those that speak of a dropped tensor; `name`: where they name it. */
static void *
kept(struct qdqi_edit *e, void *rows, size_t *n, size_t name)
{
    void **all = grab(e, *n, sizeof *all);
    size_t left = 0;
    for (size_t i = 0; all && i < *n; i++) {
        void *row;
        const char *tensor;
        memcpy(&row, (char *)rows + i * sizeof row, sizeof row);
        memcpy(&tensor, (char *)row + name, sizeof tensor);
        if (!is_dropped(e, tensor))
            all[left++] = row;
    }
    *n = left;
    return all;
}

static void
leave_out_dropped(struct qdqi_edit *e, Onnx__GraphProto *graph)
{
    if (!e->n_dropped)
        return;
    graph->initializer = kept(e, graph->initializer, &graph->n_initializer,
                              offsetof(Onnx__TensorProto, name));
    graph->value_info = kept(e, graph->value_info, &graph->n_value_info,
                             offsetof(Onnx__ValueInfoProto, name));
    graph->quantization_annotation =
        kept(e, graph->quantization_annotation, &graph->n_quantization_annotation,
             offsetof(Onnx__TensorAnnotation, tensor_name));
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
replace_initializers(struct qdqi_edit *e, Onnx__GraphProto *graph)
{
    if (qdqi_map_size(e->replaced) == 0)
        return;
    Onnx__TensorProto **all = grab(e, graph->n_initializer, sizeof *all);
    if (!all)
        return;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        Onnx__TensorProto *t = qdqi_map_get(e->replaced, graph->initializer[i]->name);
        all[i] = t ? t : graph->initializer[i];
    }
    graph->initializer = all;
}

/* The nodes of one graph of the source, with those added there. */
static void
merge_nodes(struct qdqi_edit *e, size_t scope, Onnx__GraphProto *graph)
{
    const struct qdqi_scope *from = &e->source->graph.scopes[scope];
    size_t n = from->proto->n_node, end = e->source->graph.n_nodes + scope, filled = 0;
    Onnx__NodeProto **nodes = grab(e, n + e->n_added, sizeof *nodes);
    size_t *origins = grab(e, n + e->n_added, sizeof *origins);
    if (!nodes || !origins)
        return;
    for (size_t place = 0; place <= n; place++) {
        size_t i = place < n ? from->nodes[place] : end;
        for (const struct insertion *k = e->first[i]; k; k = k->next) {
            origins[filled] = SIZE_MAX;
            nodes[filled++] = k->node;
        }
        if (i == end || e->dropped[i])
            continue;
        origins[filled] = i;
        nodes[filled++] = e->changed[i] ? e->changed[i] : from->proto->node[place];
    }
    graph->node = nodes;
    graph->n_node = filled;
    if (scope == 0)
        e->origins = origins;
}

/* --- nested graphs -------------------------------------------------------- */

/*
 * An initializer belongs to the graph whose nodes read it, to the main one where nodes of
 * several do.
 */
static void
note_reader(struct qdqi_map *added, const Onnx__NodeProto *node, size_t scope)
{
    for (size_t i = 0; i < node->n_input; i++) {
        struct added *a = node->input[i] ? qdqi_map_get(added, node->input[i]) : NULL;
        if (!a)
            continue;
        a->scope = a->is_read && a->scope != scope ? 0 : scope;
        a->is_read = true;
    }
}

static void
place_initializers(struct qdqi_edit *e)
{
    const struct qdqi_graph *graph = &e->source->graph;
    struct qdqi_map *added = qdqi_map_new(e->arena);
    bool ok = added && (e->placed = grab(e, graph->n_scopes, sizeof *e->placed));
    for (size_t i = 0; ok && i < e->initializers.n; i++) {
        struct added *a = e->initializers.rows[i];
        ok = a->tensor->name && qdqi_map_put(added, a->tensor->name, a);
    }
    e->out_of_memory |= !ok;
    for (size_t i = 0; ok && i < graph->n_nodes + graph->n_scopes; i++) {
        size_t scope = i < graph->n_nodes ? graph->nodes[i].scope : i - graph->n_nodes;
        for (const struct insertion *k = e->first[i]; k; k = k->next)
            note_reader(added, k->node, scope);
        if (i < graph->n_nodes && e->changed[i])
            note_reader(added, e->changed[i], scope);
    }
    for (size_t i = 0; ok && i < e->initializers.n; i++) {
        struct added *a = e->initializers.rows[i];
        append(e, &e->placed[a->scope], a->tensor);
    }
}

/* Makes the copy of a graph's owner own the copy of the graph. */
static void
set_graph(struct qdqi_edit *e, const struct qdqi_scope *scope, Onnx__GraphProto *graph)
{
    Onnx__NodeProto *owner = change_node(e, (size_t)scope->owner);
    Onnx__AttributeProto **all =
        owner ? grab(e, owner->n_attribute, sizeof *all) : NULL;
    Onnx__AttributeProto *a = all ? grab(e, 1, sizeof *a) : NULL;
    if (!a)
        return;
    memcpy(all, owner->attribute, owner->n_attribute * sizeof *all);
    *a = *all[scope->attribute];
    if (a->g == scope->proto) {
        a->g = graph;
    } else {
        Onnx__GraphProto **graphs = grab(e, a->n_graphs, sizeof *graphs);
        if (!graphs)
            return;
        memcpy(graphs, a->graphs, a->n_graphs * sizeof *graphs);
        graphs[scope->place] = graph;
        a->graphs = graphs;
    }
    all[scope->attribute] = a;
    owner->attribute = all;
}

/* The copy of one graph; of those nested in it the copies are made already. */
static Onnx__GraphProto *
merge_graph(struct qdqi_edit *e, size_t scope)
{
    Onnx__GraphProto *graph = grab(e, 1, sizeof *graph);
    if (!graph)
        return NULL;
    *graph = *e->source->graph.scopes[scope].proto;
    merge_nodes(e, scope, graph);
    replace_initializers(e, graph);
    leave_out_dropped(e, graph);
    graph->initializer = joined(e, graph->initializer, graph->n_initializer,
                                &e->placed[scope], &graph->n_initializer);
    return graph;
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

/* The source's bulks followed by those added here. */
static void
merge_bulks(struct qdqi_edit *e)
{
    size_t n = e->source->bulks.n;
    e->all_bulks = e->source->bulks;
    if (!e->bulks.n)
        return;
    struct qdqi_bulk *all = grab(e, n + e->bulks.n, sizeof *all);
    if (!all)
        return;
    if (n)
        memcpy(all, e->source->bulks.rows, n * sizeof *all);
    for (size_t i = 0; i < e->bulks.n; i++)
        all[n + i] = *(const struct qdqi_bulk *)e->bulks.rows[i];
    e->all_bulks = (struct qdqi_bulks){all, n + e->bulks.n};
}

const size_t *
qdqi_edit_origins(const struct qdqi_edit *e)
{
    return e->origins;
}

struct qdqi_bulks
qdqi_edit_bulks(const struct qdqi_edit *e)
{
    return e->all_bulks;
}

enum qdq_code
qdqi_edit_finish(struct qdqi_edit *e, const Onnx__ModelProto **ret,
                 struct qdq_error *err)
{
    Onnx__ModelProto *model = e ? grab(e, 1, sizeof *model) : NULL;
    if (!model)
        return qdqi_no_memory(err);
    *model = *e->source->proto;
    place_initializers(e);
    if (e->out_of_memory)
        return qdqi_no_memory(err);
    for (size_t s = e->source->graph.n_scopes; s-- > 0;) {
        const struct qdqi_scope *scope = &e->source->graph.scopes[s];
        Onnx__GraphProto *graph = merge_graph(e, s);
        if (!graph)
            return qdqi_no_memory(err);
        if (s > 0 && !e->dropped[scope->owner])
            set_graph(e, scope, graph);
        else if (s == 0)
            model->graph = graph;
    }
    merge_bulks(e);
    model->opset_import = joined(e, model->opset_import, model->n_opset_import,
                                 &e->imports, &model->n_opset_import);
    merge_metadata(e, model);
    raise_ir_version(e, model, model->graph);
    if (e->out_of_memory)
        return qdqi_no_memory(err);
    *ret = model;
    return QDQ_OK;
}
