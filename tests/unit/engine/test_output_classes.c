/* SPDX-License-Identifier: Apache-2.0 */
/* Which outputs may list classes, by the nodes in front of them and by their shapes. */
#include "config.h"

#include "builder.h"
#include "stages/slices/classes.h"
#include "unit.h"

static const struct row {
    const char *name;
    const char *nodes[3];
    size_t rank;         /* of the input */
    bool has_same_shape; /* the output declares the input's shape */
    bool may;
} rows[] = {
    {"logits", {"Relu"}, 2, false, true},
    {"softmax", {"Softmax"}, 2, false, true},
    {"sigmoid", {"Sigmoid"}, 2, false, false},
    {"sigmoid behind moves", {"Sigmoid", "Identity", "Transpose"}, 3, false, false},
    {"sigmoid in front of a layer", {"Sigmoid", "Relu"}, 2, false, true},
    {"boxes and scores", {"Sigmoid", "Concat", "Transpose"}, 3, false, false},
    {"logits of several heads", {"Relu", "Concat"}, 3, false, true},
    {"features", {"LayerNormalization"}, 3, false, false},
    {"pooled features", {"LayerNormalization", "ReduceMean"}, 3, false, false},
    {"joined pools", {"LayerNormalization", "ReduceMax", "Concat"}, 3, false, false},
    {"pooled maps", {"Relu", "ReduceMean"}, 3, false, true},
    {"layer behind a pool",
     {"LayerNormalization", "ReduceMean", "Relu"},
     3,
     false,
     true},
    {"state", {"Relu"}, 3, true, false},
    {"shape of the input with two axes", {"Relu"}, 2, true, true},
    {"no shape", {"Relu"}, 3, false, true},
    {"map", {"AveragePool"}, 3, false, false},
    {"map behind an activation", {"MaxPool", "Relu"}, 3, false, false},
    {"turned map", {"MaxPool", "Transpose"}, 3, false, true},
    {"scores of each place", {"AveragePool", "Softmax"}, 3, false, true},
};

static struct builder b;

/* A layer normalization that is spelled out divides, and scales and shifts by vectors;
   logits that a temperature scales do not. */
static const struct spelled {
    const char *name;
    int64_t n; /* elements of the factors */
    bool may;
} spelled[] = {{"normalization", 8, false}, {"temperature", 1, true}};

UNIT_ROWS(spelled_out, spelled)
{
    const struct spelled *row = &spelled[_i];
    static const int64_t dims[] = {2, 1, 8};
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_init(&b, 17);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_shape(&b, 3, dims);
    builder_weight(&b, "w", 1, &row->n);
    builder_weight(&b, "v", 1, &row->n);
    builder_node(&b, "Div", "Div", "x,x", "a");
    builder_node(&b, "Mul", "Mul", "a,w", "b");
    builder_node(&b, "Add", "Add", "b,v", "c");
    builder_output(&b, "c", QDQI_FLOAT32);
    ck_assert_msg(builder_open(&b, &m, &err) == QDQ_OK, "%s: %s", row->name, err.text);
    ck_assert_msg(qdqi_output_may_list_classes(m, 0) == row->may, "%s", row->name);
    builder_close(&b, &m);
}

/* Embeddings are divided by their length, in the forms of several exporters; what is divided by
   a sum may be a Softmax that is spelled out. */
static const struct divided {
    const char *name, *nodes[5], *last;
    bool may;
} divided[] = {
    {"norm", {"ReduceL2"}, "Div", false},
    {"clipped norm", {"ReduceL2", "Clip", "Expand"}, "Div", false},
    {"root of squares", {"ReduceSumSquare", "Sqrt"}, "Div", false},
    {"root of a sum", {"Pow", "ReduceSum", "Sqrt"}, "Div", false},
    {"reciprocal", {"ReduceSum", "Max", "Sqrt", "Reciprocal"}, "Mul", false},
    {"power of a sum", {"Abs", "ReduceSum", "Pow"}, "Div", false},
    {"sum", {"ReduceSum"}, "Div", true},
    {"gate", {"Sqrt"}, "Mul", true},
};

UNIT_ROWS(divided_by_length, divided)
{
    static const int64_t dims[] = {2, 8};
    static const char *const tensors[] = {"x", "a", "b", "c", "d", "e"};
    const struct divided *row = &divided[_i];
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    char inputs[8];
    size_t n = 0;
    builder_init(&b, 11);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_shape(&b, 2, dims);
    for (; n < 5 && row->nodes[n]; n++)
        builder_node(&b, row->nodes[n], row->nodes[n], tensors[n], tensors[n + 1]);
    snprintf(inputs, sizeof inputs, "x,%s", tensors[n]);
    builder_node(&b, row->last, "last", inputs, "y");
    builder_output(&b, "y", QDQI_FLOAT32);
    ck_assert_msg(builder_open(&b, &m, &err) == QDQ_OK, "%s: %s", row->name, err.text);
    ck_assert_msg(qdqi_output_may_list_classes(m, 0) == row->may, "%s", row->name);
    builder_close(&b, &m);
}

UNIT_ROWS(output, rows)
{
    static const int64_t dims[] = {2, 1, 8};
    static const char *const tensors[] = {"x", "a", "b", "c"};
    const struct row *row = &rows[_i];
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    size_t n = 0;
    builder_init(&b, 17);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_shape(&b, row->rank, dims);
    for (; n < 3 && row->nodes[n]; n++)
        builder_node(&b, row->nodes[n], row->nodes[n], tensors[n], tensors[n + 1]);
    builder_output(&b, tensors[n], QDQI_FLOAT32);
    if (row->has_same_shape)
        b.outputs[0]->type->tensor_type->shape = b.inputs[0]->type->tensor_type->shape;
    ck_assert_msg(builder_open(&b, &m, &err) == QDQ_OK, "%s: %s", row->name, err.text);
    ck_assert_msg(qdqi_output_may_list_classes(m, 0) == row->may, "%s", row->name);
    builder_close(&b, &m);
}

/* Sentence encoders end with the mean of features that a mask selects, or with a layer and a Tanh on
   those of the first token. Without the normalization there may be classes. */
static const struct encoder {
    const char *name, *features;
    bool has_pooler, may;
} encoders[] = {
    {"mean of features", "LayerNormalization", false, false},
    {"mean of logits", "Relu", false, true},
    {"pooler", "LayerNormalization", true, false},
};

UNIT_ROWS(sentence_encoder, encoders)
{
    static const int64_t dims[] = {2, 4, 8}, square[] = {8, 8};
    const struct encoder *row = &encoders[_i];
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_init(&b, 17);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_shape(&b, 3, dims);
    builder_weight(&b, "w", 2, square);
    builder_node(&b, row->features, "features", "x", "f");
    if (row->has_pooler) {
        builder_node(&b, "Gather", "first", "f,i", "g");
        builder_node(&b, "Gemm", "pooler", "g,w", "p");
        builder_node(&b, "Tanh", "Tanh", "p", "y");
    } else {
        builder_node(&b, "Mul", "masked", "mask,f", "a");
        builder_node(&b, "ReduceSum", "sum", "a", "s");
        builder_node(&b, "Div", "mean", "s,n", "d");
        builder_node(&b, "Concat", "joined", "d", "y");
    }
    builder_output(&b, "y", QDQI_FLOAT32);
    builder_input(&b, "mask", QDQI_FLOAT32);
    builder_input(&b, "n", QDQI_FLOAT32);
    builder_input(&b, "i", QDQI_INT64);
    ck_assert_msg(builder_open(&b, &m, &err) == QDQ_OK, "%s: %s", row->name, err.text);
    ck_assert_msg(qdqi_output_may_list_classes(m, 0) == row->may, "%s", row->name);
    builder_close(&b, &m);
}

/* Each node joins what the one before it joins a hundred times: it is looked at in no time, and where that
   does not suffice to tell, there may be classes. */
UNIT_TEST(joined_many_times)
{
    enum { COPIES = 100, ROWS = 5 };
    static const int64_t dims[] = {2, 0, 8};
    struct qdq_model *m = NULL;
    struct qdq_error err = {0};
    builder_init(&b, 17);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_shape(&b, 3, dims);
    builder_node(&b, "LayerNormalization", "features", "x", "c0");
    for (int i = 0; i < ROWS; i++) {
        char inputs[COPIES * 3], joined[] = {'c', (char)('1' + i), '\0'};
        for (int k = 0; k < COPIES; k++)
            memcpy(inputs + k * 3, (const char[]){'c', (char)('0' + i), ','}, 3);
        inputs[sizeof inputs - 1] = '\0';
        builder_node(&b, "Concat", joined, inputs, joined);
    }
    builder_output(&b, "c5", QDQI_FLOAT32);
    ck_assert_msg(builder_open(&b, &m, &err) == QDQ_OK, "%s", err.text);
    ck_assert(qdqi_output_may_list_classes(m, 0));
    builder_close(&b, &m);
}

UNIT_SUITE("engine_output_classes")
