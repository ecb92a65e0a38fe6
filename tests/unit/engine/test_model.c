/* SPDX-License-Identifier: Apache-2.0 */
/* Opening models: what is indexed, how nodes are named, and which models are
   refused. */
#include "config.h"

#include "builder.h"

UNIT_TEST(index_knows_makers_and_users)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_two_convs(&b, 13);
    ck_assert_int_eq(builder_open(&b, &m, &err), 0);
    const struct qdqi_tensor *r = qdqi_map_get(m->graph.tensors, "r");
    ck_assert_int_eq(r->producer, 1);
    ck_assert_uint_eq(r->uses->node, 2);
    ck_assert_int_eq(r->uses->input, 0);
    ck_assert_ptr_null(r->uses->next);
    ck_assert_int_eq(r->dtype, QDQI_FLOAT32);
    const struct qdqi_tensor *w = qdqi_map_get(m->graph.tensors, "w");
    ck_assert_ptr_nonnull(w->constant);
    ck_assert(!w->is_input);
    const struct qdq_model_info *info = qdq_model_info(m);
    ck_assert_int_eq(info->opset, 13);
    ck_assert_uint_eq(info->n_nodes, 3);
    ck_assert_uint_eq(info->n_inputs, 1);
    ck_assert_uint_eq(info->n_ops, 2);
    ck_assert_str_eq(info->ops[0].op, "Conv");
    ck_assert_uint_eq(info->ops[0].count, 2);
    builder_close(&b, &m);
}

UNIT_TEST(names_are_unique)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_node(&b, "Relu", "n", "x", "a");
    builder_node(&b, "Relu", "n", "a", "b");
    builder_node(&b, "Relu", "n_1", "b", "c");
    builder_node(&b, "Relu", "", "c", "y");
    builder_output(&b, "y", QDQI_FLOAT32);
    ck_assert_int_eq(builder_open(&b, &m, &err), 0);
    static const char *const names[] = {"n", "n_2", "n_1", "@y"};
    for (size_t i = 0; i < 4; i++)
        ck_assert_str_eq(m->graph.nodes[i].name, names[i]);
    for (size_t i = 0; i < 3; i++)
        ck_assert_str_eq(m->graph.nodes[i].proto->name, m->graph.nodes[i].name);
    builder_close(&b, &m);
}

/* Each of these makes the small network invalid; the error has this code and names
   this place. */
static void
without_graph(struct builder *b)
{
    b->model.graph = NULL;
}
static void
without_opset(struct builder *b)
{
    b->model.n_opset_import = 0;
}
static void
without_ir_version(struct builder *b)
{
    b->model.has_ir_version = 0;
}
static void
without_operator(struct builder *b)
{
    b->nodes[1]->op_type = NULL;
}
static void
made_twice(struct builder *b)
{
    builder_node(b, "Relu", "again", "x", "r");
}
static void
made_by_nobody(struct builder *b)
{
    b->nodes[2]->input[0] = qdqi_arena_strdup(b->arena, "ghost");
}
static void
same_initializer(struct builder *b)
{
    builder_weight(b, "w", 1, (const int64_t[]){1});
}
static void
external_weight(struct builder *b)
{
    builder_external(b, b->weights[0], "weights.bin", NULL, NULL);
}

static const struct {
    void (*spoil)(struct builder *b);
    enum qdq_code code;
    const char *where, *text;
} spoilt[] = {
    {without_graph, QDQ_INVALID_MODEL, "", "no graph"},
    {without_opset, QDQ_INVALID_MODEL, "", "no opset_import"},
    {without_ir_version, QDQ_INVALID_MODEL, "", "no ir_version"},
    {without_operator, QDQ_INVALID_MODEL, "", "node 1 has no operator"},
    {made_twice, QDQ_INVALID_MODEL, "r", "made twice"},
    {made_by_nobody, QDQ_INVALID_MODEL, "conv2", "'ghost', which nothing makes"},
    {same_initializer, QDQ_INVALID_MODEL, "w", "two initializers"},
    {external_weight, QDQ_EXTERNAL_MISSING, "w", "'weights.bin'"},
};

UNIT_ROWS(invalid_models_are_refused, spoilt)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_two_convs(&b, 13);
    spoilt[_i].spoil(&b);
    enum qdq_code code = builder_open(&b, &m, &err);
    ck_assert_msg(code == spoilt[_i].code, "row %d: %s", _i, err.text);
    ck_assert_msg(strstr(err.text, spoilt[_i].text) != NULL, "row %d: %s", _i,
                  err.text);
    ck_assert_str_eq(err.where, spoilt[_i].where);
    ck_assert_ptr_null(m);
    builder_fini(&b);
}

UNIT_TEST(old_files_list_initializers_as_inputs)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_two_convs(&b, 13);
    b.model.ir_version = 3;
    builder_input(&b, "w", QDQI_FLOAT32);
    ck_assert_int_eq(builder_open(&b, &m, &err), 0);
    ck_assert_uint_eq(qdq_model_info(m)->n_inputs, 1);
    ck_assert_str_eq(qdq_model_info(m)->inputs[0].name, "x");
    builder_close(&b, &m);
}

/* Element types of the outputs y and z, as the operators' schemas derive them from x
   (float32), i (int64), c (bool) and h (float16). */
static const struct {
    const char *op, *inputs;
    enum qdqi_dtype y, z;
    const char *attribute;
    int64_t value;
} typed[] = {
    {"Relu", "x", QDQI_FLOAT32, QDQI_FLOAT32, NULL, 0},
    {"Shape", "x", QDQI_INT64, QDQI_INT64, NULL, 0},
    {"Add", "i,i", QDQI_INT64, QDQI_INT64, NULL, 0},
    {"Sum", "x,x", QDQI_FLOAT32, QDQI_FLOAT32, NULL, 0},
    {"LRN", "x", QDQI_FLOAT32, QDQI_FLOAT32, NULL, 0},
    {"Resize", "x,,x", QDQI_FLOAT32, QDQI_FLOAT32, NULL, 0},
    {"Gather", "i,i", QDQI_INT64, QDQI_INT64, NULL, 0},
    {"Greater", "x,x", QDQI_BOOL, QDQI_BOOL, NULL, 0},
    {"Where", "c,i,i", QDQI_INT64, QDQI_INT64, NULL, 0},
    {"Concat", "i,i", QDQI_INT64, QDQI_INT64, NULL, 0},
    {"Foo", "x", QDQI_UNKNOWN, QDQI_UNKNOWN, NULL, 0},
    {"ArgMax", "x", QDQI_INT64, QDQI_INT64, NULL, 0},
    {"LSTM", "x,x,x", QDQI_FLOAT32, QDQI_FLOAT32, NULL, 0},
    {"MaxPool", "x", QDQI_FLOAT32, QDQI_INT64, NULL, 0},
    {"Unique", "x", QDQI_FLOAT32, QDQI_INT64, NULL, 0},
    {"Attention", "x,x,x", QDQI_FLOAT32, QDQI_UNKNOWN, NULL, 0},
    {"BatchNormalization", "h,x,x,x,x", QDQI_FLOAT16, QDQI_FLOAT32, NULL, 0},
    {"LayerNormalization", "h,h", QDQI_FLOAT16, QDQI_FLOAT32, NULL, 0},
    {"LayerNormalization", "h,h", QDQI_FLOAT16, QDQI_BFLOAT16, "stash_type",
     QDQI_BFLOAT16},
    {"RMSNormalization", "h,x", QDQI_FLOAT32, QDQI_FLOAT32, "stash_type", QDQI_INT8},
    {"OneHot", "i,i,x", QDQI_FLOAT32, QDQI_FLOAT32, NULL, 0},
    {"Cast", "x", QDQI_INT32, QDQI_INT32, "to", QDQI_INT32},
    {"Cast", "x", QDQI_UNKNOWN, QDQI_UNKNOWN, "to", 77},
    {"Cast", "x", QDQI_UNKNOWN, QDQI_UNKNOWN, NULL, 0},
    {"CastLike", "x,i", QDQI_INT64, QDQI_INT64, NULL, 0},
    {"EyeLike", "x", QDQI_FLOAT32, QDQI_FLOAT32, NULL, 0},
    {"EyeLike", "x", QDQI_INT32, QDQI_INT32, "dtype", QDQI_INT32},
    {"Multinomial", "x", QDQI_INT32, QDQI_INT32, NULL, 0},
    {"HannWindow", "i", QDQI_FLOAT16, QDQI_FLOAT16, "output_datatype", QDQI_FLOAT16},
    {"ConstantOfShape", "i", QDQI_FLOAT32, QDQI_FLOAT32, NULL, 0},
    {"QuantizeLinear", "x,x,i", QDQI_INT64, QDQI_INT64, NULL, 0},
    {"DequantizeLinear", "i,h", QDQI_FLOAT16, QDQI_FLOAT16, NULL, 0},
};

UNIT_ROWS(types_follow_the_schema, typed)
{
    struct builder b;
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_input(&b, "i", QDQI_INT64);
    builder_input(&b, "c", QDQI_BOOL);
    builder_input(&b, "h", QDQI_FLOAT16);
    Onnx__NodeProto *node =
        builder_node(&b, typed[_i].op, "n", typed[_i].inputs, "y,z");
    if (typed[_i].attribute)
        builder_int(&b, node, typed[_i].attribute, typed[_i].value);
    ck_assert_int_eq(builder_open(&b, &m, &err), 0);
    const struct qdqi_tensor *y = qdqi_map_get(m->graph.tensors, "y");
    const struct qdqi_tensor *z = qdqi_map_get(m->graph.tensors, "z");
    ck_assert_msg(y->dtype == typed[_i].y, "%s: %d", typed[_i].op, y->dtype);
    ck_assert_msg(z->dtype == typed[_i].z, "%s: %d", typed[_i].op, z->dtype);
    builder_close(&b, &m);
}

UNIT_SUITE("model")
