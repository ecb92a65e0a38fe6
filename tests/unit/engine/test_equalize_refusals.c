/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of layers that equalization leaves as they are, and the reason that it reports. */
#include "config.h"

#include "equalize_nets.h"

/* --- left alone ----------------------------------------------------------- */

static void
clip_6(struct builder *b)
{
    first_conv(b);
    ((float *)builder_weight(b, "zero", 0, NULL)->raw_data.data)[0] = 0;
    ((float *)builder_weight(b, "six", 0, NULL)->raw_data.data)[0] = 6;
    builder_node(b, "Clip", "clip", "h,zero,six", "r");
    second_conv(b, "r");
}

static void
clip_by_attribute(struct builder *b)
{
    first_conv(b);
    b->opset.version = 6;
    builder_attribute(b, builder_node(b, "Clip", "clip", "h", "r"), "max")->f = 6;
    second_conv(b, "r");
}

static void
clip_computed(struct builder *b)
{
    first_conv(b);
    builder_input(b, "bound", QDQI_FLOAT32);
    builder_node(b, "Clip", "clip", "h,bound", "r");
    second_conv(b, "r");
}

static void
sigmoid(struct builder *b)
{
    first_conv(b);
    builder_node(b, "Sigmoid", "sigmoid", "h", "r");
    second_conv(b, "r");
}

static void
foreign_relu(struct builder *b)
{
    first_conv(b);
    builder_node(b, "Relu", "relu", "h", "r")->domain =
        qdqi_arena_strdup(b->arena, "com.example");
    second_conv(b, "r");
}

static void
residual(struct builder *b)
{
    conv_relu_conv(b);
    builder_node(b, "Identity", "skip", "r", "z");
    builder_output(b, "z", QDQI_FLOAT32);
}

static void
graph_output(struct builder *b)
{
    conv_relu_conv(b);
    builder_output(b, "r", QDQI_FLOAT32);
}

static void
two_computed(struct builder *b)
{
    first_conv(b);
    builder_node(b, "Add", "add", "h,h", "r");
    second_conv(b, "r");
}

static void
scalar_bias(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", 1, 4, 5);
    SKEWED(b, "b1", -1, 1);
    SKEWED(b, "w2", -1, 5, 3);
    builder_node(b, "MatMul", "first", "x,w1", "m");
    builder_node(b, "Add", "add", "m,b1", "h");
    builder_node(b, "MatMul", "second", "h,w2", "y");
}

/* A bias along the last axis, which is not the channels' axis. */
static void
bias_of_other_axis(struct builder *b)
{
    first_conv(b);
    SKEWED(b, "c1", -1, 5);
    builder_node(b, "Add", "add", "h,c1", "r");
    second_conv(b, "r");
}

static void
old_add(struct builder *b)
{
    first_conv(b);
    b->opset.version = 6;
    SKEWED(b, "c1", -1, 5);
    builder_int(b, builder_node(b, "Add", "add", "h,c1", "r"), "axis", 1);
    second_conv(b, "r");
}

static void
shared_weight(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", 0, 3, 3, 1);
    builder_node(b, "Conv", "first", "x,w1", "h");
    builder_node(b, "Conv", "second", "h,w1", "y");
}

static void
shared_bias(struct builder *b)
{
    conv_relu_conv(b);
    builder_node(b, "Relu", "user", "b1", "z");
    builder_output(b, "z", QDQI_FLOAT32);
}

static void
shared_second(struct builder *b)
{
    conv_relu_conv(b);
    builder_node(b, "Relu", "user", "w2", "z");
    builder_output(b, "z", QDQI_FLOAT32);
}

static void
weight_is_output(struct builder *b)
{
    conv_relu_conv(b);
    builder_output(b, "w1", QDQI_FLOAT32);
}

static void
computed_weight(struct builder *b)
{
    first_conv(b);
    SKEWED(b, "v2", -1, 2, 5, 4);
    builder_ints(b, builder_node(b, "Transpose", "turn", "v2", "w2"), "perm", 3,
                 DIMS(2, 1, 0));
    builder_node(b, "Conv", "second", "h,w2", "y");
}

static void
weight_given_at_run_time(struct builder *b)
{
    first_conv(b);
    builder_input(b, "w2", QDQI_FLOAT32);
    builder_node(b, "Conv", "second", "h,w2", "y");
}

static void
overridable(struct builder *b)
{
    conv_relu_conv(b);
    builder_input(b, "w2", QDQI_FLOAT32);
}

static void
not_a_number(struct builder *b)
{
    conv_relu_conv(b);
    weight_data(b, "w2")[3] = NAN;
}

static void
infinite_bias(struct builder *b)
{
    conv_relu_conv(b);
    weight_data(b, "b1")[3] = INFINITY;
}

static void
enormous(struct builder *b)
{
    conv_relu_conv(b);
    weight_data(b, "w1")[3] = FLT_MAX;
}

static void
float64_weight(struct builder *b)
{
    begin(b);
    Onnx__TensorProto *t = SKEWED(b, "w1", 0, 5, 3, 2);
    t->data_type = QDQI_FLOAT64;
    *t->dims /= 2;
    t->raw_data.len = 2 * 3 * 2 * sizeof(double);
    builder_node(b, "Conv", "first", "x,w1", "h");
    builder_node(b, "Relu", "last", "h", "y");
}

static void
other_channels(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", 0, 4, 3, 1);
    builder_node(b, "Conv", "first", "x,w1", "h");
    second_conv(b, "h");
}

static void
bad_group(struct builder *b)
{
    conv_relu_conv(b);
    builder_int(b, b->nodes[0], "group", 3);
}

static void
negative_group(struct builder *b)
{
    conv_relu_conv(b);
    builder_int(b, b->nodes[2], "group", -1);
}

static void
flat_weight(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", 0, 12);
    builder_node(b, "Conv", "first", "x,w1", "h");
    builder_node(b, "Relu", "last", "h", "y");
}

static void
empty_weight(struct builder *b)
{
    begin(b);
    builder_weight(b, "w1", 3, DIMS(0, 3, 1));
    builder_node(b, "Conv", "first", "x,w1", "h");
    builder_node(b, "Relu", "last", "h", "y");
}

/* A MatMul uses the last axis, which is not the channels' axis of a convolution. */
static void
conv_matmul(struct builder *b)
{
    first_conv(b);
    SKEWED(b, "w2", -1, 5, 3);
    builder_node(b, "MatMul", "second", "h,w2", "y");
}

static void
uneven_blocks(struct builder *b)
{
    first_conv(b);
    SKEWED(b, "w2", -1, 7, 3);
    builder_node(b, "Flatten", "flatten", "h", "f");
    builder_node(b, "MatMul", "second", "f,w2", "y");
}

static void
flatten_of_samples(struct builder *b)
{
    first_conv(b);
    SKEWED(b, "w2", -1, 40, 3);
    builder_int(b, builder_node(b, "Flatten", "flatten", "h", "f"), "axis", 0);
    builder_node(b, "MatMul", "second", "f,w2", "y");
}

static void
transposed_data(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", 1, 4, 5);
    SKEWED(b, "w2", -1, 5, 3);
    builder_node(b, "Gemm", "first", "x,w1", "h");
    builder_int(b, builder_node(b, "Gemm", "second", "h,w2", "y"), "transA", 1);
}

static void
second_operand(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", 1, 4, 5);
    SKEWED(b, "w2", -1, 3, 5);
    builder_node(b, "MatMul", "first", "x,w1", "h");
    builder_node(b, "MatMul", "second", "w2,h", "y");
}

static void
many_biases(struct builder *b)
{
    first_conv(b);
    static const char *const names[] = {"c0", "c1", "c2", "c3", "c4", "c5"};
    char input[8] = "h", both[16], output[8];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        SKEWED(b, names[i], -1, 5, 1);
        snprintf(both, sizeof both, "%s,%s", input, names[i]);
        snprintf(output, sizeof output, "s%zu", i);
        builder_node(b, "Add", output, both, output);
        memcpy(input, output, sizeof input);
    }
    second_conv(b, input);
}

/* A constant has a value for each element of the blocks that the Flatten makes. */
static void
sum_of_blocks(struct builder *b)
{
    first_conv(b);
    SKEWED(b, "c1", -1, 40);
    SKEWED(b, "w2", -1, 40, 3);
    builder_node(b, "Flatten", "flatten", "h", "f");
    builder_node(b, "Add", "add", "f,c1", "s");
    builder_node(b, "MatMul", "second", "s,w2", "y");
}

/* The rows that the reduction averages are those of the second layer's input. */
static void
mean_of_channels(struct builder *b)
{
    first_conv(b);
    SKEWED(b, "w2", -1, 8, 3);
    Onnx__NodeProto *mean = builder_node(b, "ReduceMean", "mean", "h", "m");
    builder_ints(b, mean, "axes", 1, DIMS(1));
    builder_int(b, mean, "keepdims", 0);
    builder_node(b, "MatMul", "second", "m,w2", "y");
}

static void
constant_layer(struct builder *b)
{
    begin(b);
    SKEWED(b, "k", -1, 2, 4);
    SKEWED(b, "w1", 1, 4, 5);
    SKEWED(b, "w2", -1, 5, 3);
    builder_node(b, "MatMul", "first", "k,w1", "h");
    builder_node(b, "MatMul", "second", "h,w2", "y");
}

static void
nested(struct builder *b)
{
    static Onnx__GraphProto graph;
    static Onnx__NodeProto *body[1];
    conv_relu_conv(b);
    onnx__graph_proto__init(&graph);
    body[0] = builder_node(b, "Relu", "inner", "r", "inner_out");
    b->graph.n_node--;
    graph.node = body;
    graph.n_node = 1;
    builder_input(b, "c", QDQI_BOOL);
    builder_attribute(b, builder_node(b, "If", "if", "c", "z"), "then_branch")->g =
        &graph;
}

static const struct {
    const char *what;
    void (*build)(struct builder *b);
    const char *reason; /* reason of the first row */
} alone[] = {
    {"clip to 6", clip_6, "followed by Clip"},
    {"clip by attribute", clip_by_attribute, "followed by Clip"},
    {"clip to what is computed", clip_computed, "followed by Clip"},
    {"sigmoid", sigmoid, "followed by Sigmoid"},
    {"foreign relu", foreign_relu, "followed by Relu"},
    {"residual", residual, "its output goes to more than one layer"},
    {"graph output", graph_output, "its output is one of the model's"},
    {"add of itself", two_computed, "its output goes to more than one layer"},
    {"scalar bias", scalar_bias, "what is added is not one value for each channel"},
    {"bias of another axis", bias_of_other_axis,
     "what is added is not one value for each channel"},
    {"add of opset 6", old_add, "followed by Add"},
    {"shared weight", shared_weight, "its weight is used elsewhere, too"},
    {"shared bias", shared_bias, "what is added is used elsewhere, too"},
    {"shared weight of the next", shared_second,
     "the next layer's weight is used elsewhere, too"},
    {"weight is an output", weight_is_output, "its weight is used elsewhere, too"},
    {"computed weight", computed_weight,
     "the next layer's weight is computed from constants"},
    {"weight given at run time", weight_given_at_run_time,
     "the next layer's weight is not constant"},
    {"overridable", overridable,
     "the next layer's weight is an input, too, which a caller may replace"},
    {"not a number", not_a_number,
     "the next layer's weight is not finite, or beyond any usual size"},
    {"infinite bias", infinite_bias,
     "what is added is not finite, or beyond any usual size"},
    {"enormous weight", enormous, "its weight is not finite, or beyond any usual size"},
    {"float64", float64_weight, "its weight is not float32"},
    {"other channels", other_channels,
     "the next layer's weight does not have its channels"},
    {"bad group", bad_group, "its weight is of a shape that does not fit"},
    {"negative group", negative_group,
     "the next layer's weight is of a shape that does not fit"},
    {"flat weight", flat_weight, "its weight is of a shape that does not fit"},
    {"empty weight", empty_weight, "its weight is of a shape that does not fit"},
    {"conv matmul", conv_matmul, "the next layer's weight does not have its channels"},
    {"uneven blocks", uneven_blocks,
     "the next layer's weight does not have its channels"},
    {"flatten of samples", flatten_of_samples, "followed by Flatten"},
    {"transposed data", transposed_data,
     "the next layer's weight does not have its channels"},
    {"second operand", second_operand, "its output is no data of the next layer"},
    {"many biases", many_biases, "what is added is beyond the most that are followed"},
    {"sum of blocks", sum_of_blocks, "followed by Flatten"},
    {"mean of channels", mean_of_channels, "followed by ReduceMean"},
    {"constant layer", constant_layer, "its output is constant"},
    {"nested graph", nested, "its output is used in a nested graph"},
};

UNIT_ROWS(left_alone, alone)
{
    struct builder b;
    alone[_i].build(&b);
    struct result r = equalize(&b);
    ck_assert_uint_gt(r.n, 0);
    ck_assert_msg(strcmp(r.rows[0].reason, alone[_i].reason) == 0, "%s: %s",
                  alone[_i].what, r.rows[0].reason);
    ck_assert_str_eq(r.rows[0].first, "first");
    ck_assert_uint_eq(r.rows[0].channels, 0);
    ck_assert_ptr_null(r.equalized);
    finish(&b, &r);
}

UNIT_SUITE("equalize_refusals")
