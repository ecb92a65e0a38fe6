/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the index of the graphs: the producer and the uses of each tensor. Linear in
 * the size of the model. Names are unique in the whole model (scopes.c), so one table
 * holds all tensors.
 */
#include "config.h"
#include "files/model/model.h"

#include "files/model/constant.h"

#include <string.h>

/* Finds the tensor of that name, or adds it to graph `scope`. */
static enum qdq_code
find_or_add_tensor(struct qdq_model *m, size_t scope, const char *name,
                   struct qdqi_tensor **ret, struct qdq_error *err)
{
    struct qdqi_tensor *tensor = qdqi_map_get(m->graph.tensors, name);
    if (!tensor) {
        tensor = qdqi_arena_alloc(m->arena, sizeof *tensor);
        if (!tensor || !qdqi_map_put(m->graph.tensors, name, tensor) ||
            !qdqi_name_take(m, name))
            return qdqi_no_memory(err);
        tensor->name = name;
        tensor->scope = scope;
        tensor->producer = -1;
    }
    *ret = tensor;
    return QDQ_OK;
}

/* Makes a tensor a constant with the elements that the file stores. */
static void
set_constant(struct qdqi_tensor *tensor, const Onnx__TensorProto *t)
{
    size_t n;
    tensor->constant = t;
    tensor->is_fixed = true;
    tensor->dtype = (enum qdqi_dtype)t->data_type;
    if (qdqi_count_elements(t->dims, t->n_dims, &n))
        tensor->view = (struct qdqi_view){t, t->n_dims, t->dims, NULL};
}

/* --- tensors without a producer ------------------------------------------ */

static enum qdq_code
index_initializer(struct qdq_model *m, size_t scope, const Onnx__TensorProto *t,
                  struct qdqi_tensor **ret, struct qdq_error *err)
{
    if (!t->name || !*t->name)
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                             "an initializer has no name");
    enum qdq_code code = find_or_add_tensor(m, scope, t->name, ret, err);
    if (!code && (*ret)->is_fixed)
        return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_TENSOR, t->name,
                             "two initializers are called '%s'", t->name);
    return code;
}

static enum qdq_code
index_initializers(struct qdq_model *m, size_t scope, struct qdq_error *err)
{
    const Onnx__GraphProto *g = m->graph.scopes[scope].proto;
    struct qdqi_tensor *tensor;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < g->n_initializer && !code; i++)
        if (!(code = index_initializer(m, scope, g->initializer[i], &tensor, err)))
            set_constant(tensor, g->initializer[i]);
    for (size_t i = 0; i < g->n_sparse_initializer && !code; i++) {
        const Onnx__TensorProto *t = g->sparse_initializer[i]->values;
        if (!t || (code = index_initializer(m, scope, t, &tensor, err)))
            continue;
        tensor->is_fixed = true; /* although its elements are not read */
        tensor->dtype = (enum qdqi_dtype)t->data_type;
    }
    return code;
}

static enum qdqi_dtype
declared_dtype(const Onnx__ValueInfoProto *v)
{
    if (!v->type || v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return QDQI_UNKNOWN;
    return (enum qdqi_dtype)v->type->tensor_type->elem_type;
}

/* From this IR version on an initializer that is also an input is only that input's
   default. */
enum { IR_VERSION_OVERRIDABLE = 4 };

/*
 * Marks a graph input. Up to IR version 3 all initializers are listed as inputs. From
 * version 4 on an initializer in that list can be overridden by a caller; it still
 * counts as a constant here, because a weight's scales come from the elements in the
 * file. Inputs of a nested graph always get their value from the owner.
 */
static void
mark_input(const struct qdq_model *m, size_t scope, struct qdqi_tensor *tensor)
{
    if (scope > 0) {
        tensor->constant = NULL;
        tensor->view = (struct qdqi_view){NULL, 0, NULL, NULL};
        tensor->is_fixed = false;
    }
    tensor->is_input |= !tensor->is_fixed;
    tensor->is_overridable |=
        tensor->is_fixed && m->proto->ir_version >= IR_VERSION_OVERRIDABLE;
}

enum role { INPUT, OUTPUT, OTHER };

static enum qdq_code
index_values(struct qdq_model *m, size_t scope, enum role role, struct qdq_error *err)
{
    const Onnx__GraphProto *g = m->graph.scopes[scope].proto;
    Onnx__ValueInfoProto **values = role == INPUT    ? g->input
                                    : role == OUTPUT ? g->output
                                                     : g->value_info;
    size_t n = role == INPUT    ? g->n_input
               : role == OUTPUT ? g->n_output
                                : g->n_value_info;
    for (size_t i = 0; i < n; i++) {
        if (!values[i]->name || !*values[i]->name)
            return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                                 "a value of the graph has no name");
        struct qdqi_tensor *tensor;
        enum qdq_code code =
            find_or_add_tensor(m, scope, values[i]->name, &tensor, err);
        if (code)
            return code;
        if (role == INPUT)
            mark_input(m, scope, tensor);
        if (role == OUTPUT && tensor->scope == scope)
            tensor->is_output = true;
        else if (role == OUTPUT)
            tensor->is_captured = true;
        if (tensor->dtype == QDQI_UNKNOWN)
            tensor->dtype = declared_dtype(values[i]);
    }
    return QDQ_OK;
}

/* --- nodes ---------------------------------------------------------------- */

/* Indexes a Constant node. Its output is fixed, whatever the form of its value. */
static enum qdq_code
index_constant(struct qdq_model *m, struct qdqi_node *node, struct qdq_error *err)
{
    struct qdqi_tensor *tensor = node->outputs[0];
    const Onnx__TensorProto *value = qdqi_constant_value(m->arena, node->proto);
    const Onnx__AttributeProto *sparse =
        qdqi_node_attribute(node->proto, "sparse_value");
    if (qdqi_arena_exhausted(m->arena))
        return qdqi_no_memory(err);
    if (value) {
        set_constant(tensor, value);
        return QDQ_OK;
    }
    tensor->is_fixed = true;
    if (sparse && sparse->sparse_tensor && sparse->sparse_tensor->values)
        tensor->dtype = (enum qdqi_dtype)sparse->sparse_tensor->values->data_type;
    else if (qdqi_node_attribute(node->proto, "value_string") ||
             qdqi_node_attribute(node->proto, "value_strings"))
        tensor->dtype = QDQI_STRING;
    return QDQ_OK;
}

/* Fails where a node leaves out an output that is none of its optional ones, but one of a
   number that varies. ONNX Runtime ends the process when it runs such a node. */
static enum qdq_code
check_omitted(const struct qdqi_node *node, size_t k, struct qdq_error *err)
{
    static const char *const variadic[] = {"Split", "If", "Loop", "Scan", NULL};
    if (!qdqi_node_is_one_of(node->proto, variadic))
        return QDQ_OK;
    return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NODE, node->name,
                         "node '%s' (%s) has no name for output %zu, which is not "
                         "optional: give it one, also if nothing reads it",
                         node->name, node->proto->op_type, k);
}

static enum qdq_code
index_outputs(struct qdq_model *m, size_t i, struct qdq_error *err)
{
    struct qdqi_node *node = &m->graph.nodes[i];
    const Onnx__NodeProto *p = node->proto;
    for (size_t k = 0; k < p->n_output; k++) {
        if (!*p->output[k]) {
            enum qdq_code omitted = check_omitted(node, k, err);
            if (omitted)
                return omitted;
            continue;
        }
        struct qdqi_tensor *tensor;
        enum qdq_code code =
            find_or_add_tensor(m, node->scope, p->output[k], &tensor, err);
        if (code)
            return code;
        if (tensor->producer >= 0 || tensor->is_fixed || tensor->is_input)
            return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_TENSOR, p->output[k],
                                 "tensor '%s' is made twice", p->output[k]);
        tensor->producer = (int64_t)i;
        node->outputs[k] = tensor;
    }
    if (p->n_output != 1 || !node->outputs[0])
        return QDQ_OK;
    return qdqi_node_is(p, "Constant") ? index_constant(m, node, err) : QDQ_OK;
}

static enum qdq_code
add_use(struct qdq_model *m, struct qdqi_tensor *tensor, size_t node, int input,
        struct qdq_error *err)
{
    struct qdqi_use *use = qdqi_arena_alloc(m->arena, sizeof *use);
    if (!use)
        return qdqi_no_memory(err);
    *use = (struct qdqi_use){.node = node, .input = input};
    if (tensor->last_use)
        tensor->last_use->next = use;
    else
        tensor->uses = use;
    tensor->last_use = use;
    return QDQ_OK;
}

static bool
is_made(const struct qdqi_tensor *tensor)
{
    return tensor && (tensor->producer >= 0 || tensor->is_fixed || tensor->is_input);
}

static enum qdq_code
index_inputs(struct qdq_model *m, size_t i, struct qdq_error *err)
{
    struct qdqi_node *node = &m->graph.nodes[i];
    const Onnx__NodeProto *p = node->proto;
    for (size_t k = 0; k < p->n_input; k++) {
        if (!*p->input[k])
            continue;
        struct qdqi_tensor *tensor = qdqi_map_get(m->graph.tensors, p->input[k]);
        if (!is_made(tensor) ||
            !qdqi_scope_sees(&m->graph, node->scope, tensor->scope)) {
            if (m->graph.scopes[node->scope].is_opaque)
                continue; /* their operators are not known */
            return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NODE, node->name,
                                 "node '%s' uses tensor '%s', which nothing makes",
                                 node->name, p->input[k]);
        }
        node->inputs[k] = tensor;
        enum qdq_code code = add_use(m, tensor, i, (int)k, err);
        if (code)
            return code;
    }
    return QDQ_OK;
}

/* A name that the file gives to one or more nodes. */
struct given_name {
    bool used;       /* the first of these nodes has it */
    unsigned suffix; /* last suffix that was tried for another of them */
};

static enum qdq_code
collect_given_names(struct qdq_model *m, struct qdqi_map *given, struct qdq_error *err)
{
    for (size_t i = 0; i < m->graph.n_nodes; i++) {
        const char *name = m->graph.nodes[i].proto->name;
        if (!name || !*name || qdqi_map_get(given, name))
            continue;
        struct given_name *g = qdqi_arena_alloc(m->arena, sizeof *g);
        if (!g || !qdqi_map_put(given, name, g))
            return qdqi_no_memory(err);
    }
    return QDQ_OK;
}

/*
 * Sets the reported name: the file's name, with an unused suffix when an earlier node
 * has the same name (the message gets the suffix, too), or "@OUTPUT" for an unnamed
 * node.
 */
static enum qdq_code
name_node(struct qdq_model *m, struct qdqi_node *node, size_t i, struct qdqi_map *given,
          struct qdq_error *err)
{
    const Onnx__NodeProto *p = node->proto;
    const char *name = p->name;
    struct given_name *g = name && *name ? qdqi_map_get(given, name) : NULL;
    if (!g) {
        const char *output = p->n_output ? p->output[0] : "";
        name = *output ? qdqi_arena_printf(m->arena, "@%s", output)
                       : qdqi_arena_printf(m->arena, "@%zu", i);
    } else if (g->used) {
        do
            name = qdqi_arena_printf(m->arena, "%s_%u", p->name, ++g->suffix);
        while (name &&
               (qdqi_map_get(given, name) || qdqi_map_get(m->graph.by_name, name)));
        m->graph.scopes[node->scope].proto->node[node->place]->name =
            (char *)(uintptr_t)name;
    } else {
        g->used = true;
    }
    if (!name || !qdqi_map_put(m->graph.by_name, name, node) ||
        !qdqi_name_take(m, name))
        return qdqi_no_memory(err);
    node->name = name;
    return QDQ_OK;
}

static enum qdq_code
index_node_names(struct qdq_model *m, struct qdq_error *err)
{
    struct qdqi_map *given = qdqi_map_new(m->arena);
    m->graph.by_name = qdqi_map_new(m->arena);
    if (!given || !m->graph.by_name)
        return qdqi_no_memory(err);
    enum qdq_code code = collect_given_names(m, given, err);
    for (size_t s = 0; s < m->graph.n_scopes; s++) {
        const struct qdqi_scope *scope = &m->graph.scopes[s];
        for (size_t i = 0; i < scope->proto->n_node && !code; i++)
            code = name_node(m, &m->graph.nodes[scope->nodes[i]], scope->nodes[i],
                             given, err);
    }
    return code;
}

static enum qdq_code
make_room(struct qdq_model *m, struct qdq_error *err)
{
    struct qdqi_graph *graph = &m->graph;
    if (!(graph->tensors = qdqi_map_new(m->arena)))
        return qdqi_no_memory(err);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct qdqi_node *node = &graph->nodes[i];
        node->inputs =
            qdqi_arena_array(m->arena, node->proto->n_input, sizeof *node->inputs);
        node->outputs =
            qdqi_arena_array(m->arena, node->proto->n_output, sizeof *node->outputs);
        if (!node->inputs || !node->outputs)
            return qdqi_no_memory(err);
    }
    return QDQ_OK;
}

enum qdq_code
qdqi_graph_index(struct qdq_model *m, struct qdq_error *err)
{
    struct qdqi_graph *graph = &m->graph;
    enum qdq_code code;
    if ((code = qdqi_scopes_index(m, err)) || (code = make_room(m, err)))
        return code;
    for (size_t s = 0; s < graph->n_scopes; s++)
        if ((code = index_initializers(m, s, err)) ||
            (code = index_values(m, s, INPUT, err)))
            return code;
    if ((code = index_node_names(m, err)))
        return code;
    for (size_t i = 0; i < graph->n_nodes; i++)
        if ((code = index_outputs(m, i, err)))
            return code;
    for (size_t s = 0; s < graph->n_scopes; s++)
        if ((code = index_values(m, s, OTHER, err)) ||
            (code = index_values(m, s, OUTPUT, err)))
            return code;
    for (size_t i = 0; i < graph->n_nodes; i++)
        if ((code = index_inputs(m, i, err)))
            return code;
    return QDQ_OK;
}
