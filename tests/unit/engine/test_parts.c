/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of what-ifs in parts: whichever layers are switched, and whatever results are
 * kept, the parts compute the same as the whole model. Without ONNX Runtime the program
 * says so and is skipped.
 */
#include "config.h"

#include "builder.h"
#include "plan/placement/plan.h"
#include "qdq/quantize.h"
#include "transform/rewrite/insert.h"
#include "stages/whatif/parts.h"

#include <fcntl.h>
#include <math.h>

enum { MOST = 12, SETS = 2, STEPS = 60 };

static struct qdqi_runtime *runtime;
static const float scale = 0.0625f;

/* --- a network ------------------------------------------------------------ */

struct net {
    struct qdq_model *model;
    struct qdq_plan *plan;
    struct qdqi_arena *arena;
    const Onnx__ModelProto *proto;
    struct qdqi_fakes fakes;
    float *scales; /* one for each slot */
    struct qdqi_parts whole, parts;
    struct qdqi_memo memos[SETS];
    struct qdqi_input *inputs[SETS];
    uint64_t random;
};

static uint64_t
draw(struct net *n)
{
    n->random ^= n->random << 13;
    n->random ^= n->random >> 7;
    n->random ^= n->random << 17;
    return n->random;
}

static void
make_fakes(struct net *n)
{
    struct qdqi_fake_place *places;
    struct qdq_error err = {0};
    ck_assert_int_eq(qdqi_insert_fakes(n->model, n->plan, &(struct qdqi_scales){0},
                                       n->arena, &places, &n->fakes.n, &n->proto, &err),
                     QDQ_OK);
    n->fakes.rows = qdqi_arena_array(n->arena, n->fakes.n, sizeof *n->fakes.rows);
    n->scales = qdqi_arena_array(n->arena, n->fakes.n, sizeof *n->scales);
    for (size_t i = 0; i < n->fakes.n; i++) {
        n->scales[i] = scale;
        n->fakes.rows[i] = (struct qdqi_fake){
            .format = QDQI_TO_INT8, .scales = &n->scales[i], .channels = 1, .inner = 1};
    }
}

/* Makes inputs whose unknown sizes are 1. */
static void
make_inputs(struct net *n, struct qdqi_input *inputs)
{
    const struct qdq_model_info *info = qdq_model_info(n->model);
    for (size_t i = 0; i < info->n_inputs; i++) {
        const struct qdq_value *v = &info->inputs[i];
        int64_t *shape = qdqi_arena_array(n->arena, v->rank, sizeof *shape);
        size_t count = 1;
        for (size_t k = 0; k < v->rank; k++) {
            shape[k] = v->dims[k].value > 0 ? v->dims[k].value : 1;
            count *= (size_t)shape[k];
        }
        float *data = qdqi_arena_array(n->arena, count, sizeof *data);
        for (size_t k = 0; k < count; k++)
            data[k] = (float)(draw(n) % 2001) / 1000 - 1;
        inputs[i] = (struct qdqi_input){v->name, QDQI_FLOAT32, v->rank,
                                        shape,   data,         count * sizeof *data};
    }
}

static void
open_parts(struct net *n, size_t most, struct qdqi_parts *parts)
{
    const struct qdqi_session_options options = {.fakes = &n->fakes};
    struct qdq_error err = {0};
    enum qdq_code code =
        qdqi_parts_split(n->model, n->proto, most, &n->fakes, n->arena, parts, &err);
    if (!code)
        code = qdqi_parts_open(parts, runtime, &options, &err);
    ck_assert_msg(!code, "%s", err.text);
}

static void
open_net(struct net *n, int fd)
{
    struct qdq_error err = {0};
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    n->random = 88172645463325252;
    n->arena = qdqi_arena_new();
    ck_assert_msg(!qdq_model_open(fd, &n->model, &err), "%s", err.text);
    close(fd);
    ck_assert_msg(!qdq_plan_make(NULL, n->model, &spec, &n->plan, &err), "%s",
                  err.text);
    make_fakes(n);
    open_parts(n, 1, &n->whole);
    open_parts(n, MOST, &n->parts);
    ck_assert_uint_eq(n->whole.split.n_parts, 1);
    for (size_t i = 0; i < SETS; i++) {
        n->inputs[i] = qdqi_arena_array(n->arena, qdq_model_info(n->model)->n_inputs,
                                        sizeof **n->inputs);
        make_inputs(n, n->inputs[i]);
    }
}

static void
close_net(struct net *n)
{
    for (size_t i = 0; i < SETS; i++)
        qdqi_memo_clear(&n->parts, &n->memos[i]);
    ck_assert_uint_eq(n->parts.kept, 0);
    qdqi_parts_close(&n->parts);
    qdqi_parts_close(&n->whole);
    qdqi_arena_free(&n->arena);
    qdq_plan_free(&n->plan);
    qdq_model_free(&n->model);
}

static void
flip(struct net *n, size_t slot)
{
    n->fakes.rows[slot].on = !n->fakes.rows[slot].on;
    qdqi_parts_switched(&n->parts, slot);
}

static void
rescale(struct net *n, size_t slot)
{
    n->scales[slot] = n->scales[slot] > scale ? scale : 2 * scale;
    qdqi_parts_rescaled(&n->parts, slot, n->fakes.rows[slot].on);
}

static const struct qdqi_output *
run(struct net *n, struct qdqi_parts *parts, struct qdqi_memo *memo, size_t set,
    bool settled)
{
    const struct qdqi_output *ret;
    struct qdq_error err = {0};
    size_t count;
    ck_assert_msg(
        !qdqi_parts_run(parts, memo, settled, n->inputs[set], &ret, &count, &err), "%s",
        err.text);
    ck_assert_uint_eq(count, qdq_model_info(n->model)->n_outputs);
    return ret;
}

/* Expects the same bits with and without kept results. */
static void
assert_equal_run(struct net *n, size_t set)
{
    size_t count = qdq_model_info(n->model)->n_outputs;
    const struct qdqi_output *anew = run(n, &n->parts, NULL, set, false);
    struct qdqi_output *a = qdqi_arena_array(n->arena, count, sizeof *a);
    for (size_t i = 0; i < count; i++) {
        size_t size = anew[i].n * qdqi_dtype_size((int)anew[i].dtype);
        void *copy = qdqi_arena_alloc(n->arena, size);
        memcpy(copy, anew[i].data, size);
        a[i] = anew[i];
        a[i].data = copy;
    }
    const struct qdqi_output *b = run(n, &n->parts, &n->memos[set], set, draw(n) % 2);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(b[i].dtype, a[i].dtype);
        ck_assert_uint_eq(b[i].n, a[i].n);
        ck_assert_uint_eq(b[i].rank, a[i].rank);
        ck_assert_mem_eq(b[i].data, a[i].data,
                         a[i].n * qdqi_dtype_size((int)a[i].dtype));
    }
}

/*
 * Expects outputs that differ from the whole model's by at most `noise`. ONNX Runtime
 * fuses less in parts and so rounds elsewhere, which may move quantized numbers by a
 * step.
 */
static void
assert_like_the_whole(struct net *n, size_t set, double noise)
{
    const struct qdqi_output *a = run(n, &n->whole, NULL, set, false);
    const struct qdqi_output *b = run(n, &n->parts, &n->memos[set], set, draw(n) % 2);
    for (size_t i = 0; i < qdq_model_info(n->model)->n_outputs; i++) {
        const float *x = a[i].data, *y = b[i].data;
        double signal = 0, error = 0;
        ck_assert_int_eq(b[i].dtype, QDQI_FLOAT32);
        ck_assert_uint_eq(b[i].n, a[i].n);
        ck_assert_uint_eq(b[i].rank, a[i].rank);
        ck_assert_mem_eq(b[i].shape, a[i].shape, a[i].rank * sizeof *a[i].shape);
        for (size_t k = 0; k < a[i].n; k++) {
            signal += (double)x[k] * x[k];
            error += ((double)x[k] - y[k]) * ((double)x[k] - y[k]);
        }
        ck_assert_msg(error <= noise * signal, "output %zu: %g of %g", i, error,
                      signal);
    }
}

/* --- networks ------------------------------------------------------------- */

static Onnx__GraphProto *
branch(struct builder *b, const char *op, const char *captured, const char *output)
{
    Onnx__GraphProto *g = qdqi_arena_alloc(b->arena, sizeof *g);
    onnx__graph_proto__init(g);
    g->name = qdqi_arena_strdup(b->arena, output);
    g->node = qdqi_arena_array(b->arena, 1, sizeof *g->node);
    g->output = qdqi_arena_array(b->arena, 1, sizeof *g->output);
    g->node[0] = builder_node(b, op, output, captured, output);
    b->graph.n_node--; /* the node belongs to the branch */
    g->output[0] = builder_value(b, output, QDQI_FLOAT32);
    g->n_node = g->n_output = 1;
    return g;
}

/*
 * Builds six convolutions in a row. The second's output is also an output of the model,
 * and a branch behind the fourth captures it. A Constant is used before and behind
 * that. One input is used only at the end and is itself an output. Two more convolutions at
 * the end are dead.
 */
static int
build_odd(struct builder *b)
{
    builder_init(b, 13);
    builder_input(b, "x", QDQI_FLOAT32);
    builder_shape(b, 4, (const int64_t[]){1, 3, 4, 4});
    builder_input(b, "late", QDQI_FLOAT32);
    builder_shape(b, 4, (const int64_t[]){1, 1, 4, 1});
    builder_weight(b, "w", 4, (const int64_t[]){3, 3, 1, 1});
    Onnx__TensorProto *half = builder_weight(b, "half", 0, NULL);
    b->graph.n_initializer--;
    half->name = NULL;
    Onnx__NodeProto *constant = builder_node(b, "Constant", "half", "", "k");
    constant->n_input = 0;
    builder_tensor(b, constant, "value", half);
    builder_node(b, "Mul", "mul", "x,k", "m");
    builder_node(b, "Conv", "c1", "m,w", "a");
    builder_node(b, "Conv", "c2", "a,w", "early");
    builder_node(b, "Tanh", "t2", "early", "u");
    builder_node(b, "Conv", "c3", "u,w", "c");
    builder_node(b, "Tanh", "t3", "c", "v");
    builder_node(b, "Conv", "c4", "v,w", "d");
    builder_node(b, "ReduceSum", "sum", "d", "s");
    builder_int(b, b->nodes[b->graph.n_node - 1], "keepdims", 0);
    builder_node(b, "Less", "less", "s,k", "which");
    Onnx__NodeProto *branching = builder_node(b, "If", "if", "which", "chosen");
    builder_graph(b, branching, "then_branch", branch(b, "Neg", "early", "n"));
    builder_graph(b, branching, "else_branch", branch(b, "Abs", "u", "p"));
    builder_node(b, "Tanh", "t4", "d", "e");
    builder_node(b, "Conv", "c5", "e,w", "f");
    builder_node(b, "Conv", "c6", "f,w", "g");
    builder_node(b, "Add", "add", "g,chosen", "h");
    builder_node(b, "Mul", "scale", "h,late", "y");
    builder_node(b, "Conv", "c7", "y,w", "dead");
    builder_node(b, "Conv", "c8", "dead,w", "dead2");
    builder_output(b, "y", QDQI_FLOAT32);
    builder_output(b, "early", QDQI_FLOAT32);
    builder_output(b, "late", QDQI_FLOAT32);
    return builder_file(b);
}

static const char *const files[] = {
    "tests/data/glyph_resnet.onnx",
    "tests/data/glyph_mobilenet.onnx",
    "tests/data/glyph_vit.onnx",
    "tests/data/glyph_se.onnx",
};

enum { N_FILES = sizeof files / sizeof *files };

/* The last number stands for the network of build_odd(). */
static void
open_numbered(struct net *n, int i)
{
    struct builder b = {0};
    open_net(n, i < N_FILES ? open(unit_path(files[i]), O_RDONLY) : build_odd(&b));
    if (i >= N_FILES)
        builder_fini(&b);
    ck_assert_uint_gt(n->parts.split.n_parts, 2);
}

/* --- tests ---------------------------------------------------------------- */

UNIT_LOOP(parts_compute_what_the_whole_computes, N_FILES + 1)
{
    struct net n = {0};
    open_numbered(&n, _i);
    for (size_t set = 0; set < SETS; set++)
        assert_like_the_whole(&n, set, 1e-9);
    for (int step = 0; step < STEPS; step++) {
        for (size_t k = draw(&n) % 3; k > 0; k--)
            (draw(&n) % 4 ? flip : rescale)(&n, draw(&n) % n.fakes.n);
        size_t set = draw(&n) % SETS;
        assert_equal_run(&n, set);
        assert_like_the_whole(&n, set, 0.01);
        if (step == STEPS / 4) { /* kept results outlive the sessions */
            const struct qdqi_session_options options = {.fakes = &n.fakes};
            struct qdq_error err = {0};
            qdqi_parts_close(&n.parts);
            ck_assert(!qdqi_parts_open(&n.parts, runtime, &options, &err));
        }
        if (step == STEPS / 2) { /* from here on fewer results are kept, later none */
            qdqi_parts_expect(&n.parts, &n.memos[0], 256 * 1024);
            ck_assert(n.parts.forgets[0] || n.parts.forgets[1]);
        }
        if (step == STEPS * 3 / 4)
            qdqi_parts_expect(&n.parts, &n.memos[1], SIZE_MAX);
    }
    close_net(&n);
}

/* Expects that the part `first` and all parts behind it were run, and none before
   it. */
static void
assert_run_from(struct net *n, size_t first, bool settled)
{
    run(n, &n->parts, &n->memos[0], 0, settled);
    for (size_t p = 0; p + 1 < n->parts.split.n_parts; p++)
        ck_assert_int_eq(n->parts.outputs[p] == n->memos[0].rows[p].values, p < first);
}

UNIT_LOOP(parts_in_front_of_a_change_are_not_run_again, N_FILES + 1)
{
    struct net n = {0};
    open_numbered(&n, _i);
    size_t last = n.parts.split.n_parts - 1;
    assert_run_from(&n, 0, true);
    for (size_t slot = 0; slot < n.fakes.n; slot++) {
        size_t changed = n.parts.split.part_of_slot[slot];
        ck_assert_uint_le(changed, last);
        flip(&n, slot);
        assert_run_from(&n, changed, false);
        flip(&n, slot); /* the results of the first state are still kept */
        assert_run_from(&n, last, false);
        rescale(&n, slot);
        assert_run_from(&n, last, false);
    }
    close_net(&n);
}

UNIT_LOOP(results_that_repeat_are_kept, N_FILES + 1)
{
    struct net n = {0};
    open_numbered(&n, _i);
    size_t last = n.parts.split.n_parts - 1;
    assert_run_from(&n, 0, true);
    flip(&n, 0);
    assert_run_from(&n, 0, false);
    assert_run_from(&n, 0, false);
    assert_run_from(&n, last, false);
    rescale(&n, 0);
    assert_run_from(&n, 0, true);
    assert_run_from(&n, last, false);
    close_net(&n);
}

UNIT_LOOP(parts_have_about_as_many_places_each, N_FILES + 1)
{
    struct net n = {0};
    size_t in_part[MOST] = {0};
    open_numbered(&n, _i);
    for (size_t slot = 0; slot < n.fakes.n; slot++)
        in_part[n.parts.split.part_of_slot[slot]]++;
    for (size_t p = 0; p < n.parts.split.n_parts; p++) {
        ck_assert_uint_gt(in_part[p], 0);
        ck_assert_uint_le(in_part[p], 2 * n.fakes.n / n.parts.split.n_parts + 1);
    }
    close_net(&n);
}

int
main(void)
{
    struct qdq_error err = {0};
    if (qdqi_runtime_open(QDQ_ORT_LIBRARY, 1, &runtime, &err)) {
        printf("1..0 # SKIP %s\n", err.text);
        return 0;
    }
    int status = unit_main((struct unit_suite){
        .title = "engine_parts", .timeout = 120, .fork = CK_NOFORK});
    qdqi_runtime_close(&runtime);
    return status;
}
