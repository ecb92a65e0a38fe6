/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Equalization keeps the model's function, bit for bit, makes channels alike, and
 * leaves layers alone that do not fit. A small float64 interpreter computes the
 * function: activations are [1, channels, length] or [1, channels], and kernels have
 * one axis.
 */
#include "config.h"

#include "transform/equalize/balance.h"
#include "equalize_nets.h"
#include "failing.h"

#include <float.h>
#include <math.h>

/* --- models --------------------------------------------------------------- */

static void
conv_conv(struct builder *b)
{
    first_conv(b);
    second_conv(b, "h");
}

static void
conv_leaky_conv(struct builder *b)
{
    first_conv(b);
    builder_attribute(b, builder_node(b, "LeakyRelu", "leaky", "h", "r"), "alpha")->f =
        0.3F;
    second_conv(b, "r");
}

static void
conv_prelu_conv(struct builder *b)
{
    first_conv(b);
    SKEWED(b, "slope", 0, 5, 1);
    builder_node(b, "PRelu", "prelu", "h,slope", "r");
    second_conv(b, "r");
}

static void
conv_clip_conv(struct builder *b)
{
    first_conv(b);
    ((float *)builder_weight(b, "zero", 0, NULL)->raw_data.data)[0] = 0;
    builder_node(b, "Clip", "clip", "h,zero", "r");
    second_conv(b, "r");
}

/* Has all operators that may stand between two convolutions, one after the other. */
static void
conv_long_way_conv(struct builder *b)
{
    first_conv(b);
    SKEWED(b, "c1", 1, 1, 5, 1);
    builder_node(b, "Identity", "identity", "h", "i");
    builder_node(b, "Add", "add", "c1,i", "a");
    builder_node(b, "Dropout", "dropout", "a", "d");
    builder_ints(b, builder_node(b, "MaxPool", "max", "d", "m"), "kernel_shape", 1,
                 DIMS(2));
    builder_node(b, "Relu", "relu", "m", "r");
    builder_ints(b, builder_node(b, "AveragePool", "mean", "r", "p"), "kernel_shape", 1,
                 DIMS(2));
    second_conv(b, "p");
}

/* A depthwise convolution, where each channel is its own group, then a pointwise
   one. Both are ends of chains. */
static void
conv_depthwise_conv(struct builder *b)
{
    first_conv(b);
    SKEWED(b, "dw", 0, 5, 1, 2);
    builder_node(b, "Relu", "relu", "h", "r");
    builder_int(b, builder_node(b, "Conv", "depthwise", "r,dw", "d"), "group", 5);
    builder_node(b, "Relu", "relu2", "d", "e");
    second_conv(b, "e");
}

/* Both convolutions have two groups, of different sizes. */
static void
grouped_grouped(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", 0, 6, 2, 1);
    SKEWED(b, "w2", -1, 4, 3, 2);
    builder_int(b, builder_node(b, "Conv", "first", "x,w1", "h"), "group", 2);
    builder_int(b, builder_node(b, "Conv", "second", "h,w2", "y"), "group", 2);
}

static void
conv_pool_flatten_gemm(struct builder *b)
{
    first_conv(b);
    SKEWED(b, "w2", -1, 4, 5);
    SKEWED(b, "b2", -1, 4);
    builder_node(b, "GlobalAveragePool", "pool", "h", "p");
    builder_node(b, "Flatten", "flatten", "p", "f");
    builder_int(b, builder_node(b, "Gemm", "second", "f,w2,b2", "y"), "transB", 1);
}

/* The Reshape makes blocks of eight inputs from the channels. */
static void
conv_reshape_matmul(struct builder *b)
{
    first_conv(b);
    SKEWED(b, "w2", -1, 40, 3);
    builder_ints_weight(b, "shape", 2, DIMS(0, -1));
    builder_node(b, "Relu", "relu", "h", "r");
    builder_node(b, "Reshape", "reshape", "r,shape", "f");
    builder_node(b, "MatMul", "second", "f,w2", "y");
}

static void
gemm_gemm(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", 1, 4, 5);
    SKEWED(b, "b1", 1, 1, 5);
    SKEWED(b, "w2", -1, 5, 3);
    builder_node(b, "Gemm", "first", "x,w1,b1", "h");
    builder_node(b, "Relu", "relu", "h", "r");
    builder_node(b, "Gemm", "second", "r,w2", "y");
}

static void
matmul_matmul(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", 1, 4, 5);
    SKEWED(b, "b1", 0, 5);
    SKEWED(b, "w2", -1, 5, 3);
    builder_node(b, "MatMul", "first", "x,w1", "m");
    builder_node(b, "Add", "add", "m,b1", "h");
    builder_node(b, "Relu", "relu", "h", "r");
    builder_node(b, "MatMul", "second", "r,w2", "y");
}

/* One weight is too large to stay in the skeleton, and one is in a Constant. */
static void
large(struct builder *b)
{
    begin(b);
    SKEWED(b, "w1", 0, 40, 4, 3);
    SKEWED(b, "b1", 0, 40);
    SKEWED(b, "w2", -1, 30, 40, 3);
    builder_node(b, "Conv", "first", "x,w1,b1", "h");
    builder_node(b, "Conv", "second", "h,w2,", "y");
    Onnx__NodeProto *constant = builder_node(b, "Constant", "constant", "", "b2");
    builder_tensor(b, constant, "value", SKEWED(b, "zz", 0, 30));
    b->nodes[1]->input[2] = b->nodes[2]->output[0];
    b->graph.n_initializer--;
    SKEWED(b, "w3", -1, 2, 30, 1);
    b->nodes[1]->output[0] = qdqi_arena_strdup(b->arena, "k");
    builder_node(b, "Conv", "third", "k,w3", "y");
}

/* Three layers, of which the middle one belongs to two chains. */
static void
three(struct builder *b)
{
    first_conv(b);
    SKEWED(b, "m2", 0, 6, 5, 1);
    SKEWED(b, "n2", 0, 6);
    SKEWED(b, "w3", -1, 3, 6, 1);
    builder_node(b, "Relu", "relu", "h", "r");
    builder_node(b, "Conv", "middle", "r,m2,n2", "k");
    builder_node(b, "Relu", "relu2", "k", "l");
    builder_node(b, "Conv", "last", "l,w3", "y");
}

/* --- the interpreter ------------------------------------------------------ */

struct value {
    size_t channels, length; /* length 1 also stands for [1, channels] */
    double data[512];
};

static double
stored(const struct qdq_model *m, const struct qdqi_node *node, size_t input, size_t i)
{
    struct qdqi_constant c;
    if (input >= node->proto->n_input || !node->inputs[input])
        return 0;
    ck_assert_int_eq(qdqi_constant_read(m, node->inputs[input], &c, NULL), QDQ_OK);
    return qdqi_float_at(c.bytes, c.n == 1 ? 0 : i);
}

static const int64_t *
weight_dims(const struct qdqi_node *node)
{
    return node->inputs[1]->constant->dims;
}

static void
run_conv(const struct qdq_model *m, const struct qdqi_node *node, const struct value *x,
         struct value *y)
{
    const int64_t *dims = weight_dims(node);
    size_t group = (size_t)qdqi_node_int(node->proto, "group", 1);
    size_t out = (size_t)dims[0], in = (size_t)dims[1], k = (size_t)dims[2];
    ck_assert_uint_eq(in * group, x->channels);
    y->channels = out;
    y->length = x->length - k + 1;
    for (size_t o = 0; o < out; o++)
        for (size_t p = 0; p < y->length; p++) {
            double sum = stored(m, node, 2, o);
            for (size_t i = 0; i < in; i++)
                for (size_t j = 0; j < k; j++)
                    sum += stored(m, node, 1, (o * in + i) * k + j) *
                           x->data[(o / (out / group) * in + i) * x->length + p + j];
            y->data[o * y->length + p] = sum;
        }
}

static void
run_transposed(const struct qdq_model *m, const struct qdqi_node *node,
               const struct value *x, struct value *y)
{
    const int64_t *dims = weight_dims(node);
    size_t group = (size_t)qdqi_node_int(node->proto, "group", 1);
    size_t in = (size_t)dims[0], out = (size_t)dims[1], k = (size_t)dims[2];
    ck_assert_uint_eq(in, x->channels);
    y->channels = out * group;
    y->length = x->length + k - 1;
    for (size_t o = 0; o < y->channels; o++)
        for (size_t p = 0; p < y->length; p++)
            y->data[o * y->length + p] = stored(m, node, 2, o);
    for (size_t i = 0; i < in; i++)
        for (size_t o = 0; o < out; o++)
            for (size_t p = 0; p < x->length; p++)
                for (size_t j = 0; j < k; j++)
                    y->data[(i / (in / group) * out + o) * y->length + p + j] +=
                        stored(m, node, 1, (i * out + o) * k + j) *
                        x->data[i * x->length + p];
}

static void
run_matrix(const struct qdq_model *m, const struct qdqi_node *node,
           const struct value *x, struct value *y)
{
    const int64_t *dims = weight_dims(node);
    bool transposed = qdqi_node_int(node->proto, "transB", 0) != 0;
    size_t in = (size_t)dims[transposed], out = (size_t)dims[!transposed];
    ck_assert_uint_eq(in, x->channels * x->length);
    y->channels = out;
    y->length = 1;
    for (size_t o = 0; o < out; o++) {
        y->data[o] = stored(m, node, 2, o);
        for (size_t i = 0; i < in; i++)
            y->data[o] +=
                x->data[i] * stored(m, node, 1, transposed ? o * in + i : i * out + o);
    }
}

static void
run_pool(const struct qdqi_node *node, const struct value *x, struct value *y)
{
    bool all = qdqi_node_is(node->proto, "GlobalAveragePool");
    bool max = qdqi_node_is(node->proto, "MaxPool");
    size_t k = all ? x->length : 2;
    y->length = x->length - k + 1;
    for (size_t c = 0; c < x->channels; c++)
        for (size_t p = 0; p < y->length; p++) {
            const double *from = &x->data[c * x->length + p];
            double sum = 0, largest = from[0];
            for (size_t j = 0; j < k; j++) {
                sum += from[j];
                largest = fmax(largest, from[j]);
            }
            y->data[c * y->length + p] = max ? largest : sum / (double)k;
        }
}

static double
run_element(const struct qdq_model *m, const struct qdqi_node *node, size_t channel,
            double v)
{
    const Onnx__AttributeProto *alpha = qdqi_node_attribute(node->proto, "alpha");
    if (qdqi_node_is(node->proto, "Relu") || qdqi_node_is(node->proto, "Clip"))
        return v > 0 ? v : 0;
    if (qdqi_node_is(node->proto, "LeakyRelu"))
        return v > 0 ? v : v * alpha->f;
    if (qdqi_node_is(node->proto, "PRelu"))
        return v > 0 ? v : v * stored(m, node, 1, channel);
    if (qdqi_node_is(node->proto, "Add"))
        return v + stored(m, node, node->inputs[0]->is_fixed ? 0 : 1, channel);
    return v;
}

static void
run_node(const struct qdq_model *m, const struct qdqi_node *node, struct value *v)
{
    static struct value y;
    y = *v;
    if (qdqi_node_is(node->proto, "Conv"))
        run_conv(m, node, v, &y);
    else if (qdqi_node_is(node->proto, "ConvTranspose"))
        run_transposed(m, node, v, &y);
    else if (qdqi_node_is(node->proto, "Gemm") || qdqi_node_is(node->proto, "MatMul"))
        run_matrix(m, node, v, &y);
    else if (strstr(node->proto->op_type, "Pool"))
        run_pool(node, v, &y);
    else
        for (size_t i = 0; i < v->channels * v->length; i++)
            y.data[i] = run_element(m, node, i / v->length, v->data[i]);
    ck_assert_uint_le(y.channels * y.length, sizeof y.data / sizeof *y.data);
    *v = y;
}

/* Runs a chain of nodes in file order; Constants may stand anywhere. */
static void
run_model(const struct qdq_model *m, struct value *v)
{
    const struct qdqi_node *first = &m->graph.nodes[0];
    bool conv = strstr(first->proto->op_type, "Conv") != NULL;
    v->channels =
        conv && qdqi_node_is(first->proto, "Conv")
            ? (size_t)(weight_dims(first)[1] * qdqi_node_int(first->proto, "group", 1))
            : (size_t)weight_dims(first)[0];
    v->length = conv ? LENGTH : 1;
    for (size_t i = 0; i < v->channels * v->length; i++)
        v->data[i] = sin((double)i + 1);
    for (size_t i = 0; i < m->graph.n_nodes; i++)
        if (!qdqi_node_is(m->graph.nodes[i].proto, "Constant"))
            run_node(m, &m->graph.nodes[i], v);
}

/* --- the function stays --------------------------------------------------- */

/* Returns the largest ratio between the two sides of a channel; 1 when they are
   equal. */
static double
imbalance(const struct qdq_model *m)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_pair *pairs;
    size_t n;
    double ones[64], r1[64], r2[64], worst = 1;
    for (size_t i = 0; i < 64; i++)
        ones[i] = 1;
    ck_assert_int_eq(qdqi_pairs_find(m, arena, &pairs, &n, NULL), QDQ_OK);
    for (size_t i = 0; i < n; i++) {
        const struct qdqi_chain *chain = pairs[i].chain;
        if (!chain)
            continue;
        qdqi_weight_ranges(&chain->maker.weight, true, ones, r1);
        qdqi_weight_ranges(&chain->readers->weight, false, ones, r2);
        qdqi_chain_fold(chain, r2);
        for (size_t c = 0; c < chain->channels; c++)
            worst = fmax(worst, fmax(r1[c] / r2[c], r2[c] / r1[c]));
    }
    qdqi_arena_free(&arena);
    return worst;
}

static const struct {
    const char *what;
    void (*build)(struct builder *b);
    size_t pairs, channels; /* number of pairs, and of channels in the first pair */
} chains[] = {
    {"conv conv", conv_conv, 1, 5},
    {"conv relu conv", conv_relu_conv, 1, 5},
    {"conv leaky relu conv", conv_leaky_conv, 1, 5},
    {"conv prelu conv", conv_prelu_conv, 1, 5},
    {"conv clip(0) conv", conv_clip_conv, 1, 5},
    {"conv ... conv", conv_long_way_conv, 1, 5},
    {"conv depthwise conv", conv_depthwise_conv, 2, 5},
    {"grouped grouped", grouped_grouped, 1, 6},
    {"transposed", transposed, 1, 6},
    {"conv pool flatten gemm", conv_pool_flatten_gemm, 1, 5},
    {"conv reshape matmul", conv_reshape_matmul, 1, 5},
    {"gemm gemm", gemm_gemm, 1, 5},
    {"matmul matmul", matmul_matmul, 1, 5},
    {"large", large, 2, 40},
    {"three", three, 2, 5},
};

UNIT_ROWS(the_function_stays, chains)
{
    static struct value before, after;
    struct builder b;
    chains[_i].build(&b);
    struct result r = equalize(&b);
    size_t equalized = 0;
    for (size_t i = 0; i < r.n; i++)
        equalized += strcmp(r.rows[i].reason, "equalized") == 0;
    ck_assert_msg(equalized == chains[_i].pairs, "%s: %zu pairs, %s", chains[_i].what,
                  equalized, r.rows[0].reason);
    ck_assert_str_eq(r.rows[0].first, "first");
    ck_assert_uint_gt(r.rows[0].channels, 0);
    ck_assert_uint_le(r.rows[0].channels, chains[_i].channels);
    run_model(r.source, &before);
    run_model(r.equalized, &after);
    ck_assert_uint_eq(before.channels * before.length, after.channels * after.length);
    for (size_t i = 0; i < before.channels * before.length; i++)
        ck_assert_msg(before.data[i] == after.data[i], "%s: element %zu: %.17g, %.17g",
                      chains[_i].what, i, before.data[i], after.data[i]);
    finish(&b, &r);
}

/* A single pair ends within a factor of two; pairs that share layers, not far from
   it. */
UNIT_ROWS(channels_become_alike, chains)
{
    struct builder b;
    chains[_i].build(&b);
    struct result r = equalize(&b);
    double before = imbalance(r.source), after = imbalance(r.equalized);
    ck_assert_msg(before > 20, "%s: %g before", chains[_i].what, before);
    ck_assert_msg(after <= (chains[_i].pairs == 1 ? 2.0001 : 8), "%s: %g to %g",
                  chains[_i].what, before, after);
    finish(&b, &r);
}

/* An equalized model needs no new model, so nothing is scaled twice. */
UNIT_TEST(a_second_time_changes_nothing)
{
    struct builder b;
    conv_relu_conv(&b);
    struct result r = equalize(&b);
    const struct qdq_equalization *rows;
    struct qdq_model *again = NULL;
    size_t n;
    ck_assert_int_eq(qdqi_equalize(r.equalized, r.arena, &rows, &n, &again, NULL),
                     QDQ_OK);
    ck_assert_ptr_null(again);
    ck_assert_str_eq(rows[0].reason, "equal already");
    ck_assert_uint_eq(rows[0].channels, 0);
    finish(&b, &r);
}

UNIT_TEST(only_numbers_change)
{
    struct builder b;
    large(&b);
    builder_int(&b, b.nodes[0], "group", 1);
    /* a duplicate name, which is reported with a suffix */
    b.nodes[4 - 1]->name = b.nodes[0]->name;
    struct result r = equalize(&b);
    ck_assert_uint_eq(r.source->graph.n_nodes, r.equalized->graph.n_nodes);
    ck_assert_uint_eq(r.source->files[0].size + strlen("_1"),
                      r.equalized->files[0].size);
    for (size_t i = 0; i < r.source->graph.n_nodes; i++) {
        const struct qdqi_node *n = &r.source->graph.nodes[i];
        ck_assert_str_eq(n->name, r.equalized->graph.nodes[i].name);
        for (size_t k = 0; k < n->proto->n_input; k++)
            ck_assert_str_eq(n->proto->input[k],
                             r.equalized->graph.nodes[i].proto->input[k]);
    }
    finish(&b, &r);
}

UNIT_TEST(results_repeat)
{
    struct builder b, b2;
    large(&b);
    large(&b2);
    struct result r = equalize(&b), r2 = equalize(&b2);
    ck_assert_uint_eq(r.equalized->files[0].size, r2.equalized->files[0].size);
    ck_assert_mem_eq(r.equalized->files[0].map, r2.equalized->files[0].map,
                     r.equalized->files[0].size);
    finish(&b, &r);
    finish(&b2, &r2);
}

UNIT_TEST(every_allocation_may_fail)
{
    struct builder b;
    large(&b);
    struct result r = equalize(&b);
    enum qdq_code code = QDQ_NO_MEMORY;
    long n = 0;
    while (code != QDQ_OK && ++n < 1000) {
        struct qdq_model *m = NULL;
        const struct qdq_equalization *rows;
        size_t n_rows;
        fail_at = n;
        code = qdqi_equalize(r.source, r.arena, &rows, &n_rows, &m, NULL);
        bool reached = fail_at == 0;
        fail_at = 0;
        ck_assert_int_eq(code, reached ? QDQ_NO_MEMORY : QDQ_OK);
        ck_assert_int_eq(m != NULL, code == QDQ_OK);
        qdq_model_free(&m);
    }
    ck_assert_int_gt(n, 5);
    finish(&b, &r);
}

/* --- channels that cannot be scaled --------------------------------------- */

static float
weight_of(const struct qdq_model *m, const char *name, size_t i)
{
    const struct qdqi_tensor *t = qdqi_map_get(m->graph.tensors, name);
    struct qdqi_constant c;
    ck_assert_int_eq(qdqi_constant_read(m, t, &c, NULL), QDQ_OK);
    return qdqi_float_at(c.bytes, i);
}

UNIT_TEST(dead_channels_stay)
{
    struct builder b;
    conv_relu_conv(&b);
    float *w1 = weight_data(&b, "w1"), *w2 = weight_data(&b, "w2");
    for (size_t i = 0; i < 6; i++) {
        w1[0 * 6 + i] = 0;        /* the output is zero for every input */
        w1[3 * 6 + i] = -FLT_MIN; /* almost zero */
    }
    for (size_t o = 0; o < 4; o++)
        /* no output uses this channel */
        w2[(o * 5 + 1) * 2] = w2[(o * 5 + 1) * 2 + 1] = 0;
    weight_data(&b, "b1")[0] = 1e6F;
    weight_data(&b, "b1")[3] = 0;
    struct result r = equalize(&b);
    ck_assert_float_eq(weight_of(r.equalized, "w1", 3 * 6), -FLT_MIN);
    ck_assert_float_eq(weight_of(r.equalized, "w1", 6), w1[6]);
    ck_assert_float_eq(weight_of(r.equalized, "w2", 2), 0);
    for (size_t i = 0; i < 5; i++)
        ck_assert(isfinite(weight_of(r.equalized, "b1", i)));
    finish(&b, &r);
}

/* A channel whose bias outweighs its weights is not scaled up for the sake of the
   weights. */
UNIT_TEST(a_bias_counts_where_it_outweighs)
{
    struct builder b;
    conv_relu_conv(&b);
    float *w1 = weight_data(&b, "w1"), *w2 = weight_data(&b, "w2");
    for (size_t i = 0; i < 6; i++)
        w1[i] = 1e-6F;
    for (size_t o = 0; o < 4; o++)
        w2[o * 10] = w2[o * 10 + 1] = 1;
    weight_data(&b, "b1")[0] = 1;
    struct result r = equalize(&b);
    ck_assert_float_eq(weight_of(r.equalized, "b1", 0), 4);
    finish(&b, &r);
}

UNIT_TEST(one_channel)
{
    struct builder b;
    begin(&b);
    SKEWED(&b, "w1", -1, 1, 3, 1);
    *weight_data(&b, "w1") = 1;
    SKEWED(&b, "w2", -1, 1, 1, 1);
    *weight_data(&b, "w2") = 64;
    builder_node(&b, "Conv", "first", "x,w1", "h");
    builder_node(&b, "Conv", "second", "h,w2", "y");
    struct result r = equalize(&b);
    ck_assert_uint_eq(r.rows[0].channels, 1);
    ck_assert_float_eq(weight_of(r.equalized, "w1", 0), 8);
    ck_assert_float_eq(weight_of(r.equalized, "w2", 0), 8);
    finish(&b, &r);
}

UNIT_SUITE("equalize")
