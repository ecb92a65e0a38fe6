/* SPDX-License-Identifier: Apache-2.0 */
/* float16 and bfloat16: each conversion from float32 agrees with a search of all
   numbers of the type, which ldexp() computes from the definitions of the types. */
#include "config.h"

#include "numbers/arithmetic/float16.h"
#include "graph/weights/float16_data.h"
#include "unit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const enum qdqi_dtype types[] = {QDQI_FLOAT16, QDQI_BFLOAT16};

/* Returns the number of the bits: a sign, the type's bits of exponent, and the
   fraction. */
static double
value_of(enum qdqi_dtype type, uint16_t bits)
{
    int n_exponent = type == QDQI_FLOAT16 ? 5 : 8, n_fraction = 15 - n_exponent;
    int exponent = (bits & 0x7fff) >> n_fraction, bias = (1 << (n_exponent - 1)) - 1;
    int fraction = bits & ((1 << n_fraction) - 1);
    double x = exponent == 0
                   ? ldexp(fraction, 1 - bias - n_fraction)
                   : ldexp(fraction + (1 << n_fraction), exponent - bias - n_fraction);
    if (exponent == (1 << n_exponent) - 1)
        x = fraction ? (double)NAN : (double)INFINITY;
    return bits & 0x8000 ? -x : x;
}

static uint16_t
infinity_of(enum qdqi_dtype type)
{
    return type == QDQI_FLOAT16 ? 0x7c00 : 0x7f80;
}

/* Returns the nearest number of the type, ties to even. Searches the bits, whose
   order is that of the numbers. */
static uint16_t
nearest(enum qdqi_dtype type, double x)
{
    uint16_t low = 0, high = infinity_of(type);
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    x = fabs(x);
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (value_of(type, middle) <= x)
            low = middle;
        else
            high = middle;
    }
    /* For rounding, infinity stands where the next number would be. */
    double above = high == infinity_of(type)
                       ? 2 * value_of(type, low) - value_of(type, (uint16_t)(low - 1))
                       : value_of(type, high);
    double down = x - value_of(type, low), up = above - x;
    return sign | (down < up || (down == up && low % 2 == 0) ? low : high);
}

static uint16_t
narrowed(enum qdqi_dtype type, float x)
{
    unsigned char odd[sizeof x + 1];
    uint16_t bits;
    memcpy(odd + 1, &x, sizeof x);
    qdqi_float16_of_floats(&bits, type, odd + 1, 1);
    return bits;
}

UNIT_LOOP(every_number_stays, 2)
{
    enum qdqi_dtype type = types[_i];
    for (uint32_t i = 0; i < 65536; i++) {
        float x = qdqi_float16_widened(type, (uint16_t)i);
        if (isnan(value_of(type, (uint16_t)i))) {
            ck_assert(isnan(x));
            ck_assert(isnan(qdqi_float16_widened(type, narrowed(type, x))));
            continue;
        }
        ck_assert_msg((double)x == value_of(type, (uint16_t)i), "%x", i);
        ck_assert_msg(narrowed(type, x) == i, "%x", i);
        ck_assert(qdqi_float16_has(type, x));
    }
    ck_assert_double_eq((double)qdqi_float16_largest(type),
                        value_of(type, (uint16_t)(infinity_of(type) - 1)));
}

UNIT_LOOP(others_become_the_nearest, 2)
{
    enum qdqi_dtype type = types[_i];
    uint32_t state = 7;
    for (int i = 0; i < 300000; i++) {
        float x;
        state = state * 1664525u + 1013904223u;
        uint32_t bits = state;
        if (i % 3 == 0) /* a tie, or next to one */
            bits = (bits & 0xffff0000u) | (0x8000u + (uint32_t)(i % 9) / 3 - 1);
        if (i % 3 == 1) /* of a magnitude that float16 has */
            bits = (bits & 0x87ffffff) | (0x30000000u + (state >> 4 & 0x18000000u));
        if (i % 7 == 0)
            bits = (bits & ~0x1fffu) | 0x1000;
        memcpy(&x, &bits, sizeof x);
        if (!isnan(x) && !isinf(x))
            ck_assert_msg(narrowed(type, x) == nearest(type, (double)x), "%a",
                          (double)x);
    }
    ck_assert_uint_eq(narrowed(type, (float)INFINITY), infinity_of(type));
    ck_assert_uint_eq(narrowed(type, -(float)INFINITY), infinity_of(type) | 0x8000);
    ck_assert_uint_eq(narrowed(type, FLT_MAX), infinity_of(type));
}

/* The end of a range is at most half a step beyond the last integer. */
UNIT_LOOP(scales_do_not_clip, 2)
{
    enum qdqi_dtype type = types[_i];
    static const double steps[] = {7, 127, 255, 32767, 65535};
    uint32_t state = 11;
    for (int i = 0; i < 20000; i++) {
        state = state * 1664525u + 1013904223u;
        float scale =
            ldexpf((float)(1 + (state >> 9) * 0x1p-23), (int)(state % 24) - 13);
        double n = steps[i % 5], got = (double)qdqi_float16_scale(type, scale, n);
        ck_assert(qdqi_float16_has(type, (float)got));
        ck_assert_msg(n * (double)scale / got <= n + 0.5, "%a", (double)scale);
        ck_assert_msg(fabs(got / (double)scale - 1) <= 0x1p-7, "%a", (double)scale);
        if (n <= 127)
            ck_assert_double_eq(got, value_of(type, nearest(type, (double)scale)));
    }
}

UNIT_TEST(scales_are_normal)
{
    ck_assert_float_eq(qdqi_float16_scale(QDQI_FLOAT16, 1e-30F, 127), 0x1p-14F);
    ck_assert_float_eq(qdqi_float16_scale(QDQI_FLOAT16, 1e30F, 127), 65504);
    ck_assert_float_eq(qdqi_float16_scale(QDQI_BFLOAT16, FLT_MIN, 127), FLT_MIN);
    ck_assert_float_eq(qdqi_float16_scale(QDQI_BFLOAT16, FLT_MAX, 127),
                       qdqi_float16_largest(QDQI_BFLOAT16));
}

/* --- tensors -------------------------------------------------------------- */

struct taker {
    struct qdqi_sink sink;
    uint16_t *to;
    size_t n, pieces;
};

static enum qdq_code
take(struct qdqi_sink *sink, const void *data, size_t size, struct qdq_error *err)
{
    struct taker *t = (struct taker *)sink;
    (void)err;
    memcpy(t->to + t->n, data, size);
    t->n += size / sizeof *t->to;
    t->pieces++;
    return QDQ_OK;
}

UNIT_LOOP(tensor_in_pieces, 2)
{
    enum { N = 10000 };
    static float from[N];
    static uint16_t to[N];
    for (size_t i = 0; i < N; i++)
        from[i] = (float)((double)i * 0.37 - 1000);
    struct qdqi_arena *arena = qdqi_arena_new();
    const struct qdqi_constant constant = {
        .dtype = QDQI_FLOAT32, .n = N, .bytes = (const uint8_t *)from};
    struct taker taker = {.sink = {take, NULL}, .to = to};
    const struct qdqi_made *made = qdqi_float16_data_new(arena, types[_i], &constant);
    ck_assert_ptr_nonnull(made);
    ck_assert_int_eq(made->write(made, &taker.sink, NULL), QDQ_OK);
    ck_assert_uint_eq(taker.n, N);
    ck_assert_uint_gt(taker.pieces, 1);
    for (size_t i = 0; i < N; i++)
        ck_assert_uint_eq(to[i], nearest(types[_i], (double)from[i]));
    qdqi_arena_free(&arena);
}

UNIT_SUITE("low")
