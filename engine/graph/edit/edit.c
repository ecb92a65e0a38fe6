/* SPDX-License-Identifier: Apache-2.0 */
/* The construction of an edit, its names and its nodes. */
#include "config.h"
#include "graph/edit/state.h"

#include <string.h>

void *
qdqi_edit_array(struct qdqi_edit *e, size_t n, size_t size)
{
    void *p = qdqi_arena_array(e->arena, n, size);
    if (!p)
        e->out_of_memory = true;
    return p;
}

char *
qdqi_edit_text(struct qdqi_edit *e, const char *text)
{
    char *copy = text ? qdqi_arena_strdup(e->arena, text) : NULL;
    if (!copy)
        e->out_of_memory = true;
    return copy;
}

void
qdqi_edit_append(struct qdqi_edit *e, struct qdqi_rows *list, void *row)
{
    void **rows =
        qdqi_arena_grow(e->arena, list->rows, list->n, &list->cap, sizeof *rows);
    if (!rows) {
        e->out_of_memory = true;
        return;
    }
    list->rows = rows;
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
    e->dropped = qdqi_edit_array(e, n, sizeof *e->dropped);
    e->changed = qdqi_edit_array(e, n, sizeof *e->changed);
    e->first = qdqi_edit_array(e, n + source->graph.n_scopes, sizeof *e->first);
    e->last = qdqi_edit_array(e, n + source->graph.n_scopes, sizeof *e->last);
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
    return qdqi_scope_ancestor(graph, tensor->uses->node, scope);
}

static bool
fill_node(struct qdqi_edit *e, Onnx__NodeProto *node, const char *op, const char *name,
          const char *const *inputs, size_t n_inputs, const char *output)
{
    onnx__node_proto__init(node);
    node->op_type = qdqi_edit_text(e, op);
    node->name = qdqi_edit_text(e, name);
    node->input = qdqi_edit_array(e, n_inputs, sizeof *node->input);
    for (size_t i = 0; node->input && i < n_inputs; i++)
        node->input[i] = qdqi_edit_text(e, inputs[i]);
    node->n_input = n_inputs;
    if (output) {
        node->output = qdqi_edit_array(e, 1, sizeof *node->output);
        if (node->output)
            node->output[0] = qdqi_edit_text(e, output);
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
    Onnx__NodeProto *node = qdqi_edit_array(e, 1, sizeof *node);
    struct qdqi_insertion *insertion = qdqi_edit_array(e, 1, sizeof *insertion);
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
qdqi_edit_add_output(struct qdqi_edit *e, Onnx__NodeProto *node, const char *name)
{
    char **outputs = e && node && name
                         ? qdqi_edit_array(e, node->n_output + 1, sizeof *outputs)
                         : NULL;
    if (!outputs)
        return;
    memcpy(outputs, node->output, node->n_output * sizeof *outputs);
    outputs[node->n_output] = qdqi_edit_text(e, name);
    if (outputs[node->n_output++])
        node->output = outputs;
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
    e->out_of_memory |=
        !qdqi_node_add_int(e->arena, node, qdqi_edit_text(e, name), value);
}

void
qdqi_edit_add_float(struct qdqi_edit *e, Onnx__NodeProto *node, const char *name,
                    float value)
{
    if (!e || !node)
        return;
    e->out_of_memory |=
        !qdqi_node_add_float(e->arena, node, qdqi_edit_text(e, name), value);
}

void
qdqi_edit_add_ints(struct qdqi_edit *e, Onnx__NodeProto *node, const char *name,
                   size_t n, const int64_t *values)
{
    if (!e || !node)
        return;
    int64_t *ints = qdqi_arena_copy(e->arena, values, n, sizeof *ints);
    if (!ints || !qdqi_node_add_int(e->arena, node, qdqi_edit_text(e, name), 0)) {
        e->out_of_memory = true;
        return;
    }
    Onnx__AttributeProto *a = node->attribute[node->n_attribute - 1];
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    a->has_i = false;
    a->ints = ints;
    a->n_ints = n;
}

Onnx__NodeProto *
qdqi_edit_change_node(struct qdqi_edit *e, size_t i)
{
    if (e->changed[i])
        return e->changed[i];
    const Onnx__NodeProto *source = e->source->graph.nodes[i].proto;
    Onnx__NodeProto *node = qdqi_edit_array(e, 1, sizeof *node);
    char **inputs = qdqi_edit_array(e, source->n_input, sizeof *inputs);
    char **outputs = qdqi_edit_array(e, source->n_output, sizeof *outputs);
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
qdqi_edit_set_int(struct qdqi_edit *e, size_t node, const char *name, int64_t value)
{
    if (e)
        qdqi_edit_add_int(e, qdqi_edit_change_node(e, node), name, value);
}

void
qdqi_edit_set_float(struct qdqi_edit *e, size_t node, const char *name, float value)
{
    if (e)
        qdqi_edit_add_float(e, qdqi_edit_change_node(e, node), name, value);
}

void
qdqi_edit_set_input(struct qdqi_edit *e, size_t node, size_t i, const char *tensor)
{
    Onnx__NodeProto *copy = e && tensor ? qdqi_edit_change_node(e, node) : NULL;
    char *name = copy ? qdqi_edit_text(e, tensor) : NULL;
    if (!name)
        return;
    copy->input[i] = name;
    note_read(e, tensor);
}

void
qdqi_edit_put_input(struct qdqi_edit *e, size_t node, size_t i, const char *tensor)
{
    Onnx__NodeProto *copy = e && tensor ? qdqi_edit_change_node(e, node) : NULL;
    if (!copy)
        return;
    if (i == copy->n_input) {
        char **inputs = qdqi_edit_array(e, i + 1, sizeof *inputs);
        if (!inputs)
            return;
        memcpy(inputs, copy->input, i * sizeof *inputs);
        copy->input = inputs;
        copy->n_input++;
    }
    qdqi_edit_set_input(e, node, i, tensor);
}

void
qdqi_edit_drop_last_input(struct qdqi_edit *e, size_t node)
{
    Onnx__NodeProto *copy = e ? qdqi_edit_change_node(e, node) : NULL;
    if (copy && copy->n_input > 0) /* others read it by the source's indices */
        copy->input[--copy->n_input] = (char *)(uintptr_t) "";
}

/* Replaces node i by one of an operator that has n inputs. */
static void
replace_node(struct qdqi_edit *e, size_t i, const char *op, const char *const *inputs,
             size_t n)
{
    Onnx__NodeProto *copy = e ? qdqi_edit_change_node(e, i) : NULL;
    if (!copy)
        return;
    /* Other code reads the copy's inputs by the source node's indices, so the array
       keeps its length. */
    for (size_t k = 0; k < copy->n_input; k++)
        copy->input[k] = (char *)(uintptr_t) "";
    for (size_t k = 0; k < n; k++) {
        copy->input[k] = inputs[k] ? qdqi_edit_text(e, inputs[k]) : NULL;
        if (!copy->input[k])
            return;
        note_read(e, inputs[k]);
    }
    copy->n_input = n;
    while (copy->n_output > 1 && !*copy->output[copy->n_output - 1])
        copy->n_output--; /* outputs without a name, of which the operator has none */
    copy->op_type = (char *)(uintptr_t)op;
    copy->n_attribute = 0;
}

void
qdqi_edit_pass_on(struct qdqi_edit *e, size_t i, const char *tensor)
{
    if (tensor)
        replace_node(e, i, "Identity", &tensor, 1);
}

void
qdqi_edit_become(struct qdqi_edit *e, size_t i, const char *op,
                 const char *const inputs[2])
{
    if (inputs[0] && inputs[1])
        replace_node(e, i, op, inputs, 2);
}

void
qdqi_edit_retype(struct qdqi_edit *e, size_t i, const char *op, const char *domain,
                 const char *without)
{
    Onnx__NodeProto *copy = e ? qdqi_edit_change_node(e, i) : NULL;
    Onnx__AttributeProto **all =
        copy ? qdqi_edit_array(e, copy->n_attribute + 1, sizeof *all) : NULL;
    size_t n = 0;
    if (!all)
        return;
    for (size_t k = 0; k < copy->n_attribute; k++)
        if (strcmp(copy->attribute[k]->name, without) != 0)
            all[n++] = copy->attribute[k];
    copy->attribute = all;
    copy->n_attribute = n;
    copy->op_type = (char *)(uintptr_t)op;
    copy->domain = (char *)(uintptr_t)domain;
}

void
qdqi_edit_set_output(struct qdqi_edit *e, size_t node, size_t i, const char *tensor)
{
    Onnx__NodeProto *copy = e && tensor ? qdqi_edit_change_node(e, node) : NULL;
    if (copy)
        copy->output[i] = qdqi_edit_text(e, tensor);
}
