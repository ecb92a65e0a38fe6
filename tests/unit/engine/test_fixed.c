/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors follow from constants alone. */
#include "config.h"

#include "builder.h"

#define MAX_RANK 6

/* --- constant tensors ----------------------------------------------------- */

static void
none(struct builder *b)
{
    (void)b;
}

static void
nested_graph(struct builder *b)
{
    Onnx__AttributeProto *a = builder_attribute(b, b->nodes[0], "body");
    a->g = qdqi_arena_alloc(b->arena, sizeof *a->g);
    onnx__graph_proto__init(a->g);
}
static void
own_domain(struct builder *b)
{
    b->nodes[0]->domain = qdqi_arena_strdup(b->arena, "ai.onnx");
}
static void
other_domain(struct builder *b)
{
    b->nodes[0]->domain = qdqi_arena_strdup(b->arena, "com.microsoft");
}
static void
opset_6(struct builder *b)
{
    b->opset.version = 6;
}
static void
opset_6_test(struct builder *b)
{
    opset_6(b);
    builder_int(b, b->nodes[0], "is_test", 1);
}

/* An operator, its inputs (w is constant, x an input, `no` and `yes` are booleans,
   or none), and whether its output v is constant. */
static const struct {
    const char *op, *inputs;
    void (*change)(struct builder *b);
    bool fixed;
} nodes[] = {
    {"Relu", "w", none, true},
    {"Relu", "x", none, false},
    {"Mul", "w,w", none, true},
    {"Mul", "w,x", none, false},
    {"Mul", "x,w", none, false},
    {"Clip", "w,,w", none, true},
    {"Clip", "w,,x", none, false},
    {"Relu", "", none, false},
    {"Relu", ",", none, false},
    {"Relu", "w", own_domain, true},
    {"Relu", "w", other_domain, false},
    {"Scan", "w", nested_graph, false},
    {"RandomNormal", "", none, false},
    {"RandomNormalLike", "w", none, false},
    {"RandomUniform", "", none, false},
    {"RandomUniformLike", "w", none, false},
    {"Bernoulli", "w", none, false},
    {"Multinomial", "w", none, false},
    {"Dropout", "w", none, true},
    {"Dropout", "w,w,no", none, true},
    {"Dropout", "w,w,raw_no", none, true},
    {"Dropout", "w,w,", none, true},
    {"Dropout", "w,w,yes", none, false},
    {"Dropout", "w,w,w", none, false},
    {"Dropout", "w", opset_6, false},
    {"Dropout", "w", opset_6_test, true},
};

UNIT_ROWS(deterministic_operators_keep_tensors_fixed, nodes)
{
    struct builder b;
    struct qdq_model *m = NULL;
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_weight(&b, "w", 1, (const int64_t[]){2});
    static const char *const names[] = {"no", "yes", "raw_no"};
    for (int i = 0; i < 3; i++) {
        Onnx__TensorProto *t = qdqi_constant_new(b.arena, QDQI_BOOL, 0, 0);
        t->name = qdqi_arena_strdup(b.arena, names[i]);
        t->int32_data = qdqi_arena_array(b.arena, 1, sizeof *t->int32_data);
        t->int32_data[0] = i == 1;
        t->n_int32_data = i < 2;
        t->has_raw_data = i == 2;
        t->raw_data.data = qdqi_arena_alloc(b.arena, 1);
        t->raw_data.len = i == 2;
        b.weights[b.graph.n_initializer++] = t;
    }
    builder_node(&b, nodes[_i].op, "n", nodes[_i].inputs, "u,mask");
    nodes[_i].change(&b);
    builder_node(&b, "Relu", "relu", "u", "v");
    const struct qdqi_tensor *v = builder_open_tensor(&b, &m, "v");
    ck_assert_msg(v->is_fixed == nodes[_i].fixed, "row %d (%s)", _i, nodes[_i].op);
    const struct qdqi_tensor *mask = qdqi_map_get(m->graph.tensors, "mask");
    ck_assert(mask->is_fixed == nodes[_i].fixed && !mask->view.stored);
    builder_close(&b, &m);
}

/* The last node of the file computes the input of the first one. */
UNIT_TEST(file_order_does_not_matter)
{
    struct builder b;
    struct qdq_model *m = NULL;
    builder_init(&b, 13);
    builder_weight(&b, "w", 2, (const int64_t[]){2, 3});
    builder_node(&b, "Mul", "3", "b,b", "v");
    builder_node(&b, "Transpose", "2", "a", "b");
    builder_node(&b, "Identity", "1", "w", "a");
    const struct qdqi_tensor *v = builder_open_tensor(&b, &m, "v");
    const struct qdqi_tensor *t = qdqi_map_get(m->graph.tensors, "b");
    ck_assert(v->is_fixed && !v->view.stored);
    ck_assert_ptr_nonnull(t->view.stored);
    ck_assert_int_eq(t->view.dims[0], 3);
    builder_close(&b, &m);
}

UNIT_TEST(circles_are_refused)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_init(&b, 13);
    builder_weight(&b, "w", 1, (const int64_t[]){2});
    builder_node(&b, "Identity", "out", "w", "fine");
    builder_node(&b, "Add", "one", "w,v", "u");
    builder_node(&b, "Identity", "two", "u", "v");
    ck_assert_int_eq(builder_open(&b, &m, &err), QDQ_INVALID_MODEL);
    ck_assert_str_eq(err.where, "one");
    builder_fini(&b);
}

/* From IR version 4 on a caller may override an initializer that is also an input;
   it counts as a constant all the same. */
UNIT_TEST(overridable_initializers_are_constants)
{
    struct builder b;
    struct qdq_model *m = NULL;
    builder_init(&b, 13);
    builder_input(&b, "w", QDQI_FLOAT32);
    builder_weight(&b, "w", 1, (const int64_t[]){2});
    builder_node(&b, "Identity", "n", "w", "v");
    const struct qdqi_tensor *v = builder_open_tensor(&b, &m, "v");
    const struct qdqi_tensor *w = qdqi_map_get(m->graph.tensors, "w");
    ck_assert(v->is_fixed && w->is_fixed && !w->is_input);
    builder_close(&b, &m);
}

UNIT_SUITE("fixed")
