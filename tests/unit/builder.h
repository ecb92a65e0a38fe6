/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds small ONNX models in memory for unit tests. A builder builds one model. All
 * sizes are fixed; a test that needs more fails with a message. Strings are borrowed.
 */
#ifndef TESTS_UNIT_BUILDER_H
#define TESTS_UNIT_BUILDER_H

#include "files/model/constant.h"
#include "files/model/model.h"
#include "unit.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BUILDER_MAX = 64 };

struct builder {
    struct qdqi_arena *arena;
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset;
    Onnx__OperatorSetIdProto *opsets[1];
    Onnx__NodeProto *nodes[BUILDER_MAX];
    Onnx__TensorProto *weights[BUILDER_MAX];
    Onnx__ValueInfoProto *inputs[BUILDER_MAX], *outputs[BUILDER_MAX];
};

static inline void
builder_init(struct builder *b, int64_t opset)
{
    b->arena = qdqi_arena_new();
    onnx__model_proto__init(&b->model);
    onnx__graph_proto__init(&b->graph);
    onnx__operator_set_id_proto__init(&b->opset);
    b->model.has_ir_version = 1;
    b->model.ir_version = 8;
    b->opset.has_version = 1;
    b->opset.version = opset;
    b->opsets[0] = &b->opset;
    b->model.opset_import = b->opsets;
    b->model.n_opset_import = 1;
    b->model.graph = &b->graph;
    b->graph.name = qdqi_arena_strdup(b->arena, "test");
    b->graph.node = b->nodes;
    b->graph.initializer = b->weights;
    b->graph.input = b->inputs;
    b->graph.output = b->outputs;
}

static inline void
builder_fini(struct builder *b)
{
    qdqi_arena_free(&b->arena);
}

static inline Onnx__ValueInfoProto *
builder_value(struct builder *b, const char *name, enum qdqi_dtype dtype)
{
    Onnx__ValueInfoProto *v = qdqi_arena_alloc(b->arena, sizeof *v);
    Onnx__TypeProto *type = qdqi_arena_alloc(b->arena, sizeof *type);
    Onnx__TypeProto__Tensor *tensor = qdqi_arena_alloc(b->arena, sizeof *tensor);
    onnx__value_info_proto__init(v);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    v->name = qdqi_arena_strdup(b->arena, name);
    v->type = type;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    tensor->has_elem_type = 1;
    tensor->elem_type = (int32_t)dtype;
    return v;
}

static inline void
builder_input(struct builder *b, const char *name, enum qdqi_dtype dtype)
{
    ck_assert_uint_lt(b->graph.n_input, BUILDER_MAX);
    b->inputs[b->graph.n_input++] = builder_value(b, name, dtype);
}

/* Gives a shape to the input that was added last. */
static inline void
builder_shape(struct builder *b, size_t n, const int64_t *dims)
{
    Onnx__TensorShapeProto *shape = qdqi_arena_alloc(b->arena, sizeof *shape);
    onnx__tensor_shape_proto__init(shape);
    shape->dim =
        qdqi_arena_array(b->arena, n, sizeof(Onnx__TensorShapeProto__Dimension *));
    shape->n_dim = n;
    for (size_t i = 0; i < n; i++) {
        shape->dim[i] = qdqi_arena_alloc(b->arena, sizeof *shape->dim[i]);
        onnx__tensor_shape_proto__dimension__init(shape->dim[i]);
        shape->dim[i]->value_case =
            ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        shape->dim[i]->dim_value = dims[i];
    }
    b->inputs[b->graph.n_input - 1]->type->tensor_type->shape = shape;
}

static inline void
builder_output(struct builder *b, const char *name, enum qdqi_dtype dtype)
{
    ck_assert_uint_lt(b->graph.n_output, BUILDER_MAX);
    b->outputs[b->graph.n_output++] = builder_value(b, name, dtype);
}

/* Adds a float32 initializer of the given shape (n sizes); element i is i + 1. */
static inline Onnx__TensorProto *
builder_weight(struct builder *b, const char *name, size_t n, const int64_t *dims)
{
    ck_assert_uint_lt(b->graph.n_initializer, BUILDER_MAX);
    Onnx__TensorProto *t = qdqi_arena_alloc(b->arena, sizeof *t);
    onnx__tensor_proto__init(t);
    size_t count = 1;
    t->dims = qdqi_arena_array(b->arena, n, sizeof *t->dims);
    for (size_t i = 0; i < n; i++) {
        t->dims[i] = dims[i];
        count *= (size_t)dims[i];
    }
    t->n_dims = n;
    float *data = qdqi_arena_array(b->arena, count, sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)(i + 1);
    t->name = qdqi_arena_strdup(b->arena, name);
    t->has_data_type = 1;
    t->data_type = QDQI_FLOAT32;
    t->has_raw_data = 1;
    t->raw_data.data = (uint8_t *)data;
    t->raw_data.len = count * sizeof *data;
    b->weights[b->graph.n_initializer++] = t;
    return t;
}

/* Makes a tensor's data external; offset and length are left out where they are
   NULL. */
static inline void
builder_external(struct builder *b, Onnx__TensorProto *t, const char *location,
                 const char *offset, const char *length)
{
    const char *const rows[][2] = {
        {"location", location}, {"offset", offset}, {"length", length}};
    t->external_data = qdqi_arena_array(b->arena, 3, sizeof *t->external_data);
    for (size_t i = 0; i < 3; i++) {
        if (!rows[i][1])
            continue;
        Onnx__StringStringEntryProto *entry = qdqi_arena_alloc(b->arena, sizeof *entry);
        onnx__string_string_entry_proto__init(entry);
        entry->key = qdqi_arena_strdup(b->arena, rows[i][0]);
        entry->value = qdqi_arena_strdup(b->arena, rows[i][1]);
        t->external_data[t->n_external_data++] = entry;
    }
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    t->has_raw_data = 0;
    t->n_float_data = t->n_int64_data = 0;
}

/* Makes a tensor of rank 1 with n int64 elements, for an initializer or an
   attribute. */
static inline Onnx__TensorProto *
builder_ints_tensor(struct builder *b, size_t n, const int64_t *data)
{
    Onnx__TensorProto *t = qdqi_constant_new(b->arena, QDQI_INT64, 1, (int64_t)n);
    t->int64_data = qdqi_arena_array(b->arena, n, sizeof *data);
    t->n_int64_data = n;
    if (n)
        memcpy(t->int64_data, data, n * sizeof *data);
    return t;
}

static inline void
builder_ints_weight(struct builder *b, const char *name, size_t n, const int64_t *data)
{
    ck_assert_uint_lt(b->graph.n_initializer, BUILDER_MAX);
    Onnx__TensorProto *t = builder_ints_tensor(b, n, data);
    t->name = qdqi_arena_strdup(b->arena, name);
    b->weights[b->graph.n_initializer++] = t;
}

/* Splits a list at its commas; in "a,b,,c" the third name is empty. */
static inline char **
builder_names(struct builder *b, const char *list, size_t *ret_n)
{
    char *copy = qdqi_arena_strdup(b->arena, list);
    char **names = qdqi_arena_array(b->arena, strlen(list) + 1, sizeof *names);
    size_t n = 0;
    while (*list && copy)
        names[n++] = strsep(&copy, ",");
    *ret_n = n;
    return names;
}

static inline Onnx__NodeProto *
builder_node(struct builder *b, const char *op, const char *name, const char *inputs,
             const char *outputs)
{
    ck_assert_uint_lt(b->graph.n_node, BUILDER_MAX);
    Onnx__NodeProto *node = qdqi_arena_alloc(b->arena, sizeof *node);
    onnx__node_proto__init(node);
    node->op_type = qdqi_arena_strdup(b->arena, op);
    node->name = qdqi_arena_strdup(b->arena, name);
    node->input = builder_names(b, inputs, &node->n_input);
    node->output = builder_names(b, outputs, &node->n_output);
    b->nodes[b->graph.n_node++] = node;
    return node;
}

static inline Onnx__AttributeProto *
builder_attribute(struct builder *b, Onnx__NodeProto *node, const char *name)
{
    Onnx__AttributeProto *a = qdqi_arena_alloc(b->arena, sizeof *a);
    onnx__attribute_proto__init(a);
    a->name = qdqi_arena_strdup(b->arena, name);
    Onnx__AttributeProto **all =
        qdqi_arena_array(b->arena, node->n_attribute + 1, sizeof *all);
    if (node->n_attribute)
        memcpy(all, node->attribute, node->n_attribute * sizeof *all);
    all[node->n_attribute++] = a;
    node->attribute = all;
    return a;
}

/* Sets the attribute's type, which ONNX Runtime requires and the engine does not. */
static inline Onnx__AttributeProto *
builder_typed(struct builder *b, Onnx__NodeProto *node, const char *name,
              Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = builder_attribute(b, node, name);
    a->has_type = 1;
    a->type = type;
    return a;
}

#define BUILDER_TYPED(kind) \
    builder_typed(b, node, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##kind)

static inline void
builder_int(struct builder *b, Onnx__NodeProto *node, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = BUILDER_TYPED(INT);
    a->has_i = 1;
    a->i = value;
}

static inline void
builder_ints(struct builder *b, Onnx__NodeProto *node, const char *name, size_t n,
             const int64_t *values)
{
    Onnx__AttributeProto *a = BUILDER_TYPED(INTS);
    a->ints = qdqi_arena_array(b->arena, n, sizeof *values);
    a->n_ints = n;
    if (n)
        memcpy(a->ints, values, n * sizeof *values);
}

static inline void
builder_tensor(struct builder *b, Onnx__NodeProto *node, const char *name,
               Onnx__TensorProto *value)
{
    BUILDER_TYPED(TENSOR)->t = value;
}

static inline void
builder_graph(struct builder *b, Onnx__NodeProto *node, const char *name,
              Onnx__GraphProto *value)
{
    BUILDER_TYPED(GRAPH)->g = value;
}

/* Returns a file in memory with these bytes; the caller closes it. */
static inline int
memory_file(const void *data, size_t size)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, data, size), (ssize_t)size);
    return fd;
}

static inline int
builder_file(const struct builder *b)
{
    size_t size = onnx__model_proto__get_packed_size(&b->model);
    uint8_t *data = malloc(size);
    onnx__model_proto__pack(&b->model, data);
    int fd = memory_file(data, size);
    free(data);
    return fd;
}

static inline enum qdq_code
builder_open(const struct builder *b, struct qdq_model **ret, struct qdq_error *err)
{
    int fd = builder_file(b);
    enum qdq_code code = qdq_model_open(fd, ret, err);
    close(fd);
    return code;
}

/* Builds x -> Conv(w, bias) -> Relu -> Conv(w2) -> y, the usual small network. */
static inline void
builder_two_convs(struct builder *b, int64_t opset)
{
    builder_init(b, opset);
    builder_input(b, "x", QDQI_FLOAT32);
    builder_weight(b, "w", 4, (const int64_t[]){4, 3, 3, 3});
    builder_weight(b, "bias", 1, (const int64_t[]){4});
    builder_weight(b, "w2", 4, (const int64_t[]){2, 4, 1, 1});
    builder_node(b, "Conv", "conv1", "x,w,bias", "a");
    builder_node(b, "Relu", "relu", "a", "r");
    builder_node(b, "Conv", "conv2", "r,w2", "y");
    builder_output(b, "y", QDQI_FLOAT32);
}

/* Builds x -> Conv(v) -> y with v = Transpose(Identity(w)), which a Relu also uses. */
static inline void
builder_computed_weight(struct builder *b)
{
    builder_init(b, 13);
    builder_input(b, "x", QDQI_FLOAT32);
    builder_weight(b, "w", 4, (const int64_t[]){3, 3, 2, 4});
    builder_node(b, "Identity", "identity", "w", "same");
    builder_ints(b, builder_node(b, "Transpose", "transpose", "same", "v"), "perm", 4,
                 (const int64_t[]){3, 2, 0, 1});
    builder_node(b, "Relu", "user", "v", "z");
    builder_node(b, "Conv", "conv", "x,v", "y");
    builder_output(b, "y", QDQI_FLOAT32);
    builder_output(b, "z", QDQI_FLOAT32);
}

/* Opens the built model and returns one of its tensors. */
static inline const struct qdqi_tensor *
builder_open_tensor(struct builder *b, struct qdq_model **m, const char *name)
{
    struct qdq_error err = {0};
    enum qdq_code code = builder_open(b, m, &err);
    ck_assert_msg(code == QDQ_OK, "%s", err.text);
    const struct qdqi_tensor *t = qdqi_map_get((*m)->graph.tensors, name);
    ck_assert_msg(t != NULL, "there is no tensor %s", name);
    return t;
}

static inline void
builder_close(struct builder *b, struct qdq_model **m)
{
    qdq_model_free(m);
    builder_fini(b);
}

#endif
