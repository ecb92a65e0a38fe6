/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors that are observed in ONNX Runtime's blocked layout: which they are, where their
 * Observe nodes stand, and that these see the same as in the plain layout, bit for bit.
 * Without ONNX Runtime the program says so and is skipped.
 */
#include "config.h"

#include "ground/base/host.h"
#include "builder.h"
#include "qdq/quantize.h"
#include "transform/rewrite/blocked.h"
#include "transform/rewrite/insert.h"
#include "run/session/session.h"

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 3, SIZE = 10, ELEMENTS = BATCH * 3 * SIZE * SIZE, RUNS = 2 };

static struct qdqi_runtime *runtime;

/* --- a model -------------------------------------------------------------- */

struct watched {
    struct builder b;
    struct qdq_model *model;
    struct qdq_plan *plan;
    struct qdqi_arena *arena;
    bool *wanted;
    const size_t *channels;
};

/* Adds a convolution of this kernel, and its output, which keeps the image's size. */
static void
conv(struct watched *w, const char *inputs, const char *output, const int64_t *dims)
{
    char weight[32], both[64];
    snprintf(weight, sizeof weight, "%s_w", output);
    snprintf(both, sizeof both, "%s,%s", inputs, weight);
    Onnx__TensorProto *t = builder_weight(&w->b, weight, 4, dims);
    float *data = (float *)(void *)t->raw_data.data;
    for (size_t i = 0; i < t->raw_data.len / sizeof *data; i++)
        data[i] = (float)((int)(i * 7919 % 17) - 8) / 64;
    int64_t pad = dims[2] / 2;
    builder_ints(&w->b, builder_node(&w->b, "Conv", output, both, output), "pads", 4,
                 (const int64_t[]){pad, pad, pad, pad});
}

static void
begin(struct watched *w)
{
    *w = (struct watched){0};
    builder_init(&w->b, 13);
    builder_input(&w->b, "x", QDQI_FLOAT32);
    builder_shape(&w->b, 4, (const int64_t[]){BATCH, 3, SIZE, SIZE});
}

/* Ends the model, plans it, and finds the tensors that may be in blocks. */
static void
end(struct watched *w, const char *output)
{
    struct qdq_error err = {0};
    struct qdq_spec spec;
    builder_output(&w->b, output, QDQI_FLOAT32);
    qdq_spec_init(&spec);
    w->arena = qdqi_arena_new();
    ck_assert_int_eq(builder_open(&w->b, &w->model, &err), QDQ_OK);
    ck_assert_int_eq(qdq_plan_make(NULL, w->model, &spec, &w->plan, &err), QDQ_OK);
    size_t n = w->plan->view.n_tensors;
    w->wanted = qdqi_arena_array(w->arena, n, sizeof *w->wanted);
    for (size_t i = 0; i < n; i++)
        w->wanted[i] = true;
    ck_assert_int_eq(
        qdqi_find_blocked(w->model, w->plan, w->wanted, w->arena, &w->channels, &err),
        QDQ_OK);
}

static void
release(struct watched *w)
{
    qdqi_arena_free(&w->arena);
    qdq_plan_free(&w->plan);
    qdq_model_free(&w->model);
    builder_fini(&w->b);
}

/*
 * A residual block. The runtime fuses its sum into a convolution; `b` has channels that
 * fill blocks of 8 and not of 16; `s` is read by a convolution and a Concat.
 */
static void
residual(struct watched *w)
{
    begin(w);
    conv(w, "x", "a0", (const int64_t[]){16, 3, 3, 3});
    builder_node(&w->b, "Relu", "relu_a", "a0", "a");
    conv(w, "a", "b0", (const int64_t[]){24, 16, 3, 3});
    builder_node(&w->b, "Relu", "relu_b", "b0", "b");
    conv(w, "b", "c", (const int64_t[]){16, 24, 1, 1});
    builder_node(&w->b, "Add", "sum", "c,a", "s0");
    builder_node(&w->b, "Relu", "relu_s", "s0", "s");
    conv(w, "s", "d", (const int64_t[]){32, 16, 3, 3});
    builder_int(&w->b, builder_node(&w->b, "Concat", "concat", "d,s", "e"), "axis", 1);
    builder_ints(&w->b, builder_node(&w->b, "MaxPool", "pool", "e", "f"),
                 "kernel_shape", 2, (const int64_t[]){2, 2});
    conv(w, "f", "g", (const int64_t[]){16, 48, 1, 1});
    conv(w, "g", "y", (const int64_t[]){5, 16, 1, 1});
    end(w, "y");
}

static size_t
channels(const struct watched *w, const char *tensor)
{
    for (size_t i = 0; i < w->plan->view.n_tensors; i++)
        if (strcmp(w->plan->view.tensors[i], tensor) == 0)
            return w->channels ? w->channels[i] : 0;
    ck_abort_msg("%s is not planned", tensor);
    return 0;
}

/* --- which ---------------------------------------------------------------- */

UNIT_TEST(channels_that_fill_blocks_are_found)
{
    struct watched w;
    residual(&w);
    ck_assert(qdqi_host_block() == 8 || qdqi_host_block() == 16);
    const struct {
        const char *tensor;
        size_t channels;
    } expected[] = {{"x", 0},  {"a", 16}, {"b", qdqi_host_block() == 8 ? 24 : 0},
                    {"s", 16}, {"f", 48}, {"g", 16}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        ck_assert_uint_eq(channels(&w, expected[i].tensor), expected[i].channels);
    release(&w);
}

/* Behind a Transpose the second axis is another one. */
UNIT_TEST(other_axes_are_plain)
{
    struct watched w;
    begin(&w);
    conv(&w, "x", "a", (const int64_t[]){16, 3, 3, 3});
    builder_ints(&w.b, builder_node(&w.b, "Transpose", "transpose", "a", "t"), "perm",
                 4, (const int64_t[]){0, 3, 1, 2});
    conv(&w, "t", "y", (const int64_t[]){16, SIZE, 1, 1});
    end(&w, "y");
    ck_assert_uint_eq(channels(&w, "t"), 0);
    release(&w);
}

/* The runtime makes its own Gelu of an Erf. */
UNIT_TEST(a_model_with_an_erf_is_plain)
{
    struct watched w;
    begin(&w);
    conv(&w, "x", "a", (const int64_t[]){16, 3, 3, 3});
    conv(&w, "a", "b", (const int64_t[]){16, 16, 3, 3});
    builder_node(&w.b, "Erf", "erf", "b", "y");
    end(&w, "y");
    ck_assert_ptr_null(w.channels);
    release(&w);
}

/* --- where ---------------------------------------------------------------- */

static const Onnx__ModelProto *
insert(const struct watched *w, const size_t *blocked)
{
    const Onnx__ModelProto *proto;
    struct qdq_error err = {0};
    ck_assert_int_eq(qdqi_insert_observers(w->model, w->plan, w->wanted, blocked, NULL,
                                           0, w->arena, &proto, &err),
                     QDQ_OK);
    return proto;
}

UNIT_TEST(the_observer_of_the_first_tensor_is_last)
{
    static const char *const order[] = {"g", "f", "s", "b", "a", "x"};
    enum { N = sizeof order / sizeof *order };
    struct watched w;
    residual(&w);
    const Onnx__GraphProto *g = insert(&w, w.channels)->graph;
    ck_assert_uint_eq(g->n_node, w.model->proto->graph->n_node + N);
    for (size_t i = 0; i < N; i++) {
        const Onnx__NodeProto *node = g->node[g->n_node - N + i];
        bool blocked = channels(&w, order[i]) > 0;
        ck_assert_str_eq(node->input[0], order[i]);
        ck_assert_str_eq(node->op_type, blocked ? QDQI_OBSERVE_BLOCKED : QDQI_OBSERVE);
        ck_assert_str_eq(node->domain, blocked ? QDQI_RUNTIME_DOMAIN : QDQI_DOMAIN);
        ck_assert_uint_eq(node->n_output, blocked);
    }
    release(&w);
}

/* --- what ----------------------------------------------------------------- */

static char optimized[] = "/tmp/test_blocked_XXXXXX";

/* Returns how often the runtime's optimized model names this operator. */
static size_t
count_nodes(const char *op)
{
    struct qdq_error err = {0};
    struct qdq_model *model;
    FILE *file = fopen(optimized, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(qdq_model_open(fileno(file), &model, &err), QDQ_OK);
    fclose(file);
    size_t n = 0;
    for (size_t i = 0; i < model->proto->graph->n_node; i++)
        n += strcmp(model->proto->graph->node[i]->op_type, op) == 0;
    qdq_model_free(&model);
    return n;
}

static struct qdqi_session *
open_session(const struct watched *w, struct qdqi_observers *observers)
{
    const struct qdqi_session_options options = {.observers = observers,
                                                 .optimized = optimized};
    struct qdqi_session *session;
    struct qdq_error err = {0};
    enum qdq_code code = qdqi_session_open(
        runtime, w->model, insert(w, observers->channels), &options, &session, &err);
    ck_assert_msg(code == QDQ_OK, "%s", err.text);
    return session;
}

static enum qdq_code
run(struct qdqi_session *session, struct qdqi_observers *observers, unsigned seed)
{
    static float data[ELEMENTS];
    const struct qdqi_input in = {.name = "x",
                                  .dtype = QDQI_FLOAT32,
                                  .rank = 4,
                                  .shape = (const int64_t[]){BATCH, 3, SIZE, SIZE},
                                  .data = data,
                                  .size = sizeof data};
    const struct qdqi_output *out;
    struct qdq_error err = {0};
    size_t n_out;
    for (size_t i = 0; i < ELEMENTS; i++) {
        seed = seed * 1103515245u + 12345u;
        data[i] = (float)((int)(seed >> 16 & 0xff) - 128) / 64;
    }
    ck_assert(qdqi_observers_begin(observers, BATCH));
    return qdqi_session_run(session, &in, 1, &out, &n_out, &err);
}

/* Makes observers of all kinds. */
static struct qdqi_observers
observers_of(const struct watched *w, const size_t *blocked)
{
    struct qdqi_observers o;
    ck_assert(qdqi_observers_init(&o, w->plan->view.tensors, w->plan->view.n_tensors,
                                  QDQI_NEEDS_HISTOGRAM | QDQI_NEEDS_AVERAGE, 2,
                                  w->arena));
    o.channels = blocked;
    return o;
}

/* Observes all planned activations and returns the number of reordered tensors. */
static size_t
observe(const struct watched *w, struct qdqi_observers *observers)
{
    struct qdqi_session *session = open_session(w, observers);
    for (unsigned i = 0; i < RUNS; i++)
        ck_assert_int_eq(run(session, observers, i), QDQ_OK);
    qdqi_session_close(&session);
    return count_nodes("ReorderOutput");
}

UNIT_TEST(both_layouts_show_the_same)
{
    struct watched w;
    residual(&w);
    struct qdqi_observers plain = observers_of(&w, NULL);
    struct qdqi_observers blocked = observers_of(&w, w.channels);
    size_t reordered = observe(&w, &plain), less = observe(&w, &blocked);
    if (reordered > 0) /* the runtime has blocks for this processor */
        ck_assert_uint_lt(less, reordered);
    for (size_t i = 0; i < plain.n; i++) {
        const struct qdqi_observer *p = &plain.rows[i], *b = &blocked.rows[i];
        ck_assert_int_eq(p->runs, RUNS);
        ck_assert_int_eq(b->runs, RUNS);
        ck_assert_int_eq(p->all.extremes.min, b->all.extremes.min);
        ck_assert_int_eq(p->all.extremes.max, b->all.extremes.max);
        ck_assert_mem_eq(p->all.histogram, b->all.histogram, sizeof *p->all.histogram);
        ck_assert_double_eq(p->average.min, b->average.min);
        ck_assert_double_eq(p->average.max, b->average.max);
    }
    release(&w);
}

/* Other channels than the model's may be padding. */
UNIT_TEST(unknown_channels_are_refused)
{
    struct watched w;
    residual(&w);
    size_t *wrong = qdqi_arena_array(w.arena, w.plan->view.n_tensors, sizeof *wrong);
    for (size_t i = 0; i < w.plan->view.n_tensors; i++)
        wrong[i] = w.channels[i] ? w.channels[i] - 1 : 0;
    struct qdqi_observers o = observers_of(&w, wrong);
    struct qdqi_session *session = open_session(&w, &o);
    ck_assert_int_eq(run(session, &o, 0), QDQ_RUN_FAILED);
    qdqi_session_close(&session);
    release(&w);
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
    int status =
        unit_main((struct unit_suite){.title = "engine_blocked", .fork = CK_NOFORK});
    unlink(optimized);
    qdqi_runtime_close(&runtime);
    return status;
}
