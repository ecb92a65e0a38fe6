/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of activations as single nodes of a session: which are fused, that they compute the same bits,
 * and that tensors in blocks are not reordered for them. Without ONNX Runtime the program says so and
 * is skipped.
 */
#include "config.h"

#include "quantized.h"
#include "run/session/fused_pairs.h"
#include "run/session/session.h"
#include "transform/rewrite/blocked.h"
#include "transform/rewrite/insert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 10, ELEMENTS = 3 * SIZE * SIZE, CONVS = 5 };

static struct qdqi_runtime *runtime;
static char optimized[] = "/tmp/test_fused_pairs_XXXXXX";

/* --- models ---------------------------------------------------------------- */

/* Adds a convolution of this kernel, and its output, which keeps the image's size. */
static void
conv(struct builder *b, const char *inputs, const char *output, const int64_t *dims)
{
    char weight[32], both[64];
    snprintf(weight, sizeof weight, "%s_w", output);
    snprintf(both, sizeof both, "%s,%s", inputs, weight);
    Onnx__TensorProto *t = builder_weight(b, weight, 4, dims);
    float *data = (float *)(void *)t->raw_data.data;
    for (size_t i = 0; i < t->raw_data.len / sizeof *data; i++)
        data[i] = (float)((int)(i * 7919 % 17) - 8) / 64;
    const int64_t pad = dims[2] / 2;
    builder_ints(b, builder_node(b, "Conv", output, both, output), "pads", 4,
                 (const int64_t[]){pad, pad, pad, pad});
}

/* A residual block, of which the runtime fuses what it can; `last` is its last node. */
static void
residual(struct builder *b, const char *last)
{
    builder_init(b, 13);
    builder_input(b, "x", QDQI_FLOAT32);
    builder_shape(b, 4, (const int64_t[]){1, 3, SIZE, SIZE});
    conv(b, "x", "a0", (const int64_t[]){16, 3, 3, 3});
    builder_node(b, "Relu", "relu_a", "a0", "a");
    conv(b, "a", "b", (const int64_t[]){16, 16, 3, 3});
    conv(b, "b", "c", (const int64_t[]){12, 16, 1, 1}); /* does not fill its blocks */
    conv(b, "c", "d", (const int64_t[]){16, 12, 1, 1});
    builder_node(b, "Add", "sum", "d,a", "s0");
    builder_node(b, "Relu", "relu_s", "s0", "s");
    conv(b, "s", "z", (const int64_t[]){8, 16, 3, 3});
    builder_node(b, last, "last", "z", "y");
    builder_output(b, "y", QDQI_FLOAT32);
}

static struct qdq_model *
quantized(struct builder *b)
{
    struct qdq_model *model;
    struct qdq_error err = {0};
    const int fd = builder_file(b);
    ck_assert_msg(quantize_fd(fd, &model, &err) == QDQ_OK, "%s", err.text);
    close(fd);
    builder_fini(b);
    return model;
}

static struct qdqi_runnable
runnable(const struct qdq_model *m)
{
    return (struct qdqi_runnable){
        .proto = m->proto, .bulks = m->bulks, .files = m->files, .n_files = m->n_files};
}

static size_t
count(const Onnx__ModelProto *model, const char *op)
{
    size_t n = 0;
    for (size_t i = 0; i < model->graph->n_node; i++)
        n += strcmp(model->graph->node[i]->op_type, op) == 0;
    return n;
}

static struct qdqi_fused_pairs
fuse(const struct qdq_model *m, struct qdqi_arena *arena)
{
    const struct qdqi_runnable model = runnable(m);
    struct qdqi_fused_pairs ret;
    struct qdq_error err = {0};
    ck_assert_int_eq(qdqi_fuse_pairs(&model, arena, &ret, &err), QDQ_OK);
    return ret;
}

/* --- which ------------------------------------------------------------------ */

UNIT_TEST(pairs_of_activations_become_one_node)
{
    struct builder b;
    struct qdqi_arena *arena = qdqi_arena_new();
    residual(&b, "Relu");
    struct qdq_model *m = quantized(&b);
    /* weights have pairs of their own, which the runtime folds */
    ck_assert_uint_eq(count(m->proto, "QuantizeLinear"), 2 * CONVS);
    const struct qdqi_fused_pairs fused = fuse(m, arena);
    ck_assert_uint_eq(fused.fakes.n, CONVS);
    ck_assert_uint_eq(count(fused.proto, "QuantizeLinear"), CONVS);
    ck_assert_uint_eq(count(fused.proto, "DequantizeLinear"), CONVS);
    ck_assert_uint_eq(count(fused.proto, QDQI_FAKE_QUANT),
                      1); /* x, which nothing makes */
    ck_assert_uint_eq(count(fused.proto, QDQI_OBSERVE_BLOCKED), CONVS - 1);
    ck_assert(fused.any_blocked);
    qdq_model_free(&m);
    qdqi_arena_free(&arena);
}

/* The runtime makes its own Gelu of an Erf, so no node bears that name. */
UNIT_TEST(a_model_with_an_erf_has_no_blocks)
{
    struct builder b;
    struct qdqi_arena *arena = qdqi_arena_new();
    residual(&b, "Erf");
    struct qdq_model *m = quantized(&b);
    const struct qdqi_fused_pairs fused = fuse(m, arena);
    ck_assert_uint_eq(count(fused.proto, QDQI_OBSERVE_BLOCKED), 0);
    ck_assert_uint_eq(count(fused.proto, QDQI_FAKE_QUANT), fused.fakes.n);
    ck_assert(!fused.any_blocked);
    qdq_model_free(&m);
    qdqi_arena_free(&arena);
}

/* Changes one node of the result, so that what it is part of is no pair any more. */
UNIT_TEST(other_pairs_stay)
{
    struct builder b;
    struct qdqi_arena *arena = qdqi_arena_new();
    residual(&b, "Relu");
    struct qdq_model *m = quantized(&b);
    Onnx__NodeProto **nodes = m->proto->graph->node, *first = NULL, *second = NULL;
    const size_t all = fuse(m, arena).fakes.n;
    for (size_t i = 0; i < m->proto->graph->n_node && !second; i++) {
        first = strcmp(nodes[i]->op_type, "QuantizeLinear") == 0 &&
                        strcmp(nodes[i]->input[0], "x") == 0
                    ? nodes[i]
                    : NULL;
        for (size_t k = 0; first && k < m->proto->graph->n_node; k++)
            if (strcmp(nodes[k]->input[0], first->output[0]) == 0)
                second = nodes[k];
    }
    ck_assert_ptr_nonnull(second);
    char *zero = second->input[2];
    second->input[2] = (char *)(uintptr_t) "";
    ck_assert_uint_eq(fuse(m, arena).fakes.n, all - 1);
    second->input[2] = zero;
    ck_assert_uint_eq(fuse(m, arena).fakes.n, all);
    char *scale = first->input[1];
    first->input[1] = (char *)(uintptr_t) "x"; /* of no initializer */
    ck_assert_uint_eq(fuse(m, arena).fakes.n, all - 1);
    first->input[1] = scale;
    /* integers that another one reads are still made */
    char *output = m->proto->graph->output[0]->name;
    m->proto->graph->output[0]->name = first->output[0];
    const struct qdqi_fused_pairs fused = fuse(m, arena);
    ck_assert_uint_eq(fused.fakes.n, all);
    ck_assert_uint_eq(count(fused.proto, "QuantizeLinear"), CONVS + 1);
    m->proto->graph->output[0]->name = output;
    qdq_model_free(&m);
    qdqi_arena_free(&arena);
}

/* --- what -------------------------------------------------------------------- */

/* Runs the model and copies its output. Returns the number of its elements. */
static size_t
run(const struct qdq_model *m, const struct qdqi_session_options *options, float *ret)
{
    static float data[ELEMENTS];
    const struct qdqi_input in = {.name = "x",
                                  .dtype = QDQI_FLOAT32,
                                  .rank = 4,
                                  .shape = (const int64_t[]){1, 3, SIZE, SIZE},
                                  .data = data,
                                  .size = sizeof data};
    const struct qdqi_runnable model = runnable(m);
    const struct qdqi_output *out;
    struct qdqi_session *session;
    struct qdq_error err = {0};
    unsigned seed = 1;
    size_t n_out;
    for (size_t i = 0; i < ELEMENTS; i++) {
        seed = seed * 1103515245u + 12345u;
        data[i] = (float)((int)(seed >> 16 & 0xff) - 100) / 64;
    }
    enum qdq_code code = qdqi_session_load(runtime, &model, options, &session, &err);
    ck_assert_msg(code == QDQ_OK, "%s", err.text);
    code = qdqi_session_run(session, &in, 1, &out, &n_out, &err);
    ck_assert_msg(code == QDQ_OK, "%s", err.text);
    ck_assert_uint_eq(n_out, 1);
    const size_t n = out->n;
    memcpy(ret, out->data, n * sizeof *ret);
    qdqi_session_close(&session);
    return n;
}

static size_t
count_reordered(void)
{
    struct qdq_error err = {0};
    struct qdq_model *model;
    FILE *file = fopen(optimized, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(qdq_model_open(fileno(file), &model, &err), QDQ_OK);
    fclose(file);
    const size_t n = count(model->proto, "ReorderOutput");
    qdq_model_free(&model);
    return n;
}

static void
check_same(const char *last, bool basic)
{
    static float pairs[8 * SIZE * SIZE], fused[8 * SIZE * SIZE];
    struct builder b;
    residual(&b, last);
    struct qdq_model *m = quantized(&b);
    struct qdqi_session_options options = {.basic = basic};
    const size_t n = run(m, &options, pairs);
    ck_assert_uint_eq(n, 8 * SIZE * SIZE);
    options.fuses_pairs = true;
    ck_assert_uint_eq(run(m, &options, fused), n);
    double signal = 0, noise = 0;
    for (size_t i = 0; i < n; i++) {
        signal += (double)pairs[i] * pairs[i];
        noise += pow((double)pairs[i] - fused[i], 2);
    }
    ck_assert_double_gt(signal, 1);
    /* the runtime's fusions add in another order, and few elements are then rounded to other integers */
    if (basic)
        ck_assert_mem_eq(pairs, fused, n * sizeof *pairs);
    else
        ck_assert_double_lt(noise, 1e-5 * signal);
    qdq_model_free(&m);
}

UNIT_TEST(bits_are_the_same)
{
    check_same("Relu", true);
    check_same("Erf", true);
}

UNIT_TEST(optimized_models_compute_the_same)
{
    check_same("Relu", false);
    check_same("Erf", false);
}

UNIT_TEST(tensors_stay_in_blocks)
{
    struct builder b;
    residual(&b, "Relu");
    struct qdq_model *m = quantized(&b);
    const struct qdqi_session_options options = {.fuses_pairs = true,
                                                 .optimized = optimized};
    const struct qdqi_runnable model = runnable(m);
    struct qdqi_session *session;
    struct qdq_error err = {0};
    ck_assert_int_eq(qdqi_session_load(runtime, &model, &options, &session, &err),
                     QDQ_OK);
    qdqi_session_close(&session);
    /* the last one alone, if the runtime has blocks for this processor */
    ck_assert_uint_le(count_reordered(), 1);
    qdq_model_free(&m);
}

int
main(void)
{
    struct qdq_error err = {0};
    if (qdqi_runtime_open(QDQ_ORT_LIBRARY, 2, &runtime, &err)) {
        printf("1..0 # SKIP %s\n", err.text);
        return 0;
    }
    int fd = mkstemp(optimized);
    ck_assert_int_ge(fd, 0);
    close(fd);
    int status = unit_main(
        (struct unit_suite){.title = "engine_fused_pairs", .fork = CK_NOFORK});
    unlink(optimized);
    qdqi_runtime_close(&runtime);
    return status;
}
