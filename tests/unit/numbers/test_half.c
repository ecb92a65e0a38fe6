/* SPDX-License-Identifier: Apache-2.0 */
/*
 * float16: its numbers agree with ldexp(), its scales with a search of all float16
 * numbers, and calculations with float16 tensors with the same calculations in float32.
 */
#include "config.h"

#include "numbers/arithmetic/both.h"
#include "numbers/arithmetic/half.h"
#include "graph/weights/integers.h"
#include "graph/weights/scales.h"
#include "numbers/range/method.h"
#include "numbers/range/observer.h"
#include "unit.h"
#include "weights.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Returns the number that the bits stand for, by the definition of IEEE 754
   binary16. */
static double
value_of(uint16_t half)
{
    int exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    double x =
        exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
    if (exponent == 31)
        x = fraction ? (double)NAN : (double)INFINITY;
    return half & 0x8000 ? -x : x;
}

UNIT_TEST(every_value)
{
    static unsigned char bytes[2 * 65536 + 1]; /* at an odd address */
    static float got[65536];
    for (size_t i = 0; i < 65536; i++) {
        uint16_t half = (uint16_t)i;
        memcpy(bytes + 1 + 2 * i, &half, sizeof half);
    }
    qdqi_floats_of_halves(got, bytes + 1, 65536);
    for (size_t i = 0; i < 65536; i++) {
        double x = value_of((uint16_t)i);
        if (isnan(x))
            ck_assert_msg(isnan(got[i]), "%zx", i);
        else
            ck_assert_msg((double)got[i] == x && !signbit(got[i]) == !signbit(x), "%zx",
                          i);
        if (i >= 0x400 && i < 0x7c00)
            ck_assert_uint_eq(qdqi_half_narrowed(got[i]), i);
    }
}

/* --- scales --------------------------------------------------------------- */

enum { FIRST = 0x400, LAST = 0x7bff }; /* the positive normal numbers */

static double
nearest(double x)
{
    uint16_t best = FIRST;
    for (uint16_t half = FIRST; half <= LAST; half++) {
        double d = fabs(value_of(half) - x), b = fabs(value_of(best) - x);
        if (d < b || (d == b && half % 2 == 0))
            best = half;
    }
    return value_of(best);
}

UNIT_TEST(nearest_normal_half)
{
    uint64_t state = 3;
    for (int i = 0; i < 500; i++) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        double x = ldexp((double)(state >> 11), -53) * ldexp(1, i % 40 - 20);
        ck_assert_double_eq((double)qdqi_normal_half(x), nearest(x));
    }
    for (uint16_t half = FIRST; half < LAST; half = (uint16_t)(half + 37)) {
        double between = (value_of(half) + value_of((uint16_t)(half + 1))) / 2;
        ck_assert_double_eq((double)qdqi_normal_half(between), nearest(between));
        between = nextafter(between, 0); /* rounds to a tie in float32 */
        ck_assert_double_eq((double)qdqi_normal_half(between), nearest(between));
    }
}

static const struct {
    double amax;
    float scale;
} scales[] = {
    {0, 1},          {127, 1},          {254, 2},
    {1, 0x1.02p-7f}, {1e-30, 0x1p-14f}, {DBL_MIN, 0x1p-14f},
    {65504, 515.5f}, {1e30, 65504},
};

UNIT_ROWS(scale_is_a_normal_half, scales)
{
    ck_assert_float_eq(scale_of(QDQI_FLOAT16, scales[_i].amax), scales[_i].scale);
    ck_assert_float_eq(scale_of(QDQI_FLOAT32, scales[_i].amax),
                       symmetric_scale(scales[_i].amax));
}

/* For every float16 range, the end of the range becomes 127 and is not clipped. */
UNIT_TEST(ranges_are_not_clipped)
{
    for (uint16_t half = FIRST; half <= LAST; half++) {
        double amax = value_of(half);
        double scale = (double)scale_of(QDQI_FLOAT16, amax);
        double q = amax / scale;
        ck_assert_msg(q < 127.07, "%g", amax);
        if (scale > 0x1p-14)
            ck_assert_msg(nearbyint(q) == 127, "%g", amax);
    }
}

/* --- the same as float32 -------------------------------------------------- */

enum { N = 5 * 6 * 7 * 40 };

static uint16_t halves[N];
static float floats[N];

static void
fill(void)
{
    uint32_t state = 5;
    for (size_t i = 0; i < N; i++) {
        state = state * 1664525u + 1013904223u;
        halves[i] = (uint16_t)((state >> 16 & 0x8fff) | (state >> 8 & 0x3000));
        floats[i] = (float)value_of(halves[i]);
    }
}

static struct qdqi_constant
constant(enum qdqi_dtype dtype, const int64_t *dims, const int64_t *strides)
{
    const void *data = dtype == QDQI_FLOAT16 ? (const void *)halves : floats;
    return (struct qdqi_constant){dtype, 4, dims, N, data, strides};
}

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
    memcpy(c->data + c->n, data, size);
    c->n += size;
    return QDQ_OK;
}

static void
integers_of(struct qdqi_arena *arena, const struct qdqi_constant *w, int axis,
            const float *s, struct collector *c)
{
    const struct qdqi_made *made = weight_integers(arena, w, axis, s);
    c->n = 0;
    c->sink.bytes = collect;
    ck_assert_int_eq(made->write(made, &c->sink, NULL), 0);
    ck_assert_uint_eq(c->n, N);
}

static const struct {
    int64_t dims[4], strides[4];
    bool strided;
} layouts[] = {
    {{5, 6, 7, 40}, {0}, false},
    {{40, 7, 6, 5}, {1, 40, 280, 1680}, true},
    {{7, 40, 5, 6}, {40, 1, 1680, 280}, true},
};

UNIT_ROWS(weights, layouts)
{
    static struct collector from_halves, from_floats;
    const int64_t *strides = layouts[_i].strided ? layouts[_i].strides : NULL;
    fill();
    const struct qdqi_constant h = constant(QDQI_FLOAT16, layouts[_i].dims, strides);
    const struct qdqi_constant f = constant(QDQI_FLOAT32, layouts[_i].dims, strides);
    struct qdqi_arena *arena = qdqi_arena_new();
    for (int axis = -1; axis < 4; axis++) {
        float *a, *b;
        size_t n, n_b;
        ck_assert(!weight_scales(&h, axis, "w", arena, &a, &n, NULL));
        ck_assert(!weight_scales(&f, axis, "w", arena, &b, &n_b, NULL));
        ck_assert_uint_eq(n, n_b);
        for (size_t i = 0; i < n; i++)
            ck_assert_double_eq((double)a[i], nearest((double)b[i]));
        integers_of(arena, &h, axis, a, &from_halves);
        integers_of(arena, &f, axis, a, &from_floats);
        ck_assert_mem_eq(from_halves.data, from_floats.data, N);
    }
    qdqi_arena_free(&arena);
}

static double
squared_error(float scale)
{
    double sum = 0;
    for (size_t i = 0; i < N; i++) {
        double d = (double)(floats[i] - qdqi_fake_integer(floats[i], scale, -128, 127));
        sum += d * d;
    }
    return sum;
}

UNIT_TEST(narrowed_scales_are_halves)
{
    const int64_t dims[] = {5, 6, 7, 40};
    struct qdqi_arena *arena = qdqi_arena_new();
    fill();
    halves[77] = 0x5bff; /* an outlier */
    floats[77] = (float)value_of(halves[77]);
    const struct qdqi_constant h = constant(QDQI_FLOAT16, dims, NULL);
    float *s;
    size_t n;
    ck_assert(!weight_scales(&h, -1, "w", arena, &s, &n, NULL));
    float before = s[0];
    ck_assert(!weight_narrow(&h, -1, s, n));
    ck_assert_float_lt(s[0], before);
    ck_assert_double_eq((double)s[0], nearest((double)s[0]));
    ck_assert_double_lt(squared_error(s[0]), squared_error(before));
    qdqi_arena_free(&arena);
}

UNIT_LOOP(a_weight_that_is_not_finite_is_named, 2)
{
    const int64_t dims[] = {5, 6, 7, 40};
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_error err = {0};
    float *s;
    size_t n;
    fill();
    halves[N - 1] = _i ? 0x7e00 : 0xfc00;
    const struct qdqi_constant h = constant(QDQI_FLOAT16, dims, NULL);
    ck_assert_int_eq(weight_scales(&h, 0, "w", arena, &s, &n, &err), QDQ_NONFINITE);
    ck_assert_ptr_nonnull(strstr(err.text, "channel 4"));
    qdqi_arena_free(&arena);
}

/* --- observers ------------------------------------------------------------ */

enum { LARGE = 300000, SAMPLES = 7 };

static void
observe(struct qdqi_observers *o, enum qdqi_dtype dtype, const void *data, size_t n,
        int64_t samples, unsigned needs, size_t threads, struct qdqi_arena *arena)
{
    static const char *const tensors[] = {"t"};
    ck_assert(qdqi_observers_init(o, tensors, 1, needs, threads, arena));
    for (int run = 0; run < 2; run++) {
        ck_assert(qdqi_observers_begin(o, samples));
        struct qdqi_reached r = qdqi_reached(o, 0, dtype, data, n, samples);
        for (size_t i = 0; i < r.n_parts; i++)
            qdqi_reached_part(&r, i);
        qdqi_reached_end(&r);
    }
}

UNIT_LOOP(observers_see_the_same, 8)
{
    static const size_t sizes[] = {1, 4095, 4097, LARGE - LARGE % SAMPLES};
    const unsigned needs = QDQI_NEEDS_HISTOGRAM | QDQI_NEEDS_AVERAGE;
    const size_t n = sizes[_i / 2], threads = _i % 2 ? 3 : 1;
    const int64_t samples = n % SAMPLES == 0 ? SAMPLES : 1;
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_observers h, f;
    uint16_t *half = calloc(n, sizeof *half);
    float *wide = calloc(n, sizeof *wide);
    uint32_t state = 9;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        half[i] = (uint16_t)(state >> 16 & 0xbfff); /* also subnormal numbers */
        wide[i] = (float)value_of(half[i]);
    }
    observe(&h, QDQI_FLOAT16, half, n, samples, needs, threads, arena);
    observe(&f, QDQI_FLOAT32, wide, n, samples, needs, threads, arena);
    const struct qdqi_observer *a = h.rows, *b = f.rows;
    ck_assert_int_eq(a->all.extremes.min, b->all.extremes.min);
    ck_assert_int_eq(a->all.extremes.max, b->all.extremes.max);
    ck_assert_int_eq(a->all.histogram->exponent, b->all.histogram->exponent);
    ck_assert_mem_eq(a->all.histogram->counts, b->all.histogram->counts,
                     sizeof a->all.histogram->counts);
    ck_assert_double_eq(a->average.min, b->average.min);
    ck_assert_double_eq(a->average.max, b->average.max);
    free(half);
    free(wide);
    qdqi_arena_free(&arena);
}

UNIT_SUITE("engine/half")
