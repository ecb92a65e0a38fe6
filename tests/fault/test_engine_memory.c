/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the Nth allocation of a whole quantization, for each N until it succeeds. */
#include "config.h"

#include "failing.h"
#include "quantized.h"

static void
two_convs(struct builder *b)
{
    builder_two_convs(b, 13);
}

/* A model that uses all code that allocates for a weight computed by nodes. */
static void
computed_weight(struct builder *b)
{
    builder_computed_weight(b);
    builder_ints(b, builder_node(b, "Constant", "c", "", "c"), "value_ints", 1,
                 (const int64_t[]){4});
    builder_node(b, "Shape", "shape", "c", "s");
    builder_node(b, "ConstantOfShape", "fill", "c", "f");
}

/* A model whose Add makes the plan run the library's case `residual`, in Lua. */
static void
residual_block(struct builder *b)
{
    builder_init(b, 13);
    builder_input(b, "x", QDQI_FLOAT32);
    builder_weight(b, "w", 4, (const int64_t[]){4, 4, 1, 1});
    builder_node(b, "Conv", "conv", "x,w", "c");
    builder_node(b, "Add", "add", "c,x", "y");
    builder_output(b, "y", QDQI_FLOAT32);
}

/* A model for conversion to float16, with a Constant and with nodes that stay
   float32. It is the last one. */
static void
lowered(struct builder *b)
{
    builder_init(b, 19);
    builder_input(b, "x", QDQI_FLOAT32);
    builder_weight(b, "w", 4, (const int64_t[]){4, 4, 1, 1});
    builder_weight(b, "k", 1, (const int64_t[]){4});
    builder_attribute(b, builder_node(b, "Constant", "two", "", "t"), "value_float")
        ->f = 2;
    builder_node(b, "Conv", "conv", "x,w", "c");
    builder_node(b, "Pow", "pow", "c,t", "p");
    builder_node(b, "Add", "add", "p,c", "a");
    builder_node(b, "Mul", "mul", "a,k", "m");
    builder_node(b, "Relu", "relu", "m", "y");
    builder_output(b, "y", QDQI_FLOAT32);
    builder_output(b, "m", QDQI_FLOAT32);
}

static void (*const models[])(struct builder *b) = {two_convs, computed_weight,
                                                    residual_block, lowered};

enum { N_MODELS = sizeof models / sizeof *models };

/* Stores the weights in the default way, then as integers of a clipped range, then
   with zero points everywhere. */
UNIT_LOOP(every_allocation_may_fail, 3 * N_MODELS)
{
    struct builder b;
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    if (_i >= N_MODELS) {
        spec.weights.storage = QDQ_STORE_DQ;
        spec.weights.method = QDQ_WEIGHT_MSE;
    }
    if (_i >= 2 * N_MODELS)
        spec.weights.format = spec.activations.format = QDQ_FORMAT_UINT8;
    if (models[_i % N_MODELS] == lowered)
        spec.float_type = QDQ_FLOAT_FLOAT16;
    models[_i % N_MODELS](&b);
    int fd = builder_file(&b);
    enum qdq_code code = QDQ_NO_MEMORY;
    long n = 0;
    while (code != QDQ_OK && n < 10000) {
        n += fault_stride();
        struct qdq_model *result = NULL;
        struct qdq_error err = {0};
        fail_at = n;
        code = quantize_with(fd, &spec, &result, NULL, &err);
        bool reached = fail_at == 0;
        fail_at = 0;
        ck_assert_msg(code == (reached ? QDQ_NO_MEMORY : QDQ_OK),
                      "allocation %ld: code %d, %s", n, code, err.text);
        ck_assert_int_eq(result != NULL, code == QDQ_OK);
        qdq_model_free(&result);
    }
    ck_assert_int_gt(n, 5);
    ck_assert_int_lt(n, 10000);
    close(fd);
    builder_fini(&b);
}

UNIT_SUITE("memory")
