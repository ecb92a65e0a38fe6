/* SPDX-License-Identifier: Apache-2.0 */
/* Weights as integers, and the scale with the least squared error. */
#include "config.h"

#include "files/model/file_sink.h"
#include "graph/weights/blocks.h"
#include "graph/weights/integers.h"
#include "graph/weights/scales.h"
#include "unit.h"
#include "weights.h"

#include <float.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- one value ------------------------------------------------------------ */

static const struct {
    float x;
    int q;
} values[] = {
    {0, 0},        {-0.0f, 0},     {0.5f, 0},       {1.5f, 2},        {2.5f, 2},
    {-0.5f, 0},    {-1.5f, -2},    {-2.5f, -2},     {126.5f, 126},    {127.49f, 127},
    {127.5f, 127}, {128, 127},     {-127.5f, -128}, {-128.5f, -128},  {-129, -128},
    {1e30f, 127},  {-1e30f, -128}, {FLT_MAX, 127},  {0.49999997f, 0}, {-126.5f, -126},
};

UNIT_ROWS(ties_round_to_even_and_outliers_saturate, values)
{
    ck_assert_int_eq((int)qdqi_quantized(values[_i].x, 1, -128, 127), values[_i].q);
}

/* --- weights of any layout ------------------------------------------------ */

enum { RANK = 4, N = 7 * 3 * 40 * 11 }; /* more elements than are written at a time */

static const int64_t stored[RANK] = {7, 3, 40, 11}, steps[RANK] = {1320, 440, 11, 1};

static const size_t orders[][RANK] = {
    {0, 1, 2, 3}, {3, 2, 1, 0}, {3, 2, 0, 1}, {0, 2, 3, 1}, {1, 0, 3, 2}, {2, 3, 1, 0},
};

struct layout {
    float data[N];
    int64_t dims[RANK], strides[RANK];
    struct qdqi_constant w;
};

/* Fills the weight with values that have a long tail, in one order of the axes. */
static void
fill_layout(struct layout *l, const size_t *order)
{
    unsigned state = 5;
    for (size_t i = 0; i < N; i++) {
        state = state * 1664525u + 1013904223u;
        float x = (float)(int32_t)state / 2147483648.0f;
        l->data[i] = x * x * x * x * x;
    }
    for (size_t i = 0; i < RANK; i++) {
        l->dims[i] = stored[order[i]];
        l->strides[i] = steps[order[i]];
    }
    l->w = (struct qdqi_constant){
        QDQI_FLOAT32, RANK, l->dims, N, (const uint8_t *)l->data, l->strides};
}

/* Returns element i in C order; *ret_channel is its index on the axis. */
static float
element(const struct qdqi_constant *w, int axis, size_t i, size_t *ret_channel)
{
    size_t rest = i, at = 0;
    float value;
    *ret_channel = 0;
    for (size_t k = w->rank, step = 1; k-- > 0; rest /= (size_t)w->dims[k]) {
        size_t index = rest % (size_t)w->dims[k];
        at += index * (w->strides ? (size_t)w->strides[k] : step);
        step *= (size_t)w->dims[k];
        if ((int)k == axis)
            *ret_channel = index;
    }
    memcpy(&value, w->bytes + at * sizeof value, sizeof value);
    return value;
}

static float *
scales_of(struct qdqi_arena *arena, const struct qdqi_constant *w, int axis,
          size_t *ret)
{
    float *scales;
    struct qdq_error err = {0};
    ck_assert_int_eq(weight_scales(w, axis, "w", arena, &scales, ret, &err), 0);
    return scales;
}

/* --- integers ------------------------------------------------------------- */

struct collector {
    struct qdqi_sink sink;
    size_t n;
    int8_t data[N];
};

static enum qdq_code
collect(struct qdqi_sink *sink, const void *data, size_t size, struct qdq_error *err)
{
    struct collector *c = (struct collector *)sink;
    (void)err;
    ck_assert_uint_le(size, N - c->n);
    if (size)
        memcpy(c->data + c->n, data, size);
    c->n += size;
    return QDQ_OK;
}

static void
check_integers(const struct qdqi_constant *w, int axis)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct collector *c = calloc(1, sizeof *c);
    size_t n, channel;
    const float *scales = scales_of(arena, w, axis, &n);
    const struct qdqi_made *made = weight_integers(arena, w, axis, scales);
    c->sink.bytes = collect;
    ck_assert_int_eq(made->write(made, &c->sink, NULL), 0);
    ck_assert_uint_eq(c->n, w->n);
    for (size_t i = 0; i < w->n; i++) {
        float x = element(w, axis, i, &channel);
        float q = rintf(x / scales[channel]);
        ck_assert_int_eq(c->data[i], (int)fmaxf(-128, fminf(127, q)));
    }
    free(c);
    qdqi_arena_free(&arena);
}

UNIT_ROWS(integers_stand_in_c_order, orders)
{
    struct layout *l = malloc(sizeof *l);
    fill_layout(l, orders[_i]);
    for (int axis = -1; axis < RANK; axis++)
        check_integers(&l->w, axis);
    free(l);
}

static const float few[] = {1, -2, 3, -4, 5, -6};

static const struct {
    size_t rank;
    int64_t dims[3];
    size_t n;
    int axis;
    bool strided;
    int64_t strides[3];
} shapes[] = {
    {0, {0}, 1, -1, false, {0}},
    {1, {6}, 6, 0, false, {0}},
    {2, {2, 3}, 6, 1, false, {0}},
    {3, {1, 6, 1}, 6, 0, false, {0}},
    {3, {1, 6, 1}, 6, 2, false, {0}},
    {3, {2, 0, 3}, 0, 0, false, {0}},
    {3, {2, 0, 3}, 0, 1, false, {0}},
    /* the axis has one index, so its stride is not used */
    {3, {3, 1, 2}, 6, 1, true, {1, 4, 3}},
    {3, {3, 2, 4}, 24, 1, true, {0, 0, 0}},
};

UNIT_ROWS(integers_of_small_shapes, shapes)
{
    const struct qdqi_constant w = {
        QDQI_FLOAT32,         shapes[_i].rank,
        shapes[_i].dims,      shapes[_i].n,
        (const uint8_t *)few, shapes[_i].strided ? shapes[_i].strides : NULL};
    check_integers(&w, shapes[_i].axis);
}

/* --- the least error ------------------------------------------------------ */

static double
error_of(const struct qdqi_constant *w, int axis, size_t channel, float scale)
{
    double sum = 0;
    size_t at;
    for (size_t i = 0; i < w->n; i++) {
        double x = (double)element(w, axis, i, &at);
        if (at != channel)
            continue;
        double back =
            (double)(fmaxf(-128, fminf(127, rintf((float)x / scale))) * scale);
        sum += (x - back) * (x - back);
    }
    return sum;
}

UNIT_ROWS(narrowing_finds_less_error, orders)
{
    struct layout *l = malloc(sizeof *l);
    struct qdqi_arena *arena = qdqi_arena_new();
    size_t narrower = 0;
    fill_layout(l, orders[_i]);
    for (int axis = -1; axis < RANK; axis++) {
        size_t n;
        float *got = scales_of(arena, &l->w, axis, &n);
        const float *max = scales_of(arena, &l->w, axis, &n);
        ck_assert_int_eq(weight_narrow(&l->w, axis, got, n), 0);
        for (size_t i = 0; i < n; i += n / 3 + 1) {
            double least = error_of(&l->w, axis, i, got[i]);
            ck_assert(got[i] > 0 && got[i] <= max[i]);
            /* the candidates that the search tries first */
            for (int k = 1; k < 64; k++)
                ck_assert_double_le(
                    least,
                    (1 + 1e-9) * error_of(&l->w, axis, i, max[i] * (float)k / 64));
            ck_assert_double_le(least, (1 + 1e-9) * error_of(&l->w, axis, i, max[i]));
            narrower += got[i] < max[i];
        }
    }
    ck_assert_uint_gt(narrower, 0);
    qdqi_arena_free(&arena);
    free(l);
}

/* A narrower range clips one outlier, which makes all other values more accurate. */
UNIT_TEST(narrowing_clips_outliers)
{
    enum { MANY = 600000 }; /* more elements than are gathered at a time */
    float *rows = malloc(MANY * sizeof *rows),
          *columns = malloc(MANY * sizeof *columns);
    const int64_t by_row[] = {2, MANY / 2}, by_column[] = {MANY / 2, 2};
    struct qdqi_arena *arena = qdqi_arena_new();
    size_t n;
    for (size_t i = 0; i < MANY; i++)
        rows[i] = (float)(i * 7919 % 2001) / 1000.0f - 1;
    rows[MANY - 5] = 8;
    for (size_t i = 0; i < MANY; i++)
        columns[i % (MANY / 2) * 2 + i / (MANY / 2)] = rows[i];
    const struct qdqi_constant a = {QDQI_FLOAT32,          2,   by_row, MANY,
                                    (const uint8_t *)rows, NULL};
    const struct qdqi_constant b = {
        QDQI_FLOAT32, 2, by_column, MANY, (const uint8_t *)columns, NULL};
    float *one = scales_of(arena, &a, 0, &n), *other = scales_of(arena, &b, 1, &n);
    ck_assert_int_eq(weight_narrow(&a, 0, one, n), 0);
    ck_assert_int_eq(weight_narrow(&b, 1, other, n), 0);
    ck_assert_float_ge(one[0], 0.99f / 127);
    ck_assert_float_lt(one[1], 4 / 127.0f);
    ck_assert_int_eq(memcmp(one, other, 2 * sizeof *one), 0);
    qdqi_arena_free(&arena);
    free(rows);
    free(columns);
}

static const struct {
    float data[4];
    bool same; /* no narrower range is better */
} edges[] = {
    {{0, 0, 0, 0}, true},
    {{1e-45f, -1e-45f, 0, 3e-45f}, true},
    {{FLT_MIN, 1e-40f, 0, -1e-39f}, true},
    {{127, 3, -15, 100}, true}, /* the full range has no error at all */
    {{FLT_MAX, -FLT_MAX, 1, FLT_MAX / 3}, false},
    {{8, 1, -1, 1.5f}, false},
};

UNIT_ROWS(scales_stay_usable, edges)
{
    const int64_t dims[] = {4};
    const struct qdqi_constant w = {
        QDQI_FLOAT32, 1, dims, 4, (const uint8_t *)edges[_i].data, NULL};
    struct qdqi_arena *arena = qdqi_arena_new();
    for (int axis = -1; axis <= 0; axis++) {
        size_t n;
        const float *max = scales_of(arena, &w, axis, &n);
        float *got = scales_of(arena, &w, axis, &n);
        ck_assert_int_eq(weight_narrow(&w, axis, got, n), 0);
        for (size_t i = 0; i < n; i++) {
            ck_assert(isnormal(got[i]) && got[i] <= max[i]);
            ck_assert_double_le(error_of(&w, axis, i, got[i]),
                                error_of(&w, axis, i, max[i]));
            ck_assert(!edges[_i].same || axis >= 0 || got[i] == max[i]);
        }
    }
    qdqi_arena_free(&arena);
}

/* A tensor of 1000 * 2^50 elements, of which one is stored, takes no more time than
   one element. */
UNIT_TEST(fills_are_narrowed_as_one_element)
{
    const float value = 0.3f;
    const int64_t dims[] = {1000, (int64_t)1 << 50}, strides[] = {0, 0};
    const struct qdqi_constant w = {
        QDQI_FLOAT32, 2, dims, (size_t)1000 << 50, (const uint8_t *)&value, strides};
    struct qdqi_arena *arena = qdqi_arena_new();
    size_t n;
    float *got = scales_of(arena, &w, 0, &n);
    ck_assert_int_eq(weight_narrow(&w, 0, got, n), 0);
    for (size_t i = 0; i < n; i++)
        ck_assert_float_eq(got[i], got[0]);
    float back = qdqi_fake_integer(value, got[0], -128, 127);
    ck_assert_float_le(fabsf(back - value), 1e-7f);
    qdqi_arena_free(&arena);
}

UNIT_TEST(no_elements_no_search)
{
    const int64_t dims[] = {0, 3};
    const struct qdqi_constant w = {QDQI_FLOAT32, 2, dims, 0, NULL, NULL};
    float scales[3] = {1, 1, 1};
    ck_assert_int_eq(weight_narrow(&w, 0, scales, 0), 0);
    ck_assert_int_eq(weight_narrow(&w, 1, scales, 3), 0);
    ck_assert_float_eq(scales[2], 1);
}

/* --- blocks --------------------------------------------------------------- */

/* A piece fails before it has written a byte. */
UNIT_TEST(a_piece_that_fails_frees_its_sink)
{
    static struct qdqi_file_sink sink;
    static float elements[2][64];
    const int64_t dims[] = {2, 64};
    const struct qdqi_constant w = {
        QDQI_FLOAT32, 2, dims, 128, (const uint8_t *)elements, NULL};
    const struct qdqi_params p = {.format = QDQI_TO_INT8, .axis = 1, .block = 32};
    struct qdq_error err = {0};
    struct qdqi_arena *arena = qdqi_arena_new();
    FILE *file = tmpfile();
    elements[1][5] = NAN;
    ck_assert(qdqi_blocks_can(&w, &p));
    struct qdqi_blocks *blocks = qdqi_blocks_new(arena, &w, "w", &p, false, false);
    ck_assert_ptr_nonnull(blocks);
    const struct qdqi_blocks_bulks bulks = qdqi_blocks_bulks(blocks);
    const struct qdqi_bulk all[] = {
        {.made = bulks.scales, .size = bulks.scales_size},
        {.made = bulks.zero_points, .size = bulks.zero_points_size},
        {.made = bulks.integers, .size = bulks.integers_size},
    };
    qdqi_file_sink_init(&sink, NULL, fileno(file), 0);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(qdqi_file_sink_bulk(&sink, &all[i], &err), QDQ_OK);
    mallopt(M_PERTURB, 0x5a); /* new memory has other bytes than zeros */
    ck_assert_int_ne(qdqi_file_sink_finish(&sink, NULL, &err), QDQ_OK);
    ck_assert_ptr_nonnull(strstr(err.text, "weight 'w' holds a NaN"));
    mallopt(M_PERTURB, 0);
    qdqi_file_sink_fini(&sink);
    qdqi_arena_free(&arena);
    fclose(file);
}

UNIT_SUITE("weights")
