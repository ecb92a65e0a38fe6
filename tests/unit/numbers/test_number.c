/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's arithmetic: extremes, scales, and the metrics of the evaluation. */
#include "config.h"

#include "stages/evaluate/metrics.h"
#include "numbers/arithmetic/minmax.h"
#include "numbers/arithmetic/noise.h"
#include "graph/weights/scales.h"
#include "unit.h"
#include "weights.h"

#include <float.h>
#include <math.h>

/* --- extremes ------------------------------------------------------------- */

static const struct {
    float data[4];
    float min, max;
    bool finite;
} rows[] = {
    {{1, 2, 3, 4}, 1, 4, true},
    {{-1, -2, -3, -4}, -4, -1, true},
    {{0, -0.0f, 0, -0.0f}, 0, 0, true},
    {{-FLT_MAX, FLT_MAX, 0, 1}, -FLT_MAX, FLT_MAX, true},
    {{1e-45f, -1e-45f, 0, 0}, -1e-45f, 1e-45f, true},
    {{1, NAN, 2, 3}, 0, 0, false},
    {{1, -NAN, 2, 3}, 0, 0, false},
    {{1, INFINITY, 2, 3}, 0, 0, false},
    {{1, -INFINITY, 2, 3}, 0, 0, false},
};

UNIT_ROWS(extremes_are_exact, rows)
{
    struct qdqi_extremes e = QDQI_NO_EXTREMES;
    ck_assert(qdqi_extremes_empty(&e));
    /* The data is at an odd address, because tensors in a mapped file have no
       alignment. */
    unsigned char bytes[sizeof rows[0].data + 1];
    memcpy(bytes + 1, rows[_i].data, sizeof rows[0].data);
    qdqi_extremes_update(&e, bytes + 1, 4);
    ck_assert(!qdqi_extremes_empty(&e));
    ck_assert_int_eq(qdqi_extremes_finite(&e), rows[_i].finite);
    ck_assert_int_eq(isfinite(qdqi_amax(bytes + 1, 4)) != 0, rows[_i].finite);
    if (!rows[_i].finite)
        return;
    ck_assert_float_eq(qdqi_float_of_key(e.min), rows[_i].min);
    ck_assert_float_eq(qdqi_float_of_key(e.max), rows[_i].max);
    ck_assert_float_eq(qdqi_amax(bytes + 1, 4),
                       fmaxf(fabsf(rows[_i].min), fabsf(rows[_i].max)));
}

UNIT_TEST(extremes_do_not_depend_on_grouping)
{
    float data[1000];
    unsigned state = 7;
    for (size_t i = 0; i < 1000; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (float)((int32_t)state) / 65536.0f;
    }
    struct qdqi_extremes whole = QDQI_NO_EXTREMES, parts = QDQI_NO_EXTREMES;
    float min = data[0], max = data[0];
    for (size_t i = 0; i < 1000; i++) {
        min = data[i] < min ? data[i] : min;
        max = data[i] > max ? data[i] : max;
    }
    qdqi_extremes_update(&whole, data, 1000);
    for (size_t i = 0; i < 1000; i += 7)
        qdqi_extremes_update(&parts, data + i, i + 7 <= 1000 ? 7 : 1000 - i);
    ck_assert_int_eq(whole.min, parts.min);
    ck_assert_int_eq(whole.max, parts.max);
    ck_assert_float_eq(qdqi_float_of_key(whole.min), min);
    ck_assert_float_eq(qdqi_float_of_key(whole.max), max);
}

/* --- scales --------------------------------------------------------------- */

static const struct {
    double amax;
    float scale;
} scales[] = {
    /* the last one is rounded down, since 127 of the nearest one are infinite */
    {127, 1}, {1, 1.0f / 127.0f}, {6, 6.0f / 127.0f},
    {0, 1},   {1e-45, FLT_MIN},   {(double)FLT_MAX, 0x1.0204060000000p+121f},
};

UNIT_ROWS(scale_is_amax_over_127, scales)
{
    ck_assert_float_eq(symmetric_scale(scales[_i].amax), scales[_i].scale);
}

/* A weight of shape [2][3][2], its axis, and the amax from which each scale follows. */
static const struct {
    int axis;
    size_t n;
    float amax[3];
} axes[] = {
    {-1, 1, {12}},
    {0, 2, {6, 12}},
    {1, 3, {8, 10, 12}},
    {2, 2, {11, 12}},
};

UNIT_ROWS(channels_lie_along_the_axis, axes)
{
    const float data[] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12};
    const int64_t dims[] = {2, 3, 2};
    const struct qdqi_constant w = {QDQI_FLOAT32,          3,   dims, 12,
                                    (const uint8_t *)data, NULL};
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_error err = {0};
    float *got;
    size_t n;
    ck_assert_int_eq(weight_scales(&w, axes[_i].axis, "w", arena, &got, &n, &err), 0);
    ck_assert_uint_eq(n, axes[_i].n);
    for (size_t i = 0; i < n; i++)
        ck_assert_float_eq(got[i], axes[_i].amax[i] / 127.0f);
    qdqi_arena_free(&arena);
}

/* --- scales of views ------------------------------------------------------ */

/* Orders of the axes of [2,3,4,5]; in a few of them the channels stay the innermost
   axis. */
static const size_t orders[][4] = {
    {0, 1, 2, 3}, {3, 2, 1, 0}, {3, 2, 0, 1}, {0, 2, 3, 1}, {1, 0, 3, 2}, {2, 3, 1, 0},
};

/* Returns the amax of one index of an axis, computed element by element. */
static float
amax_of(const struct qdqi_constant *w, int axis, int64_t index)
{
    float amax = 0;
    for (size_t i = 0; i < w->n; i++) {
        int64_t rest = (int64_t)i, offset = 0, at = 0;
        for (size_t k = w->rank; k-- > 0; rest /= w->dims[k]) {
            offset += rest % w->dims[k] * w->strides[k];
            at = (int)k == axis ? rest % w->dims[k] : at;
        }
        float value;
        memcpy(&value, w->bytes + (size_t)offset * sizeof value, sizeof value);
        if (axis < 0 || at == index)
            amax = fmaxf(amax, fabsf(value));
    }
    return amax;
}

UNIT_ROWS(scales_do_not_depend_on_the_order_of_axes, orders)
{
    float data[120];
    const int64_t stored[] = {2, 3, 4, 5}, steps[] = {60, 20, 5, 1};
    int64_t dims[4], strides[4];
    unsigned state = 11;
    for (size_t i = 0; i < 120; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (float)((int32_t)state) / 65536.0f;
    }
    for (size_t i = 0; i < 4; i++) {
        dims[i] = stored[orders[_i][i]];
        strides[i] = steps[orders[_i][i]];
    }
    const struct qdqi_constant w = {QDQI_FLOAT32,          4,      dims, 120,
                                    (const uint8_t *)data, strides};
    struct qdqi_arena *arena = qdqi_arena_new();
    for (int axis = -1; axis < 4; axis++) {
        float *got;
        size_t n;
        ck_assert_int_eq(weight_scales(&w, axis, "w", arena, &got, &n, NULL), 0);
        ck_assert_uint_eq(n, axis < 0 ? 1 : (size_t)dims[axis]);
        for (size_t i = 0; i < n; i++)
            ck_assert_float_eq(got[i], amax_of(&w, axis, (int64_t)i) / 127.0f);
    }
    qdqi_arena_free(&arena);
}

/* Shapes that a Reshape leaves: an axis of one index may have any stride. */
UNIT_TEST(an_axis_of_one_index_has_one_channel)
{
    const float data[] = {1, -2, 3, -4, 5, -6};
    const int64_t dims[] = {3, 1, 2}, strides[] = {1, 4, 3};
    const struct qdqi_constant w = {QDQI_FLOAT32,          3,      dims, 6,
                                    (const uint8_t *)data, strides};
    struct qdqi_arena *arena = qdqi_arena_new();
    float *got;
    size_t n;
    ck_assert_int_eq(weight_scales(&w, 1, "w", arena, &got, &n, NULL), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert_float_eq(got[0], 6 / 127.0f);
    qdqi_arena_free(&arena);
}

/* The tensor has 1000 * 2^50 elements, of which one is stored. */
UNIT_TEST(fills_cost_their_channels)
{
    static const float values[] = {-2.5f, 0, INFINITY};
    const int64_t dims[] = {1000, (int64_t)1 << 50}, strides[] = {0, 0};
    struct qdqi_arena *arena = qdqi_arena_new();
    for (size_t v = 0; v < 3; v++) {
        const struct qdqi_constant w = {
            QDQI_FLOAT32, 2, dims, (size_t)1000 << 50, (const uint8_t *)&values[v],
            strides};
        for (int axis = -1; axis < 1; axis++) {
            float *got;
            size_t n;
            int code = (int)weight_scales(&w, axis, "w", arena, &got, &n, NULL);
            ck_assert_int_eq(code, v == 2 ? QDQ_NONFINITE : QDQ_OK);
            if (code)
                continue;
            ck_assert_uint_eq(n, axis < 0 ? 1 : 1000);
            for (size_t i = 0; i < n; i++)
                ck_assert_float_eq(got[i], v == 0 ? 2.5f / 127.0f : 1);
        }
    }
    qdqi_arena_free(&arena);
}

UNIT_TEST(other_types_are_no_weights)
{
    const int64_t dims[] = {2}, data[] = {1, 2};
    const struct qdqi_constant w = {QDQI_INT64, 1, dims, 2, (const uint8_t *)data,
                                    NULL};
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_error err = {0};
    float *got;
    size_t n;
    ck_assert_int_eq(weight_scales(&w, 0, "w", arena, &got, &n, &err), QDQ_UNSUPPORTED);
    ck_assert_str_eq(err.where, "w");
    qdqi_arena_free(&arena);
}

UNIT_TEST(dead_channels_get_the_median)
{
    const float data[] = {1, 0, 4, 0, 2};
    const int64_t dims[] = {5};
    const struct qdqi_constant w = {QDQI_FLOAT32,          1,   dims, 5,
                                    (const uint8_t *)data, NULL};
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_error err = {0};
    float *got;
    size_t n;
    ck_assert_int_eq(weight_scales(&w, 0, "w", arena, &got, &n, &err), 0);
    ck_assert_float_eq(got[1], 2 / 127.0f);
    ck_assert_float_eq(got[3], 2 / 127.0f);
    ck_assert_float_eq(got[2], 4 / 127.0f);
    qdqi_arena_free(&arena);
}

UNIT_TEST(a_weight_that_is_not_finite_is_named)
{
    const float data[] = {1, NAN, 2};
    const int64_t dims[] = {3};
    const struct qdqi_constant w = {QDQI_FLOAT32,          1,   dims, 3,
                                    (const uint8_t *)data, NULL};
    struct qdqi_arena *arena = qdqi_arena_new();
    float *got;
    size_t n;
    for (int axis = -1; axis <= 0; axis++) {
        struct qdq_error err = {0};
        ck_assert_int_eq(weight_scales(&w, axis, "w", arena, &got, &n, &err),
                         QDQ_NONFINITE);
        ck_assert_str_eq(err.where, "w");
    }
    qdqi_arena_free(&arena);
}

/* --- evaluation ----------------------------------------------------------- */

UNIT_TEST(figures_of_two_samples)
{
    const float f[] = {3, 4, 0, 1}, q[] = {3, 3, 0, 1};
    struct qdqi_metrics m = {0};
    struct qdq_output_report r;
    const struct qdqi_output_shape shape = {(const int64_t[]){2, 2}, 2};
    qdqi_metrics_update(&m, f, q, 4, 2, &shape);
    qdqi_metrics_finish(&m, "y", &r);
    ck_assert_double_eq_tol(r.sqnr_db, 10 * log10(26.0 / 1.0), 1e-12);
    ck_assert_double_eq_tol(r.cosine, (21 / (5 * sqrt(18)) + 1) / 2, 1e-12);
    ck_assert_double_eq(r.max_abs_error, 1);
    ck_assert_double_eq(r.top1_agreement, 0.5);
}

UNIT_TEST(equal_outputs_have_no_noise)
{
    const float f[] = {0, 0, 0};
    struct qdqi_metrics m = {0};
    struct qdq_output_report r;
    const struct qdqi_output_shape shape = {(const int64_t[]){3, 1}, 2};
    qdqi_metrics_update(&m, f, f, 3, 1, &shape);
    qdqi_metrics_finish(&m, "y", &r);
    ck_assert(isinf(r.sqnr_db) && r.sqnr_db > 0);
    ck_assert_double_eq(r.cosine, 1);
    ck_assert(isnan(r.top1_agreement));
}

/* A finite error after the NaN does not hide it, in the same sample or in a later
   one. */
UNIT_TEST(a_nan_is_the_largest_error)
{
    const float f[] = {NAN, 1, 1, 1}, q[] = {0, 2, 2, 2};
    struct qdqi_metrics m = {0};
    struct qdq_output_report r;
    const struct qdqi_output_shape shape = {(const int64_t[]){2, 2}, 2};
    qdqi_metrics_update(&m, f, q, 4, 2, &shape);
    qdqi_metrics_finish(&m, "y", &r);
    ck_assert(isnan(r.max_abs_error) && isnan(r.sqnr_db));
}

/* --- noise ---------------------------------------------------------------- */

/* Compares with sums in long double, for every remainder of the vector width, at an
   odd address. */
UNIT_LOOP(noise_is_summed_up, 21)
{
    enum { MOST = 1003 };
    unsigned char bytes[2][MOST * sizeof(float) + 1];
    size_t n = _i < 20 ? (size_t)_i : MOST;
    long double signal = 0, noise = 0;
    for (size_t i = 0; i < n; i++) {
        float f = (float)(i % 17) * 0.37f - 2, q = f + (float)(i % 5) * 0.01f;
        memcpy(bytes[0] + 1 + i * sizeof f, &f, sizeof f);
        memcpy(bytes[1] + 1 + i * sizeof q, &q, sizeof q);
        long double e = (long double)f - (long double)q;
        signal += (long double)f * (long double)f;
        noise += e * e;
    }
    struct qdqi_noise sums = {1, 2};
    qdqi_noise_add(&sums, bytes[0] + 1, bytes[1] + 1, n);
    ck_assert_double_eq_tol(sums.signal, 1 + (double)signal, 1e-9);
    ck_assert_double_eq_tol(sums.noise, 2 + (double)noise, 1e-12);
}

UNIT_TEST(noise_in_decibels)
{
    ck_assert_double_eq_tol(qdqi_noise_db(&(struct qdqi_noise){1000, 1}), 30, 1e-12);
    ck_assert(isinf(qdqi_noise_db(&(struct qdqi_noise){1, 0})));
    ck_assert(isinf(qdqi_noise_db(&(struct qdqi_noise){0, 0})));
    ck_assert(isnan(qdqi_noise_db(&(struct qdqi_noise){NAN, NAN})));
    const float f[] = {1, NAN, 1}, q[] = {1, 1, 1};
    struct qdqi_noise sums = {0, 0};
    qdqi_noise_add(&sums, f, q, 3);
    ck_assert(isnan(sums.noise));
}

UNIT_SUITE("number")
