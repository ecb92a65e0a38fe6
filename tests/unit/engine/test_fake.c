/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FakeQuant: where it is inserted, and that it computes the same bits as ONNX Runtime's
 * own QuantizeLinear and DequantizeLinear. Without ONNX Runtime the program says so and
 * is skipped.
 */
#include "config.h"

#include "builder.h"
#include "numbers/arithmetic/fake.h"
#include "graph/weights/integers.h"
#include "plan/placement/plan.h"
#include "qdq/quantize.h"
#include "transform/rewrite/insert.h"
#include "run/session/session.h"

#include <float.h>
#include <math.h>

static struct qdqi_runtime *runtime;

/* --- places --------------------------------------------------------------- */

struct faked {
    struct builder b;
    struct qdq_model *model;
    struct qdq_plan *plan;
    struct qdqi_arena *arena;
    struct qdqi_fake_place *places;
    size_t n;
    const Onnx__ModelProto *proto;
};

/* Inserts into a built model, which is borrowed from then on. */
static void
insert(struct faked *f, const char *add_class)
{
    struct qdq_error err = {0};
    struct qdq_spec spec;
    const struct qdq_layer_entry entry = {.by = QDQ_BY_CLASS,
                                          .names = &add_class,
                                          .n_names = 1,
                                          .quantize_input = true,
                                          .quantize_weight = true};
    qdq_spec_init(&spec);
    spec.layers = &entry;
    spec.n_layers = add_class != NULL;
    int fd = builder_file(&f->b);
    ck_assert_int_eq(qdq_model_open(fd, &f->model, &err), QDQ_OK);
    close(fd);
    ck_assert_int_eq(qdq_plan_make(NULL, f->model, &spec, &f->plan, &err), QDQ_OK);
    f->arena = qdqi_arena_new();
    ck_assert_int_eq(qdqi_insert_fakes(f->model, f->plan, &(struct qdqi_scales){0},
                                       f->arena, &f->places, &f->n, &f->proto, &err),
                     QDQ_OK);
}

static void
release(struct faked *f)
{
    qdqi_arena_free(&f->arena);
    qdq_plan_free(&f->plan);
    qdq_model_free(&f->model);
    builder_fini(&f->b);
}

static const Onnx__NodeProto *
node_of(const struct faked *f, const char *name)
{
    for (size_t i = 0; i < f->proto->graph->n_node; i++)
        if (strcmp(f->proto->graph->node[i]->name, name) == 0)
            return f->proto->graph->node[i];
    ck_abort_msg("there is no node %s", name);
    return NULL;
}

/* Expects that the node before input i of a layer is a FakeQuant of `tensor` with
   that slot. */
static void
assert_fake(const struct faked *f, const char *layer, size_t i, const char *tensor,
            int64_t slot)
{
    const char *made = node_of(f, layer)->input[i];
    for (size_t k = 0; k < f->proto->graph->n_node; k++) {
        const Onnx__NodeProto *node = f->proto->graph->node[k];
        if (node->n_output != 1 || strcmp(node->output[0], made) != 0)
            continue;
        ck_assert_str_eq(node->op_type, "FakeQuant");
        ck_assert_str_eq(node->domain, "qdqd");
        ck_assert_str_eq(node->input[0], tensor);
        ck_assert_int_eq(qdqi_node_int(node, "slot", -1), slot);
        return;
    }
    ck_abort_msg("nothing makes %s", made);
}

START_TEST(every_edge_and_weight_has_its_own)
{
    struct faked f = {0};
    builder_two_convs(&f.b, 13);
    insert(&f, NULL);
    static const struct qdqi_fake_place places[] = {
        {0, QDQI_FAKE_ACTIVATION, 0, 0, 0},
        {0, QDQI_FAKE_WEIGHT, 0, 0, 1},
        {2, QDQI_FAKE_ACTIVATION, 1, 2, 0},
        {2, QDQI_FAKE_WEIGHT, 1, 2, 1},
    };
    ck_assert_uint_eq(f.n, 4);
    for (size_t i = 0; i < f.n; i++) {
        ck_assert_uint_eq(f.places[i].layer, places[i].layer);
        ck_assert_int_eq(f.places[i].kind, places[i].kind);
        ck_assert_uint_eq(f.places[i].planned, places[i].planned);
        ck_assert_uint_eq(f.places[i].node, places[i].node);
        ck_assert_int_eq(f.places[i].input, places[i].input);
    }
    ck_assert_uint_eq(f.proto->graph->n_node, 3 + 4);
    assert_fake(&f, "conv1", 0, "x", 0);
    assert_fake(&f, "conv1", 1, "w", 1);
    ck_assert_str_eq(node_of(&f, "conv1")->input[2], "bias");
    assert_fake(&f, "conv2", 0, "r", 2);
    assert_fake(&f, "conv2", 1, "w2", 3);
    release(&f);
}
END_TEST

/* x -> two convolutions with the same weight -> their sum: each layer can be
   switched alone, also for tensors that both use. */
START_TEST(a_shared_tensor_has_one_for_each_layer)
{
    struct faked f = {0};
    builder_init(&f.b, 13);
    builder_input(&f.b, "x", QDQI_FLOAT32);
    builder_weight(&f.b, "w", 4, (const int64_t[]){4, 3, 1, 1});
    builder_node(&f.b, "Conv", "one", "x,w", "a");
    builder_node(&f.b, "Conv", "two", "x,w", "b");
    builder_node(&f.b, "Add", "sum", "a,b", "c");
    builder_node(&f.b, "Add", "twice", "c,c", "y");
    builder_output(&f.b, "y", QDQI_FLOAT32);
    insert(&f, "Add");
    ck_assert_uint_eq(f.n, 2 + 2 + 2 + 2);
    assert_fake(&f, "one", 0, "x", 0);
    assert_fake(&f, "one", 1, "w", 1);
    assert_fake(&f, "two", 0, "x", 2);
    assert_fake(&f, "two", 1, "w", 3);
    assert_fake(&f, "sum", 0, "a", 4);
    assert_fake(&f, "sum", 1, "b", 5);
    assert_fake(&f, "twice", 0, "c", 6);
    assert_fake(&f, "twice", 1, "c", 7);
    ck_assert_uint_eq(f.places[0].planned, f.places[2].planned);
    ck_assert_uint_eq(f.places[1].planned, f.places[3].planned);
    ck_assert_uint_eq(f.places[6].planned, f.places[7].planned);
    ck_assert_uint_ne(f.places[4].planned, f.places[5].planned);
    release(&f);
}
END_TEST

/* --- the arithmetic ------------------------------------------------------- */

enum { MOST = 300000 };
static float data[MOST], expected[MOST];

/* Makes numbers of all magnitudes, with ties, zeros of both signs, NaN and
   infinities. */
static void
make_data(size_t n, float scale)
{
    static const float odd[] = {
        0,       -0.0f, NAN,    INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, FLT_MIN,
        -1e-45f, 127,   127.5f, 126.5f,   -128,      -128.5f, -128.51f, -127.5f};
    uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        int32_t k = (int32_t)state >> 22; /* -512 … 511 */
        if (i % 97 < sizeof odd / sizeof *odd)
            data[i] = odd[i % 97] * (i % 2 ? 1 : scale);
        else if (i % 3)
            data[i] = (float)((double)k / 2 * (double)scale); /* ties */
        else
            data[i] = (float)((double)(int32_t)state / 1e7 * (double)scale);
    }
}

/* x -> (FakeQuant, QuantizeLinear and DequantizeLinear) -> f, y */
struct pair_model {
    struct builder b;
    Onnx__OperatorSetIdProto domain;
    Onnx__OperatorSetIdProto *opsets[2];
};

static void
build_pair(struct pair_model *m, const struct qdqi_params *p, bool constant,
           size_t rank, const int64_t *shape)
{
    struct builder *b = &m->b;
    size_t n_scales = p->n;
    int64_t axis = p->axis;
    builder_init(b, 21);
    if (constant) {
        Onnx__TensorProto *t = builder_weight(b, "x", rank, shape);
        memcpy(t->raw_data.data, data, t->raw_data.len);
        builder_input(b, "unused", QDQI_FLOAT32);
    } else {
        builder_input(b, "x", QDQI_FLOAT32);
    }
    Onnx__TensorProto *scale = builder_weight(b, "s", 1, &(int64_t){(int64_t)n_scales});
    memcpy(scale->raw_data.data, p->scales, scale->raw_data.len);
    Onnx__TensorProto *zero = qdqi_constant_new(
        b->arena, qdqi_format_row((int)p->format)->dtype, 1, (int64_t)n_scales);
    zero->name = qdqi_arena_strdup(b->arena, "z");
    zero->has_raw_data = 1;
    zero->raw_data.len = (size_t)qdqi_integers_size(p->format, n_scales);
    zero->raw_data.data = qdqi_arena_alloc(b->arena, zero->raw_data.len);
    if (p->zero_points)
        qdqi_store_integers(p->format, p->zero_points, n_scales, zero->raw_data.data);
    if (p->block > 0) {
        scale->n_dims = zero->n_dims = rank;
        scale->dims = zero->dims = qdqi_arena_array(b->arena, rank, sizeof *shape);
        for (size_t i = 0; i < rank; i++)
            scale->dims[i] =
                (int64_t)i == axis ? (shape[i] + p->block - 1) / p->block : shape[i];
    }
    if (axis < 0)
        scale->n_dims = zero->n_dims = 0;
    b->weights[b->graph.n_initializer++] = zero;
    Onnx__NodeProto *fake = builder_node(b, QDQI_FAKE_QUANT, "fake", "x", "f");
    fake->domain = qdqi_arena_strdup(b->arena, QDQI_DOMAIN);
    Onnx__AttributeProto *slot = builder_attribute(b, fake, "slot");
    slot->has_type = slot->has_i = 1;
    slot->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    Onnx__NodeProto *q = builder_node(b, "QuantizeLinear", "q", "x,s,z", "i");
    Onnx__NodeProto *dq = builder_node(b, "DequantizeLinear", "dq", "i,s,z", "y");
    for (int i = 0; axis >= 0 && i < 2; i++) {
        Onnx__AttributeProto *a = builder_attribute(b, i ? dq : q, "axis");
        a->has_type = a->has_i = 1;
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        a->i = axis;
    }
    for (int i = 0; p->block > 0 && i < 2; i++) {
        Onnx__AttributeProto *a = builder_attribute(b, i ? dq : q, "block_size");
        a->has_type = a->has_i = 1;
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        a->i = p->block;
    }
    builder_output(b, "f", QDQI_FLOAT32);
    builder_output(b, "y", QDQI_FLOAT32);
    onnx__operator_set_id_proto__init(&m->domain);
    m->domain.domain = qdqi_arena_strdup(b->arena, QDQI_DOMAIN);
    m->domain.has_version = 1;
    m->domain.version = 1;
    m->opsets[0] = &b->opset;
    m->opsets[1] = &m->domain;
    b->model.opset_import = m->opsets;
    b->model.n_opset_import = 2;
}

struct opened {
    struct qdq_model *model;
    struct qdqi_session *session;
};

static struct opened
open_pair(struct pair_model *m, struct qdqi_fakes *fakes)
{
    const struct qdqi_session_options options = {.fakes = fakes};
    struct qdq_error err = {0};
    struct opened o = {0};
    int fd = builder_file(&m->b);
    enum qdq_code code = qdq_model_open(fd, &o.model, &err);
    close(fd);
    if (!code)
        code = qdqi_session_open(runtime, o.model, o.model->proto, &options, &o.session,
                                 &err);
    ck_assert_msg(code == QDQ_OK, "%s", err.text);
    return o;
}

static void
close_pair(struct pair_model *m, struct opened *o)
{
    qdqi_session_close(&o->session);
    qdq_model_free(&o->model);
    builder_fini(&m->b);
}

static const struct qdqi_output *
run_pair(struct opened *o, const char *input, const float *x, size_t rank,
         const int64_t *shape, size_t n)
{
    const struct qdqi_input in = {.name = input,
                                  .dtype = QDQI_FLOAT32,
                                  .rank = rank,
                                  .shape = shape,
                                  .data = x,
                                  .size = n * sizeof *x};
    const struct qdqi_output *out;
    struct qdq_error err = {0};
    size_t n_out;
    enum qdq_code code = qdqi_session_run(o->session, &in, 1, &out, &n_out, &err);
    ck_assert_msg(code == QDQ_OK, "%s", err.text);
    ck_assert_uint_eq(n_out, 2);
    return out;
}

/* Shapes, and the axis with a scale for each index; -1: one scale. */
static const struct {
    size_t rank;
    int64_t shape[5];
    int axis;
} shapes[] = {
    {1, {1}, -1},
    {1, {1000}, -1},
    {2, {500, 600}, -1}, /* large enough to be split among threads */
    {1, {64}, 0},
    {2, {7, 33}, 0},
    {2, {7, 33}, 1},
    {2, {300, 1000}, 0},
    {2, {300, 1000}, 1},
    {4, {16, 3, 3, 3}, 0},
    {4, {16, 3, 3, 3}, 1},
    {4, {64, 1, 3, 3}, 0},
    {4, {5, 6, 7, 8}, 2},
    {4, {5, 6, 7, 8}, 3},
    {5, {2, 70, 5, 40, 9}, 1}, /* rows that end in the middle of a thread's part */
    {5, {2, 3, 4, 5, 2000}, 4},
};

static struct qdqi_fake
fake_for(int row, const float *scales, size_t *ret_n, size_t *ret_channels)
{
    struct qdqi_fake fake = {.on = true,
                             .format = QDQI_TO_INT8,
                             .scales = scales,
                             .channels = 1,
                             .inner = 1};
    *ret_n = 1;
    for (size_t i = 0; i < shapes[row].rank; i++) {
        size_t size = (size_t)shapes[row].shape[i];
        *ret_n *= size;
        if ((int)i == shapes[row].axis)
            fake.channels = size;
        else if (shapes[row].axis >= 0 && (int)i > shapes[row].axis)
            fake.inner *= size;
    }
    *ret_channels = fake.channels;
    return fake;
}

static float scales[MOST];

static void
make_scales(size_t n)
{
    static const float some[] = {0.0123f, 1, 3e-5f, 0.5f, FLT_MIN, 1e30f, 0.1f};
    for (size_t i = 0; i < n; i++)
        scales[i] = some[i % 7] * (i < 7 ? 1 : 1 + (float)i / 1000);
}

static int32_t zero_points[MOST];

/* Makes zero points across the whole format, or zeros. */
static int32_t *
make_zero_points(enum qdqi_format format, bool are_zero, size_t n)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    int32_t low = (int32_t)row->lowest, high = (int32_t)row->highest;
    for (size_t i = 0; i < n; i++)
        zero_points[i] = low + (int32_t)(i * 7919 + 3) % (high - low + 1);
    return are_zero || row->fraction_bits > 0 ? NULL : zero_points;
}

/*
 * Makes finite numbers below 1e6. For formats other than the 8-bit ones, and for
 * blocks, ONNX Runtime's loops are undefined for NaN and for numbers of more steps than
 * an int32 holds.
 */
static void
make_near_ones(size_t n, size_t n_scales)
{
    for (size_t i = 0; i < n_scales; i++)
        scales[i] = 0.01f + (float)(i * 7919 % 1009) / 500;
    make_data(n, scales[0]);
    for (size_t i = 0; i < n; i++)
        data[i] = fabsf(data[i]) < 1e6f ? data[i] : 0;
}

/* The newest opset whose formats ONNX Runtime has kernels for. */
enum { RUNTIMES_OPSET = 21 };

START_TEST(every_format_agrees_with_onnx_runtime)
{
    static const int rows[] = {2, 9, 11, 13};
    enum qdqi_format format =
        /* each format twice: without and with zero points */
        (enum qdqi_format)(_i / 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int64_t block = 0; block <= 3; block += 3) {
            int row = rows[i], axis = shapes[row].axis;
            size_t n, channels, n_scales;
            struct qdqi_fake fake = fake_for(row, scales, &n, &channels);
            struct qdqi_fakes fakes = {&fake, 1};
            struct pair_model m;
            n_scales = channels;
            if (block > 0 && axis < 0)
                continue;
            if (block > 0)
                n_scales = n / channels * ((channels + 2) / 3);
            fake.format = format;
            fake.block = (size_t)block;
            fake.zero_points = make_zero_points(format, _i % 2, n_scales);
            make_near_ones(n, n_scales);
            const struct qdqi_params p = {.format = format,
                                          .axis = axis,
                                          .block = block,
                                          .n = n_scales,
                                          .scales = scales,
                                          .zero_points =
                                              fake.zero_points ? zero_points : NULL};
            build_pair(&m, &p, false, shapes[row].rank, shapes[row].shape);
            struct opened o = open_pair(&m, &fakes);
            const struct qdqi_output *out =
                run_pair(&o, "x", data, shapes[row].rank, shapes[row].shape, n);
            ck_assert_mem_eq(out[0].data, out[1].data, n * sizeof(float));
            close_pair(&m, &o);
        }
}
END_TEST

START_TEST(the_operator_agrees_with_a_pair_in_onnx_runtime)
{
    size_t n, channels;
    struct qdqi_fake fake = fake_for(_i, scales, &n, &channels);
    struct qdqi_fakes fakes = {&fake, 1};
    struct pair_model m;
    make_scales(channels);
    make_data(n, scales[0]);
    build_pair(
        &m,
        &(struct qdqi_params){.axis = shapes[_i].axis, .n = channels, .scales = scales},
        false, 0, NULL);
    struct opened o = open_pair(&m, &fakes);
    const struct qdqi_output *out =
        run_pair(&o, "x", data, shapes[_i].rank, shapes[_i].shape, n);
    ck_assert_uint_eq(out[0].n, n);
    ck_assert_mem_eq(out[0].data, out[1].data, n * sizeof(float));
    fake.on = false;
    out = run_pair(&o, "x", data, shapes[_i].rank, shapes[_i].shape, n);
    ck_assert_mem_eq(out[0].data, data, n * sizeof(float));
    close_pair(&m, &o);
}
END_TEST

/* The result does not depend on whether it is computed in place, elsewhere or at an
   odd address, nor on the size of the parts. */
START_TEST(cuts_and_places_make_no_difference)
{
    static unsigned char odd[MOST * sizeof(float) + 1];
    static float whole[MOST];
    size_t n, channels;
    struct qdqi_fake fake = fake_for(_i, scales, &n, &channels);
    make_scales(channels);
    make_data(n, scales[0]);
    qdqi_fake_quantize(&fake, data, expected, 0, n);
    memcpy(whole, data, n * sizeof *data);
    qdqi_fake_quantize(&fake, whole, whole, 0, n);
    ck_assert_mem_eq(whole, expected, n * sizeof *whole);
    memset(whole, 0, n * sizeof *whole);
    memcpy(odd + 1, data, n * sizeof *data);
    size_t done = 0;
    for (size_t part = 1; done < n; done += part) {
        part = part * 3 + 1 < n - done ? part * 3 + 1 : n - done;
        qdqi_fake_quantize(&fake, odd + 1, whole, done, part);
    }
    ck_assert_mem_eq(whole, expected, n * sizeof *whole);
}
END_TEST

/* Computes the result by hand, from the operator's specification. */
START_TEST(the_arithmetic_is_the_operators)
{
    make_data(1000, 0.25f);
    const float scale = 0.25f;
    const struct qdqi_fake fake = {.on = true,
                                   .format = QDQI_TO_INT8,
                                   .scales = &scale,
                                   .channels = 1,
                                   .inner = 1};
    float out[1000];
    qdqi_fake_quantize(&fake, data, out, 0, 1000);
    for (size_t i = 0; i < 1000; i++) {
        double q = nearbyint((double)data[i] / 0.25); /* ties round to even */
        q = isnan(data[i]) ? -128 : fmin(fmax(q, -128), 127);
        ck_assert_double_eq((double)out[i], q * 0.25);
        ck_assert(!(out[i] == 0 && signbit(out[i])));
    }
}
END_TEST

/* ONNX Runtime does not fold the operator's result for a constant, so that switch
   and scale still work after opening. */
START_TEST(a_constant_is_quantized_anew_in_every_run)
{
    static const int64_t shape[] = {8, 50};
    float own[8];
    struct qdqi_fake fake = {
        .format = QDQI_TO_INT8, .scales = own, .channels = 8, .inner = 50};
    struct qdqi_fakes fakes = {&fake, 1};
    struct pair_model m;
    make_scales(8);
    make_data(400, 1);
    memcpy(own, scales, sizeof own);
    build_pair(&m, &(struct qdqi_params){.n = 8, .scales = scales}, true, 2, shape);
    struct opened o = open_pair(&m, &fakes);
    for (int i = 0; i < 4; i++) {
        fake.on = i % 2 == 1;
        own[0] = i == 3 ? 2 * scales[0] : scales[0];
        const struct qdqi_output *out =
            run_pair(&o, "unused", data, 1, (const int64_t[]){1}, 1);
        if (!fake.on)
            ck_assert_mem_eq(out[0].data, data, sizeof(float[400]));
        else if (i == 1)
            ck_assert_mem_eq(out[0].data, out[1].data, sizeof(float[400]));
        else
            ck_assert_mem_ne(out[0].data, out[1].data, sizeof(float[50]));
    }
    close_pair(&m, &o);
}
END_TEST

START_TEST(a_weight_of_another_shape_is_refused)
{
    struct qdqi_fake fake = {.on = true,
                             .format = QDQI_TO_INT8,
                             .scales = scales,
                             .channels = 3,
                             .inner = 5};
    struct qdqi_fakes fakes = {&fake, 1};
    struct pair_model m;
    make_scales(8);
    make_data(400, 1);
    build_pair(&m, &(struct qdqi_params){.axis = -1, .n = 1, .scales = scales}, false,
               0, NULL);
    struct opened o = open_pair(&m, &fakes);
    static const size_t sizes[] = {16, 18, 20};
    for (size_t i = 0; i < 3; i++) {
        const struct qdqi_input in = {.name = "x",
                                      .dtype = QDQI_FLOAT32,
                                      .rank = 1,
                                      .shape = &(int64_t){(int64_t)sizes[i]},
                                      .data = data,
                                      .size = sizes[i] * sizeof *data};
        const struct qdqi_output *out;
        struct qdq_error err = {0};
        size_t n_out;
        ck_assert_int_eq(qdqi_session_run(o.session, &in, 1, &out, &n_out, &err),
                         QDQ_RUN_FAILED);
        ck_assert_ptr_nonnull(strstr(err.text, "not of the shape"));
    }
    close_pair(&m, &o);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("engine_fake");
    TCase *t = tcase_create("fake");
    int n = (int)(sizeof shapes / sizeof *shapes);
    suite_add_tcase(s, t);
    tcase_add_test(t, every_edge_and_weight_has_its_own);
    tcase_add_test(t, a_shared_tensor_has_one_for_each_layer);
    tcase_add_loop_test(t, cuts_and_places_make_no_difference, 0, n);
    tcase_add_test(t, the_arithmetic_is_the_operators);
    tcase_add_loop_test(t, the_operator_agrees_with_a_pair_in_onnx_runtime, 0, n);
    for (int f = 0; f < QDQI_N_FORMATS; f++)
        if (qdqi_format_row(f)->opset <= RUNTIMES_OPSET &&
            (int)qdqi_format_of_pairs((enum qdqi_format)f) == f)
            tcase_add_loop_test(t, every_format_agrees_with_onnx_runtime, 2 * f,
                                2 * f + 2);
    tcase_add_test(t, a_constant_is_quantized_anew_in_every_run);
    tcase_add_test(t, a_weight_of_another_shape_is_refused);
    return s;
}

int
main(void)
{
    struct qdq_error err = {0};
    if (qdqi_runtime_open(QDQ_ORT_LIBRARY, 2, &runtime, &err)) {
        printf("1..0 # SKIP %s\n", err.text);
        return 0;
    }
    unit_begin();
    int status = unit_run(suite(), CK_NOFORK);
    qdqi_runtime_close(&runtime);
    return status;
}
