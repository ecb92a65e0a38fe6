/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every level of number/simd.h that runs here gives the same bits as the plain one, for
 * each loop that has variants, at odd addresses and for numbers of elements that fill no
 * register. A level that does not run here is said to be left out. Loops that fuse products
 * and sums give the same bits from AVX2 on, and nearly those of the plain level.
 */
#include "config.h"

#include "numbers/arithmetic/fake.h"
#include "numbers/arithmetic/float16.h"
#include "numbers/arithmetic/half.h"
#include "numbers/arithmetic/histogram.h"
#include "numbers/arithmetic/minmax.h"
#include "numbers/arithmetic/noise.h"
#include "numbers/arithmetic/simd.h"
#include "unit.h"
#include "weights.h"
#include "graph/weights/approximate.h"
#include "graph/weights/integers.h"
#include "graph/weights/scales.h"
#include "graph/weights/subtract.h"
#include "graph/weights/updates.h"

#include <math.h>
#include <string.h>

enum { MOST = 10007 };

/* The floats begin at an odd address. */
static unsigned char bytes[MOST * sizeof(float) + 1], others[sizeof bytes];
static unsigned char *const data = bytes + 1, *const other = others + 1;
static float floats[MOST], scales[MOST];

/* The results of a loop, with zeros behind them. */
struct result {
    unsigned char bytes[MOST * sizeof(float) + 1];
    double sums[2];
    struct qdqi_extremes extremes;
    struct qdqi_histogram histogram;
};

static uint32_t
draw(uint64_t *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*state >> 32);
}

/* Fills the arrays with normal numbers of both signs, and with some of those for which
   formats have rules of their own. */
static void
fill(void)
{
    static const float rare[] = {0,      -0.0F,  65504,   65520,  1e-8F,
                                 6e-8F,  0.5F,   1.5F,    2.5F,   -127.5F,
                                 1e-40F, -1e-6F, 3.4e38F, 2e-38F, 1e5F};
    uint64_t state = 26;
    for (size_t i = 0; i < MOST; i++) {
        double x = ldexp((double)draw(&state) - 0x1p31, -25);
        float y = (float)(x * 1.25);
        floats[i] = draw(&state) % 16
                        ? (float)x
                        : rare[draw(&state) % (sizeof rare / sizeof *rare)];
        scales[i] = (float)ldexp(1 + (double)draw(&state) * 0x1p-32, -3);
        memcpy(data + i * sizeof y, &floats[i], sizeof y);
        memcpy(other + i * sizeof y, &y, sizeof y);
    }
}

/* --- the loops ------------------------------------------------------------ */

static void
do_extremes(size_t n, struct result *ret)
{
    ret->extremes = QDQI_NO_EXTREMES;
    qdqi_extremes_update(&ret->extremes, data, n);
}

static void
do_amax(size_t n, struct result *ret)
{
    ret->sums[0] = (double)qdqi_amax(data, n);
}

static void
do_columns(size_t n, struct result *ret)
{
    float amax[37] = {0};
    qdqi_amax_columns(data, n / 37, 37, amax);
    memcpy(ret->bytes, amax, sizeof amax);
}

static void
do_bins(size_t n, struct result *ret)
{
    qdqi_histogram_init(&ret->histogram);
    qdqi_histogram_update(&ret->histogram, qdqi_amax(other, n), other, n);
}

static void
do_widen(size_t n, struct result *ret)
{
    float to[MOST];
    qdqi_floats_of_halves(to, data, n);
    memcpy(ret->bytes, to, n * sizeof *to);
}

static void
do_halves(size_t n, struct result *ret)
{
    uint16_t to[MOST];
    qdqi_float16_of_floats(to, QDQI_FLOAT16, data, n);
    memcpy(ret->bytes, to, n * sizeof *to);
}

static void
do_bfloats(size_t n, struct result *ret)
{
    uint16_t to[MOST];
    qdqi_float16_of_floats(to, QDQI_BFLOAT16, data, n);
    memcpy(ret->bytes, to, n * sizeof *to);
}

/* The sums depend on their order, and on products that are not fused. */
static void
do_noise(size_t n, struct result *ret)
{
    struct qdqi_noise noise = {0};
    qdqi_noise_add(&noise, other, scales, n);
    ret->sums[0] = noise.signal;
    ret->sums[1] = noise.noise;
}

static void
fake(size_t channels, const void *from, size_t n, struct result *ret)
{
    const struct qdqi_fake f = {.on = true,
                                .format = QDQI_TO_INT8,
                                .scales = scales,
                                .channels = channels,
                                .inner = 1};
    qdqi_fake_quantize(&f, from, ret->bytes + 1, 0, n);
}

static void
do_fake(size_t n, struct result *ret)
{
    fake(1, data, n, ret);
}

static void
do_fake_in_place(size_t n, struct result *ret)
{
    memcpy(ret->bytes + 1, data, n * sizeof(float));
    fake(1, ret->bytes + 1, n, ret);
}

static void
do_fake_each(size_t n, struct result *ret)
{
    fake(1000, data, n, ret);
}

struct taker {
    struct qdqi_sink sink; /* must be first */
    struct result *ret;
};

static enum qdq_code
take(struct qdqi_sink *sink, const void *from, size_t size, struct qdq_error *err)
{
    (void)err;
    memcpy(((struct taker *)sink)->ret->bytes, from, size);
    return QDQ_OK;
}

/* Quantizes a weight: with one scale, or with one for each of its columns. */
static void
integers(int64_t columns, size_t n, struct result *ret)
{
    struct taker to = {{.bytes = take}, ret};
    struct qdq_error err = {0};
    struct qdqi_arena *arena = qdqi_arena_new();
    const size_t piece = 8000; /* as many come at once */
    const int64_t dims[] = {(int64_t)(n < piece ? n : piece) / columns, columns};
    const struct qdqi_constant w = {.dtype = QDQI_FLOAT32,
                                    .rank = 2,
                                    .dims = dims,
                                    .n = (size_t)(dims[0] * dims[1]),
                                    .bytes = (const uint8_t *)floats};
    struct qdqi_params p = {
        .format = QDQI_TO_INT8, .axis = 1, .n = (size_t)columns, .scales = scales};
    const struct qdqi_made *made = qdqi_integers_new(arena, &w, &p);
    ck_assert_int_eq(made->write(made, &to.sink, &err), QDQ_OK);
    qdqi_arena_free(&arena);
}

static void
do_integers(size_t n, struct result *ret)
{
    integers(1, n, ret);
}

static void
do_integers_each(size_t n, struct result *ret)
{
    integers(37, n, ret);
}

/* Finds the scales of blocks of 8 along the first axis. The elements are read where they lie, or
   are copied from an odd address. */
static void
block_scales(const void *elements, size_t n, struct result *ret)
{
    struct qdq_error err = {0};
    struct qdqi_arena *arena = qdqi_arena_new();
    const int64_t dims[] = {(int64_t)(n / 37 / 8 * 8), 37};
    const struct qdqi_constant w = {.dtype = QDQI_FLOAT32,
                                    .rank = 2,
                                    .dims = dims,
                                    .n = (size_t)(dims[0] * dims[1]),
                                    .bytes = elements};
    struct qdqi_params p = {.format = QDQI_TO_INT4, .axis = 0, .block = 8};
    if (w.n > 0) {
        ck_assert_int_eq(weight_params(&w, "w", arena, &p, &err), QDQ_OK);
        ck_assert_uint_eq(p.n, w.n / 8);
        memcpy(ret->bytes, p.scales, p.n * sizeof *p.scales);
    }
    qdqi_arena_free(&arena);
}

static void
do_block_scales(size_t n, struct result *ret)
{
    block_scales(floats, n, ret);
}

static void
do_block_scales_copied(size_t n, struct result *ret)
{
    static struct result in_place;
    block_scales(floats, n, &in_place);
    block_scales(data, n, ret);
    ck_assert_mem_eq(in_place.bytes, ret->bytes, n);
}

static const struct {
    const char *name;
    void (*run)(size_t n, struct result *ret);
} loops[] = {
    {"extremes", do_extremes},
    {"amax", do_amax},
    {"columns", do_columns},
    {"bins", do_bins},
    {"widen", do_widen},
    {"halves", do_halves},
    {"bfloats", do_bfloats},
    {"noise", do_noise},
    {"fake", do_fake},
    {"fake in place", do_fake_in_place},
    {"fake each", do_fake_each},
    {"integers", do_integers},
    {"integers each", do_integers_each},
    {"block scales", do_block_scales},
    {"block scales, copied", do_block_scales_copied},
};

enum { N_LOOPS = sizeof loops / sizeof *loops };

static const size_t sizes[] = {1, 7, 37, 500, 1031, 7999, MOST};

/* Compares a level with the plain one; the test's number is that of the level and the
   loop. */
UNIT_LOOP(levels_agree, N_LOOPS *(QDQI_N_SIMD - 1))
{
    static struct result want, got;
    enum qdqi_simd level = (enum qdqi_simd)(_i / N_LOOPS + 1);
    const char *name = loops[_i % N_LOOPS].name;
    if (!qdqi_simd_runs(level)) {
        printf("# %s: %s does not run on this processor, left out\n", name,
               qdqi_simd_name(level));
        return;
    }
    fill();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(&want, 0, sizeof want);
        memset(&got, 0, sizeof got);
        qdqi_simd_use(QDQI_SIMD_PLAIN);
        loops[_i % N_LOOPS].run(sizes[i], &want);
        qdqi_simd_use(level);
        loops[_i % N_LOOPS].run(sizes[i], &got);
        ck_assert_msg(memcmp(&want, &got, sizeof got) == 0, "%s of %zu with %s", name,
                      sizes[i], qdqi_simd_name(level));
    }
}

enum { LINES = 7, COLUMNS = 261 };

/* A panel of doubles that rows are subtracted from, and one of floats that they are added to. */
struct updated {
    double exact[LINES][COLUMNS];
    float quick[COLUMNS][QDQI_PANEL];
};

static double
fraction(uint64_t *state)
{
    return ldexp((double)draw(state) - 0x1p31, -31);
}

/* Updates a panel of each kind by a number of rows, of which few outputs have a number where
   `sparse`. */
static void
update(size_t rows, bool sparse, struct updated *ret)
{
    static double from[QDQI_STEP_COLUMNS][COLUMNS], by[LINES][QDQI_STEP_COLUMNS];
    static float quick_from[QDQI_AT_ONCE][COLUMNS], quick_by[QDQI_AT_ONCE][QDQI_PANEL];
    const size_t n = rows < QDQI_STEP_COLUMNS ? rows : QDQI_STEP_COLUMNS;
    struct qdqi_subtraction exact = {.n = n, .first = 3, .end = COLUMNS};
    struct qdqi_update quick = {.n = rows, .first = 3, .end = COLUMNS};
    uint64_t state = 5;
    for (size_t r = 0; r < rows; r++) {
        quick.rows[r] = quick_from[r];
        for (size_t i = 0; i < COLUMNS; i++)
            quick_from[r][i] = (float)fraction(&state) / 3;
        for (size_t line = 0; line < QDQI_PANEL; line++)
            quick_by[r][line] = sparse && (line + r) % 23 ? 0 : (float)fraction(&state);
    }
    for (size_t r = 0; r < n; r++) {
        exact.rows[r] = from[r];
        for (size_t i = 0; i < COLUMNS; i++)
            from[r][i] = fraction(&state) / 3;
        for (size_t line = 0; line < LINES; line++)
            by[line][r] = fraction(&state) / 7;
    }
    for (size_t i = 0; i < LINES * COLUMNS; i++)
        ret->exact[i / COLUMNS][i % COLUMNS] = fraction(&state);
    for (size_t i = 0; i < COLUMNS * QDQI_PANEL; i++)
        ret->quick[i / QDQI_PANEL][i % QDQI_PANEL] = (float)fraction(&state);
    qdqi_subtract_panel(&exact, by, LINES, ret->exact[0], COLUMNS);
    qdqi_update_panel(&quick, quick_by, LINES, ret->quick);
}

/* Fused loops: the test's number is that of the level, and whether few outputs have numbers. */
UNIT_RANGE(fused_levels_agree, 2 * QDQI_SIMD_AVX2, 2 * QDQI_N_SIMD)
{
    static struct updated want, got, plain;
    const enum qdqi_simd level = (enum qdqi_simd)(_i / 2);
    if (!qdqi_simd_runs(level)) {
        printf("# updates: %s does not run on this processor, left out\n",
               qdqi_simd_name(level));
        return;
    }
    for (size_t rows = 1; rows <= QDQI_AT_ONCE; rows++) {
        qdqi_simd_use(QDQI_SIMD_PLAIN);
        update(rows, _i % 2, &plain);
        qdqi_simd_use(QDQI_SIMD_AVX2);
        update(rows, _i % 2, &want);
        qdqi_simd_use(level);
        update(rows, _i % 2, &got);
        ck_assert_msg(memcmp(&want, &got, sizeof got) == 0, "%zu rows with %s", rows,
                      qdqi_simd_name(level));
        for (size_t i = 0; i < LINES * COLUMNS; i++)
            ck_assert_double_le(fabs(got.exact[i / COLUMNS][i % COLUMNS] -
                                     plain.exact[i / COLUMNS][i % COLUMNS]),
                                (double)rows * 0x1p-52);
        for (size_t i = 0; i < COLUMNS * QDQI_PANEL; i++)
            ck_assert_double_le(
                fabs((double)got.quick[i / QDQI_PANEL][i % QDQI_PANEL] -
                     (double)plain.quick[i / QDQI_PANEL][i % QDQI_PANEL]),
                (double)(rows + 8) * 0x1p-22);
    }
}

/* An update is the sum of products by the definition, for outputs and places that are no
   multiples of a register, dense and sparse. */
UNIT_LOOP(updates_are_sums_of_products, 150)
{
    static float from[QDQI_AT_ONCE][COLUMNS], by[QDQI_AT_ONCE][QDQI_PANEL];
    static float got[COLUMNS][QDQI_PANEL];
    struct qdqi_update u = {.n = 1 + (size_t)_i % QDQI_AT_ONCE,
                            .first = (size_t)_i % 40};
    uint64_t state = (uint64_t)_i;
    u.end = u.first + (size_t)_i * 7 % (COLUMNS - u.first);
    const bool sparse = _i % 3 == 0;
    memset(got, 0, sizeof got);
    for (size_t r = 0; r < u.n; r++) {
        u.rows[r] = from[r];
        for (size_t i = 0; i < COLUMNS; i++)
            from[r][i] = (float)fraction(&state);
        for (size_t line = 0; line < QDQI_PANEL; line++)
            by[r][line] = sparse && (line + r) % 31 ? 0 : (float)fraction(&state);
    }
    qdqi_update_panel(&u, by, LINES, got);
    for (size_t i = 0; i < COLUMNS; i++)
        for (size_t line = 0; line < LINES; line++) {
            double want = 0;
            for (size_t r = 0; r < u.n && i >= u.first && i < u.end; r++)
                want += (double)from[r][i] * (double)by[r][line];
            ck_assert_double_eq_tol((double)got[i][line], want, 1e-5);
        }
}

/* --- histograms with zeros ------------------------------------------------ */

enum { MANY = (1 << 16) + (1 << 14) + 77, KINDS = 5 };

/* Fills `to` with numbers of which so many of 16 are zeros, in runs and alone. */
static void
fill_with_zeros(int of_16, float to[MANY])
{
    uint64_t state = 9;
    for (size_t i = 0; i < MANY; i++) {
        uint32_t run = (uint32_t)i / 64 % 2 ? (uint32_t)i / 128 : draw(&state);
        float x = ldexpf((float)draw(&state), -32);
        to[i] = (int)(run % 16) < of_16 ? 0 : i % 3 ? x : -x * x;
    }
}

/* Every level counts as one value after the other is counted, however many are zeros. The
   test's number is that of the level. */
UNIT_RANGE(zeros_are_counted, QDQI_SIMD_PLAIN, QDQI_N_SIMD)
{
    static const int shares[KINDS] = {0, 1, 8, 15, 16};
    static float values[MANY];
    enum qdqi_simd level = (enum qdqi_simd)_i;
    if (!qdqi_simd_runs(level)) {
        printf("# zeros: %s does not run on this processor, left out\n",
               qdqi_simd_name(level));
        return;
    }
    qdqi_simd_use(level);
    for (int kind = 0; kind < KINDS; kind++) {
        struct qdqi_histogram got;
        uint64_t want[QDQI_BINS] = {0};
        fill_with_zeros(shares[kind], values);
        values[MANY - 1] = 1.5F;
        qdqi_histogram_init(&got);
        qdqi_histogram_update(&got, 1.5F, values, MANY);
        for (size_t i = 0; i < MANY; i++)
            want[(size_t)(fabsf(values[i]) * ldexpf(1, -got.exponent))]++;
        ck_assert_msg(memcmp(want, got.counts, sizeof want) == 0,
                      "%d of 16 are zeros, with %s", shares[kind],
                      qdqi_simd_name(level));
    }
}

/* --- approximate errors --------------------------------------------------- */

enum { ELEMENTS = 1000, N_SCALES = QDQI_APPROXIMATE_SCALES };

/* Returns the squared error by the definition. */
static double
exact_error(const float *x, size_t n, const struct qdqi_approximate_scales *s, size_t k)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] -
                   (double)qdqi_fake_integer(x[i], s->scales[k], s->low[k], s->high[k]);
        sum += d * d;
    }
    return sum;
}

static void
draw_elements(float *x, size_t n, uint64_t *state)
{
    memset(x, 0, (ELEMENTS + QDQI_APPROXIMATE_PAD) * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)ldexp((double)draw(state) - 0x1p31, -31);
}

/* Scales from 0.3 to 1 of the one that reaches the largest element, with zero points. */
static void
choose_scales(const struct qdqi_approximate *a, size_t n,
              struct qdqi_approximate_scales *s)
{
    s->n = n;
    for (size_t k = 0; k < n; k++) {
        s->scales[k] = a->largest / 7 * (0.3F + 0.7F * (float)k / (float)n);
        s->low[k] = -8 - (float)(k % 3);
        s->high[k] = s->low[k] + 15;
    }
}

/* The errors are the same at all levels that fuse, and the exact ones are within the bounds
   of every level, which lie close together. */
UNIT_RANGE(bounds_hold_the_exact_error, QDQI_SIMD_PLAIN, QDQI_N_SIMD)
{
    struct qdqi_approximate_scales s;
    double errors[N_SCALES], fused[N_SCALES];
    struct qdqi_approximate a;
    enum qdqi_simd level = (enum qdqi_simd)_i;
    uint64_t state = 4;
    float x[ELEMENTS + QDQI_APPROXIMATE_PAD];
    if (!qdqi_simd_runs(level)) {
        printf("# bounds: %s does not run on this processor, left out\n",
               qdqi_simd_name(level));
        return;
    }
    for (size_t n = 1; n <= ELEMENTS; n += 37) {
        draw_elements(x, n, &state);
        ck_assert(qdqi_approximate_init(&a, x, n));
        choose_scales(&a, 1 + n % N_SCALES, &s);
        qdqi_simd_use(level);
        qdqi_approximate_errors(&a, &s, errors);
        for (size_t k = 0; k < s.n; k++) {
            double exact = exact_error(x, n, &s, k);
            double most = qdqi_approximate_most(&a, errors[k]);
            ck_assert_double_ge(most, exact);
            ck_assert_double_ge(qdqi_approximate_limit(&a, exact), errors[k]);
            ck_assert_double_le(most - errors[k], 1e-5 * a.norm * a.norm);
        }
        if (level == QDQI_SIMD_PLAIN)
            continue;
        qdqi_simd_use(QDQI_SIMD_AVX2);
        qdqi_approximate_errors(&a, &s, fused);
        ck_assert_mem_eq(fused, errors, s.n * sizeof *fused);
    }
}

/* All integers between two numbers leave at least the error of what is beyond. */
UNIT_LOOP(what_is_clipped_is_no_more_than_the_error, QDQI_N_SIMD)
{
    struct qdqi_approximate_scales s;
    struct qdqi_approximate a;
    enum qdqi_simd level = (enum qdqi_simd)_i;
    uint64_t state = 5;
    float x[ELEMENTS + QDQI_APPROXIMATE_PAD];
    if (!qdqi_simd_runs(level))
        return;
    qdqi_simd_use(level);
    for (size_t n = 1; n <= ELEMENTS; n += 37) {
        draw_elements(x, n, &state);
        ck_assert(qdqi_approximate_init(&a, x, n));
        choose_scales(&a, N_SCALES, &s);
        for (size_t k = 0; k < s.n; k++) {
            double low = (double)s.low[k] * (double)s.scales[k], clipped = 0;
            double high = (double)s.high[k] * (double)s.scales[k];
            for (size_t i = 0; i < n; i++) {
                double d = fmax(fmax((double)x[i] - high, low - (double)x[i]), 0);
                clipped += d * d;
            }
            double beyond = qdqi_approximate_beyond(&a, low, high);
            ck_assert_double_le(beyond, clipped);
            ck_assert_double_le(beyond, exact_error(x, n, &s, k));
            ck_assert_double_ge(beyond, 0.999 * clipped - 1e-5 * a.norm * a.norm);
        }
    }
}

/* The level in use is the highest that runs. */
UNIT_TEST(the_highest_is_used)
{
    enum qdqi_simd used = qdqi_simd();
    ck_assert(qdqi_simd_runs(used));
    for (int i = used + 1; i < QDQI_N_SIMD; i++)
        ck_assert(!qdqi_simd_runs((enum qdqi_simd)i));
}

UNIT_SUITE("engine/simd")
