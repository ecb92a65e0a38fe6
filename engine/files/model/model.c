/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/model/model.h"

#include <string.h>

uint64_t
qdqi_model_bytes(const struct qdq_model *model)
{
    return model->info.size + model->info.external_size;
}

bool
qdqi_is_onnx_domain(const char *domain)
{
    return !domain || !*domain || strcmp(domain, "ai.onnx") == 0;
}

const Onnx__OperatorSetIdProto *
qdqi_import_of(Onnx__OperatorSetIdProto *const *imports, size_t n, const char *domain)
{
    for (size_t i = 0; i < n; i++) {
        const char *has = imports[i]->domain;
        if (qdqi_is_onnx_domain(domain) ? qdqi_is_onnx_domain(has)
                                        : has && strcmp(has, domain) == 0)
            return imports[i];
    }
    return NULL;
}

int64_t
qdqi_model_opset(const Onnx__ModelProto *proto)
{
    const Onnx__OperatorSetIdProto *own =
        qdqi_import_of(proto->opset_import, proto->n_opset_import, "");
    return own ? own->version : 0;
}

const Onnx__AttributeProto *
qdqi_node_attribute(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->name && strcmp(node->attribute[i]->name, name) == 0)
            return node->attribute[i];
    return NULL;
}

bool
qdqi_drop_constant_inputs(const struct qdq_model *model, struct qdqi_arena *arena,
                          Onnx__GraphProto *graph)
{
    Onnx__ValueInfoProto **kept = qdqi_arena_array(arena, graph->n_input, sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; kept && i < graph->n_input; i++) {
        const struct qdqi_tensor *t =
            qdqi_map_get(model->graph.tensors, graph->input[i]->name);
        if (!t->constant)
            kept[n++] = graph->input[i];
    }
    graph->input = kept;
    graph->n_input = n;
    return kept;
}

int
qdqi_node_variable_input(const struct qdqi_node *node)
{
    if (node->proto->n_input != 2 || !node->inputs[0] || !node->inputs[1] ||
        node->inputs[0]->is_fixed == node->inputs[1]->is_fixed ||
        qdqi_node_attribute(node->proto, "axis"))
        return -1;
    return node->inputs[0]->is_fixed;
}

static bool
is_used(const struct qdqi_tensor *t)
{
    return t && (t->uses || t->is_output || t->is_captured);
}

bool
qdqi_model_keeps_state(const struct qdq_model *model)
{
    bool keeps = false;
    for (size_t i = 0; !keeps && i < model->graph.n_nodes; i++) {
        const struct qdqi_node *node = &model->graph.nodes[i];
        if (qdqi_node_is(node->proto, "BatchNormalization") &&
            qdqi_node_int(node->proto, "training_mode", 0))
            for (size_t k = 1; k < node->proto->n_output; k++)
                keeps |= is_used(node->outputs[k]);
    }
    return keeps;
}

int64_t
qdqi_node_int(const Onnx__NodeProto *node, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node, name);
    return a && a->has_i ? a->i : otherwise;
}

bool
qdqi_node_is_microsoft(const Onnx__NodeProto *node)
{
    return node->domain && strcmp(node->domain, QDQI_MS_DOMAIN) == 0;
}

bool
qdqi_node_is(const Onnx__NodeProto *node, const char *op)
{
    return qdqi_is_onnx_domain(node->domain) && strcmp(node->op_type, op) == 0;
}

bool
qdqi_node_is_one_of(const Onnx__NodeProto *node, const char *const *ops)
{
    for (; *ops; ops++)
        if (qdqi_node_is(node, *ops))
            return true;
    return false;
}

static bool
is_one(const Onnx__NodeProto *node, const char *attribute)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node, attribute);
    return !a || !a->has_f || a->f == 1;
}

bool
qdqi_gemm_is_unscaled(const Onnx__NodeProto *gemm)
{
    return is_one(gemm, "alpha") && is_one(gemm, "beta");
}

void
qdqi_attribute_set_int(Onnx__AttributeProto *attribute, int64_t value)
{
    attribute->has_type = 1;
    attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    attribute->has_i = 1;
    attribute->i = value;
}

Onnx__NodeProto *
qdqi_node_new(struct qdqi_arena *arena, const char *op, const char *name,
              const char *const *inputs, size_t n, const char *output)
{
    Onnx__NodeProto *node = qdqi_arena_alloc(arena, sizeof *node);
    char **names = qdqi_arena_array(arena, n + 1, sizeof *names);
    if (!node || !names)
        return NULL;
    onnx__node_proto__init(node);
    node->op_type = (char *)(uintptr_t)op;
    if (name)
        node->name = (char *)(uintptr_t)name;
    node->input = names;
    node->n_input = n;
    for (size_t i = 0; i < n; i++)
        if (!(names[i] = (char *)(uintptr_t)inputs[i]))
            return NULL;
    names[n] = (char *)(uintptr_t)output;
    node->output = &names[n];
    node->n_output = output != NULL;
    return node;
}

/* Adds an attribute without a value. Returns NULL when out of memory. */
static Onnx__AttributeProto *
add_attribute(struct qdqi_arena *arena, Onnx__NodeProto *node, const char *name)
{
    Onnx__AttributeProto *a = qdqi_arena_alloc(arena, sizeof *a);
    Onnx__AttributeProto **all =
        qdqi_arena_array(arena, node->n_attribute + 1, sizeof(Onnx__AttributeProto *));
    if (!a || !all)
        return NULL;
    onnx__attribute_proto__init(a);
    a->name = (char *)(uintptr_t)name;
    if (node->n_attribute)
        memcpy(all, node->attribute, node->n_attribute * sizeof *all);
    all[node->n_attribute++] = a;
    node->attribute = all;
    return a;
}

bool
qdqi_node_add_int(struct qdqi_arena *arena, Onnx__NodeProto *node, const char *name,
                  int64_t value)
{
    Onnx__AttributeProto *a = add_attribute(arena, node, name);
    if (a)
        qdqi_attribute_set_int(a, value);
    return a;
}

bool
qdqi_node_add_float(struct qdqi_arena *arena, Onnx__NodeProto *node, const char *name,
                    float value)
{
    Onnx__AttributeProto *a = add_attribute(arena, node, name);
    if (!a)
        return false;
    a->has_type = 1;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    a->has_f = 1;
    a->f = value;
    return true;
}

static void *
arena_alloc(void *arena, size_t size)
{
    return qdqi_arena_alloc(arena, size);
}

static void
arena_free(void *arena, void *pointer)
{
    (void)arena;
    (void)pointer;
}

ProtobufCAllocator
qdqi_arena_allocator(struct qdqi_arena *arena)
{
    return (ProtobufCAllocator){arena_alloc, arena_free, arena};
}

const struct qdq_model_info *
qdq_model_info(const struct qdq_model *model)
{
    return &model->info;
}

bool
qdqi_tensor_dims(const struct qdqi_tensor *tensor, const int64_t **ret,
                 size_t *ret_rank)
{
    if (!tensor->view.stored)
        return false;
    *ret = tensor->view.dims;
    *ret_rank = tensor->view.rank;
    return true;
}
