/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of the main graph: who makes and who uses each tensor. Linear in the size
 * of the graph. Nested graphs (If, Loop, Scan) only tell which outer tensors they use
 * and which names are taken.
 */
#include "config.h"
#include "model/model.h"

#include "model/constant.h"

#include <string.h>

/* Marks a name as taken; the map's value is not used. */
static bool
take_name(struct qdq_model *m, const char *name)
{
    static char taken;
    return !name || !*name || qdqi_map_put(m->graph.names, name, &taken);
}

static enum qdq_code
get_tensor(struct qdq_model *m, const char *name, struct qdqi_tensor **ret,
           struct qdq_error *err)
{
    struct qdqi_tensor *tensor = qdqi_map_get(m->graph.tensors, name);
    if (!tensor) {
        tensor = qdqi_arena_alloc(m->arena, sizeof *tensor);
        if (!tensor || !qdqi_map_put(m->graph.tensors, name, tensor) ||
            !take_name(m, name))
            return qdqi_no_memory(err);
        tensor->name = name;
        tensor->producer = -1;
    }
    *ret = tensor;
    return QDQ_OK;
}

static enum qdq_code
check_not_external(const Onnx__TensorProto *t, const char *name, struct qdq_error *err)
{
    if (t->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return QDQ_OK;
    const char *location = "?";
    for (size_t i = 0; i < t->n_external_data; i++)
        if (t->external_data[i]->key && t->external_data[i]->value &&
            strcmp(t->external_data[i]->key, "location") == 0)
            location = t->external_data[i]->value;
    return qdq_error_set(err, QDQ_EXTERNAL_MISSING, QDQ_AT_TENSOR, name,
                         "tensor '%s' keeps its data in the file '%s', which was not "
                         "sent",
                         name, location);
}

/* Gives a tensor the elements that the file stores. */
static enum qdq_code
set_constant(struct qdqi_tensor *tensor, const Onnx__TensorProto *t,
             struct qdq_error *err)
{
    size_t n;
    tensor->constant = t;
    tensor->is_fixed = true;
    tensor->dtype = (enum qdqi_dtype)t->data_type;
    if (qdqi_count_elements(t->dims, t->n_dims, &n))
        tensor->view = (struct qdqi_view){t, t->n_dims, t->dims, NULL};
    return check_not_external(t, tensor->name, err);
}

/* --- values that nodes do not make ---------------------------------------- */

static enum qdq_code
index_initializers(struct qdq_model *m, struct qdq_error *err)
{
    const Onnx__GraphProto *g = m->proto->graph;
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Onnx__TensorProto *t = g->initializer[i];
        struct qdqi_tensor *tensor;
        enum qdq_code code;
        if (!t->name || !*t->name)
            return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                                 "initializer %zu has no name", i);
        if ((code = get_tensor(m, t->name, &tensor, err)))
            return code;
        if (tensor->constant)
            return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_TENSOR, t->name,
                                 "two initializers are called '%s'", t->name);
        if ((code = set_constant(tensor, t, err)))
            return code;
    }
    return QDQ_OK;
}

static enum qdqi_dtype
declared_dtype(const Onnx__ValueInfoProto *v)
{
    if (!v->type || v->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return QDQI_UNKNOWN;
    return (enum qdqi_dtype)v->type->tensor_type->elem_type;
}

/* IR version from which an initializer that is an input, too, is only its default. */
enum { IR_VERSION_OVERRIDABLE = 4 };

static enum qdq_code
index_values(struct qdq_model *m, Onnx__ValueInfoProto **values, size_t n,
             bool is_input, bool is_output, struct qdq_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!values[i]->name || !*values[i]->name)
            return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                                 "a value of the graph has no name");
        struct qdqi_tensor *tensor;
        enum qdq_code code = get_tensor(m, values[i]->name, &tensor, err);
        if (code)
            return code;
        /*
         * Up to IR version 3 initializers are listed as inputs, too. From version 4 on
         * that means that a caller may override them; here they are constants all the
         * same: a weight's scales come from what the file holds.
         */
        tensor->is_input |= is_input && !tensor->constant;
        tensor->is_overridable |= is_input && tensor->constant &&
                                  m->proto->ir_version >= IR_VERSION_OVERRIDABLE;
        tensor->is_output |= is_output;
        if (tensor->dtype == QDQI_UNKNOWN)
            tensor->dtype = declared_dtype(values[i]);
    }
    return QDQ_OK;
}

/* --- nested graphs -------------------------------------------------------- */

static enum qdq_code index_nested(struct qdq_model *m, const Onnx__NodeProto *node,
                                  struct qdq_error *err);

/* Takes all names of a nested graph and marks the outer tensors that it may use. */
static enum qdq_code
index_nested_graph(struct qdq_model *m, const Onnx__GraphProto *g,
                   struct qdq_error *err)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        if (!take_name(m, g->initializer[i]->name))
            return qdqi_no_memory(err);
    for (size_t i = 0; i < g->n_input; i++)
        if (!take_name(m, g->input[i]->name))
            return qdqi_no_memory(err);
    for (size_t i = 0; i < g->n_output; i++) {
        struct qdqi_tensor *outer =
            g->output[i]->name ? qdqi_map_get(m->graph.tensors, g->output[i]->name)
                               : NULL;
        if (outer)
            outer->is_captured = true;
    }
    for (size_t i = 0; i < g->n_node; i++) {
        const Onnx__NodeProto *node = g->node[i];
        if (!take_name(m, node->name))
            return qdqi_no_memory(err);
        for (size_t k = 0; k < node->n_input; k++) {
            struct qdqi_tensor *outer = qdqi_map_get(m->graph.tensors, node->input[k]);
            if (outer)
                outer->is_captured = true;
        }
        for (size_t k = 0; k < node->n_output; k++)
            if (!take_name(m, node->output[k]))
                return qdqi_no_memory(err);
        enum qdq_code code = index_nested(m, node, err);
        if (code)
            return code;
    }
    return QDQ_OK;
}

static enum qdq_code
index_nested(struct qdq_model *m, const Onnx__NodeProto *node, struct qdq_error *err)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        enum qdq_code code = a->g ? index_nested_graph(m, a->g, err) : QDQ_OK;
        for (size_t k = 0; !code && k < a->n_graphs; k++)
            code = index_nested_graph(m, a->graphs[k], err);
        if (code)
            return code;
    }
    return QDQ_OK;
}

/* --- nodes ---------------------------------------------------------------- */

/* What a Constant node holds; its output is fixed in any form. */
static enum qdq_code
index_constant(struct qdq_model *m, struct qdqi_node *node, struct qdq_error *err)
{
    struct qdqi_tensor *tensor = node->outputs[0];
    const Onnx__TensorProto *value = qdqi_constant_value(m->arena, node->proto);
    const Onnx__AttributeProto *sparse =
        qdqi_node_attribute(node->proto, "sparse_value");
    if (qdqi_arena_exhausted(m->arena))
        return qdqi_no_memory(err);
    if (value)
        return set_constant(tensor, value, err);
    tensor->is_fixed = true;
    if (sparse && sparse->sparse_tensor && sparse->sparse_tensor->values)
        tensor->dtype = (enum qdqi_dtype)sparse->sparse_tensor->values->data_type;
    else if (qdqi_node_attribute(node->proto, "value_string") ||
             qdqi_node_attribute(node->proto, "value_strings"))
        tensor->dtype = QDQI_STRING;
    return QDQ_OK;
}

static enum qdq_code
index_outputs(struct qdq_model *m, size_t i, struct qdq_error *err)
{
    struct qdqi_node *node = &m->graph.nodes[i];
    const Onnx__NodeProto *p = node->proto;
    for (size_t k = 0; k < p->n_output; k++) {
        if (!*p->output[k])
            continue;
        struct qdqi_tensor *tensor;
        enum qdq_code code = get_tensor(m, p->output[k], &tensor, err);
        if (code)
            return code;
        if (tensor->producer >= 0 || tensor->constant || tensor->is_input)
            return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_TENSOR, p->output[k],
                                 "tensor '%s' is made twice", p->output[k]);
        tensor->producer = (int64_t)i;
        node->outputs[k] = tensor;
    }
    if (p->n_output != 1 || !node->outputs[0])
        return QDQ_OK;
    if (qdqi_node_is(p, "Constant"))
        return index_constant(m, node, err);
    const Onnx__AttributeProto *value =
        qdqi_node_is(p, "ConstantOfShape") ? qdqi_node_attribute(p, "value") : NULL;
    return value && value->t ? check_not_external(value->t, p->output[0], err) : QDQ_OK;
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

static enum qdq_code
index_inputs(struct qdq_model *m, size_t i, struct qdq_error *err)
{
    struct qdqi_node *node = &m->graph.nodes[i];
    const Onnx__NodeProto *p = node->proto;
    for (size_t k = 0; k < p->n_input; k++) {
        if (!*p->input[k])
            continue;
        struct qdqi_tensor *tensor = qdqi_map_get(m->graph.tensors, p->input[k]);
        if (!tensor || (tensor->producer < 0 && !tensor->constant && !tensor->is_input))
            return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NODE, node->name,
                                 "node '%s' uses tensor '%s', which nothing makes",
                                 node->name, p->input[k]);
        node->inputs[k] = tensor;
        enum qdq_code code = add_use(m, tensor, i, (int)k, err);
        if (code)
            return code;
    }
    return index_nested(m, p, err);
}

/* A name that the file gives to one node or more. */
struct given_name {
    bool used;       /* by the first of them */
    unsigned suffix; /* the last that was tried for the others */
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
 * The reported name: the file's where it is the first of its kind, with a suffix that
 * no other node has where it is not, "@OUTPUT" for an unnamed node.
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
        node->rename = name;
    } else {
        g->used = true;
    }
    if (!name || !qdqi_map_put(m->graph.by_name, name, node) || !take_name(m, name))
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
    for (size_t i = 0; i < m->graph.n_nodes && !code; i++)
        code = name_node(m, &m->graph.nodes[i], i, given, err);
    return code;
}

enum qdq_code
qdqi_graph_index(struct qdq_model *m, struct qdq_error *err)
{
    const Onnx__GraphProto *g = m->proto->graph;
    struct qdqi_graph *graph = &m->graph;
    enum qdq_code code;
    graph->n_nodes = g->n_node;
    graph->nodes = qdqi_arena_array(m->arena, g->n_node, sizeof *graph->nodes);
    graph->tensors = qdqi_map_new(m->arena);
    graph->names = qdqi_map_new(m->arena);
    if (!graph->nodes || !graph->tensors || !graph->names)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < g->n_node; i++) {
        struct qdqi_node *node = &graph->nodes[i];
        node->proto = g->node[i];
        if (!node->proto->op_type || !*node->proto->op_type)
            return qdq_error_set(err, QDQ_INVALID_MODEL, QDQ_AT_NOTHING, NULL,
                                 "node %zu has no operator", i);
        node->inputs =
            qdqi_arena_array(m->arena, node->proto->n_input, sizeof *node->inputs);
        node->outputs =
            qdqi_arena_array(m->arena, node->proto->n_output, sizeof *node->outputs);
        if (!node->inputs || !node->outputs)
            return qdqi_no_memory(err);
    }
    if ((code = index_initializers(m, err)) ||
        (code = index_values(m, g->input, g->n_input, true, false, err)) ||
        (code = index_node_names(m, err)))
        return code;
    for (size_t i = 0; i < g->n_node; i++)
        if ((code = index_outputs(m, i, err)))
            return code;
    if ((code = index_values(m, g->value_info, g->n_value_info, false, false, err)) ||
        (code = index_values(m, g->output, g->n_output, false, true, err)))
        return code;
    for (size_t i = 0; i < g->n_node; i++)
        if ((code = index_inputs(m, i, err)))
            return code;
    return QDQ_OK;
}
