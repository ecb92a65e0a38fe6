/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: the decision about each node, and its reason. */
#include "config.h"

#include "builder.h"
#include "plan/placement/plan.h"

/* One node with inputs from x, y (float32), h (float16), i (int64) and the weights
   below. */
static const struct {
    const char *op, *inputs;
    const char *attribute; /* an integer attribute, NULL for none */
    int64_t value;
    const char *cls; /* NULL: the node has no known class */
    int input;       /* the quantized input, -1 for none */
    int weight, axis;
    const char *reason;
} nodes[] = {
    {"Conv", "x,w4,b", NULL, 0, "Conv2D", 0, 1, 0, "default"},
    {"Conv", "x,w4", "group", 2, "Conv2D", 0, 1, 0, "default"},
    {"Conv", "x,wd", "group", 4, "DepthwiseConv2D", 0, 1, 0, "default"},
    {"Conv", "x,w3", NULL, 0, "Conv", 0, 1, 0, "default"},
    {"Conv", "x,w5", NULL, 0, "Conv", 0, 1, 0, "default"},
    {"Conv", "x,y", NULL, 0, "Conv", -1, -1, -1, "weight is not constant"},
    {"Conv", "x,we", NULL, 0, "Conv2D", -1, -1, -1, "weight is empty"},
    {"Conv", "w4,w4", NULL, 0, "Conv2D", -1, -1, -1, "input is constant"},
    {"Gemm", "x,w2,b", NULL, 0, "Dense", 0, 1, 1, "default"},
    {"Gemm", "x,w2", "transB", 1, "Dense", 0, 1, 0, "default"},
    {"Gemm", "w2,x", NULL, 0, "Dense", -1, -1, -1, "weight is not constant"},
    {"MatMul", "x,w2", NULL, 0, "Dense", 0, 1, 1, "default"},
    {"MatMul", "w2,x", NULL, 0, "Dense", 1, 0, 0, "default"},
    {"MatMul", "x,w3", NULL, 0, "Dense", 0, 1, 2, "default"},
    {"MatMul", "x,b", NULL, 0, "Dense", 0, 1, -1, "default"},
    {"MatMul", "x,y", NULL, 0, "MatMul", -1, -1, -1, "off by default"},
    {"MatMul", "i,wi", NULL, 0, "Dense", -1, -1, -1, "integer tensor"},
    {"Conv", "h,wh", NULL, 0, "Conv2D", -1, -1, -1, "float16 needs opset 19"},
    {"AveragePool", "x", NULL, 0, "AveragePooling2D", 0, -1, -1, "default"},
    {"AveragePool", "h", NULL, 0, "AveragePooling2D", -1, -1, -1,
     "float16 needs opset 19"},
    {"AveragePool", "f64", NULL, 0, "AveragePooling2D", -1, -1, -1,
     "element type is not float32"},
    {"GlobalAveragePool", "x", NULL, 0, "GlobalAveragePooling2D", 0, -1, -1, "default"},
    {"ReduceMean", "x,spatial", NULL, 0, "GlobalAveragePooling2D", 0, -1, -1,
     "default"},
    {"ReduceMean", "x,lastaxis", NULL, 0, NULL, -1, -1, -1, NULL},
    {"MaxPool", "x", NULL, 0, "MaxPooling2D", -1, -1, -1, "off by default"},
    {"BatchNormalization", "x,b,b,b,b", NULL, 0, "BatchNormalization", -1, -1, -1,
     "off by default"},
    {"Concat", "x,y", "axis", 1, "Concatenate", -1, -1, -1, "off by default"},
    {"Concat", "x,w4", "axis", 1, NULL, -1, -1, -1, NULL},
    {"Add", "x,y", NULL, 0, "Add", -1, -1, -1, "off by default"},
    {"Add", "x,b", NULL, 0, NULL, -1, -1, -1, NULL},
    {"Mul", "x,y", NULL, 0, "Multiply", -1, -1, -1, "off by default"},
    {"Relu", "x", NULL, 0, "Relu", -1, -1, -1, "off by default"},
    {"Softmax", "x", NULL, 0, "Softmax", -1, -1, -1, "off by default"},
};

/* Each test has one model and its plan. */
static struct builder b;
static struct qdq_model *m;
static struct qdq_plan *plan;
static struct qdq_error err;
static struct qdq_spec spec;

static void
set_up(void)
{
    b = (struct builder){0};
    err = (struct qdq_error){0};
    qdq_spec_init(&spec);
}

static void
tear_down(void)
{
    qdq_plan_free(&plan);
    builder_close(&b, &m);
}

/* Opens the built model and plans it; returns the code of qdq_plan_make(). */
static enum qdq_code
make_plan(void)
{
    ck_assert_msg(builder_open(&b, &m, &err) == QDQ_OK, "%s", err.text);
    return qdq_plan_make(NULL, m, &spec, &plan, &err);
}

static void
add_tensors(void)
{
    static int64_t spatial[] = {2, 3}, last[] = {-1};
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_input(&b, "y", QDQI_FLOAT32);
    builder_input(&b, "h", QDQI_FLOAT16);
    builder_input(&b, "f64", QDQI_FLOAT64);
    builder_input(&b, "i", QDQI_INT64);
    builder_weight(&b, "w5", 5, (const int64_t[]){4, 3, 1, 1, 1});
    builder_weight(&b, "w4", 4, (const int64_t[]){4, 3, 1, 1});
    builder_weight(&b, "we", 4, (const int64_t[]){1 << 30, 0, 1, 1});
    builder_weight(&b, "wd", 4, (const int64_t[]){4, 1, 3, 3});
    builder_weight(&b, "w3", 3, (const int64_t[]){4, 3, 3});
    builder_weight(&b, "w2", 2, (const int64_t[]){4, 4});
    builder_weight(&b, "b", 1, (const int64_t[]){4});
    Onnx__TensorProto *half =
        builder_weight(&b, "wh", 4, (const int64_t[]){1, 1, 1, 1});
    half->data_type = QDQI_FLOAT16;
    half->raw_data.len = 2;
    builder_weight(&b, "wi", 2, (const int64_t[]){1, 1})->data_type = QDQI_INT32;
    Onnx__TensorProto *t = builder_weight(&b, "spatial", 1, (const int64_t[]){2});
    t->data_type = QDQI_INT64;
    t->raw_data.data = (uint8_t *)spatial;
    t->raw_data.len = sizeof spatial;
    t = builder_weight(&b, "lastaxis", 1, (const int64_t[]){1});
    t->data_type = QDQI_INT64;
    t->has_raw_data = 0;
    t->int64_data = last;
    t->n_int64_data = 1;
}

UNIT_ROWS(each_node_is_decided, nodes)
{
    builder_init(&b, 18);
    add_tensors();
    Onnx__NodeProto *node =
        builder_node(&b, nodes[_i].op, "node", nodes[_i].inputs, "out");
    if (nodes[_i].attribute)
        builder_int(&b, node, nodes[_i].attribute, nodes[_i].value);
    ck_assert_msg(make_plan() == QDQ_OK, "%s", err.text);
    const struct qdq_plan_view *view = qdq_plan_view(plan);
    if (!nodes[_i].cls) {
        ck_assert_msg(view->n_layers == 0, "row %d is a %s", _i, view->layers[0].cls);
    } else {
        const struct qdq_layer *l = &view->layers[0];
        ck_assert_uint_eq(view->n_layers, 1);
        ck_assert_str_eq(l->cls, nodes[_i].cls);
        ck_assert_msg(strcmp(l->reason, nodes[_i].reason) == 0, "row %d: %s", _i,
                      l->reason);
        ck_assert_uint_eq(l->n_inputs, nodes[_i].input >= 0);
        if (nodes[_i].input >= 0)
            ck_assert_int_eq(l->quantized_inputs[0], nodes[_i].input);
        ck_assert_int_eq(l->weight_input, nodes[_i].weight);
        ck_assert_int_eq(l->weight_axis, nodes[_i].axis);
    }
}

UNIT_TEST(shared_tensors_count_once)
{
    builder_init(&b, 13);
    add_tensors();
    builder_node(&b, "Conv", "c1", "x,w4", "a");
    builder_node(&b, "Conv", "c2", "x,w4", "b2");
    builder_node(&b, "Gemm", "g1", "x,w2", "c");
    builder_int(&b, builder_node(&b, "Gemm", "g2", "x,w2", "d"), "transB", 1);
    ck_assert_int_eq(make_plan(), QDQ_OK);
    const struct qdq_plan_view *view = qdq_plan_view(plan);
    ck_assert_uint_eq(view->n_quantized, 4);
    ck_assert_uint_eq(view->n_tensors, 1);
    /* w4, w2 along axis 1, and w2 along axis 0 */
    ck_assert_uint_eq(view->n_weights, 3);
}

/* If names were formed by joining them, "w4/0" would mean the weight w4 along axis
   0. */
UNIT_TEST(weights_and_activations_have_names_of_their_own)
{
    builder_init(&b, 13);
    add_tensors();
    builder_node(&b, "Identity", "id", "x", "w4/0");
    builder_node(&b, "Conv", "c1", "w4/0,w4", "a");
    ck_assert_int_eq(make_plan(), QDQ_OK);
    ck_assert_uint_eq(qdq_plan_view(plan)->n_tensors, 1);
    ck_assert_uint_eq(qdq_plan_view(plan)->n_weights, 1);
}

static const struct {
    int64_t opset;
    enum qdq_code code;
    int axis;            /* axis of the first weight */
    const char *warning; /* the only warning, or NULL */
} opsets[] = {
    {9, QDQ_UNSUPPORTED, 0, NULL},
    {10, QDQ_OK, -1, "opset_per_tensor"},
    {12, QDQ_OK, -1, "opset_per_tensor"},
    {13, QDQ_OK, 0, NULL},
    {21, QDQ_OK, 0, NULL},
};

/* Returns the codes of the warnings, without those about TensorRT's slow kernels. */
static const char *
warned(const struct qdq_plan_view *view)
{
    static char text[256];
    size_t n = 0;
    *text = '\0';
    for (size_t i = 0; i < view->n_warnings; i++)
        if (!view->warnings[i].rule)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? " " : "",
                                  view->warnings[i].code);
    return text;
}

UNIT_ROWS(the_opset_decides_about_per_channel_scales, opsets)
{
    builder_two_convs(&b, opsets[_i].opset);
    ck_assert_int_eq(make_plan(), opsets[_i].code);
    if (!opsets[_i].code) {
        const struct qdq_plan_view *view = qdq_plan_view(plan);
        ck_assert_int_eq(view->layers[0].weight_axis, opsets[_i].axis);
        ck_assert_str_eq(warned(view), opsets[_i].warning ? opsets[_i].warning : "");
    }
}

UNIT_TEST(a_quantized_model_is_named_as_such)
{
    builder_two_convs(&b, 13);
    builder_node(&b, "QuantizeLinear", "q", "y,bias", "z");
    ck_assert_int_eq(make_plan(), QDQ_EXISTING_QDQ);
    ck_assert_str_eq(err.where, "q");
    ck_assert_ptr_null(plan);
}

UNIT_TEST(a_range_for_no_tensor_is_unmatched)
{
    const struct qdq_given_range ranges[] = {{"r", -1, 1}, {"ghost", -1, 1}};
    spec.calibration.ranges = ranges;
    spec.calibration.n_ranges = 2;
    builder_two_convs(&b, 13);
    ck_assert_int_eq(make_plan(), QDQ_UNMATCHED);
    ck_assert_str_eq(err.where, "ghost");
    spec.unmatched_is_error = false;
    ck_assert_int_eq(qdq_plan_make(NULL, m, &spec, &plan, NULL), QDQ_OK);
    ck_assert_str_eq(qdq_plan_view(plan)->warnings[0].code, "unmatched");
}

/* Shapes may pass through floating point, for example on their way to Resize's
   sizes. */
UNIT_TEST(shape_arithmetic_is_no_data)
{
    const struct qdq_layer_entry all[] = {
        {.by = QDQ_BY_CLASS,
         .names = (const char *const[]){"Mul"},
         .n_names = 1,
         .quantize_input = true,
         .quantize_weight = true},
        {.by = QDQ_BY_CLASS,
         .names = (const char *const[]){"Relu"},
         .n_names = 1,
         .quantize_input = true,
         .quantize_weight = true},
    };
    builder_init(&b, 17);
    add_tensors();
    builder_node(&b, "Shape", "shape", "x", "s");
    builder_int(&b, builder_node(&b, "Cast", "cast", "s", "f"), "to", QDQI_FLOAT32);
    builder_node(&b, "Mul", "double", "f,f", "ff");
    builder_node(&b, "Relu", "clip", "ff", "fc");
    builder_node(&b, "Mul", "scale", "x,fc", "z");
    builder_node(&b, "Mul", "data", "x,y", "v");
    spec.layers = all;
    spec.n_layers = 2;
    ck_assert_msg(make_plan() == QDQ_OK, "%s", err.text);
    const struct qdq_plan_view *view = qdq_plan_view(plan);
    ck_assert_uint_eq(view->n_layers, 2);
    ck_assert_str_eq(view->layers[0].name, "clip");
    ck_assert_str_eq(view->layers[0].reason, "shape arithmetic");
    ck_assert_uint_eq(view->layers[0].n_inputs, 0);
    ck_assert_str_eq(view->layers[1].name, "data");
    ck_assert_uint_eq(view->layers[1].n_inputs, 2);
}

UNIT_SUITE("plan", .setup = set_up, .teardown = tear_down)
