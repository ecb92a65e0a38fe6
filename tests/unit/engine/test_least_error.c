/* SPDX-License-Identifier: Apache-2.0 */
/* The scale with the least squared error is the one that trying all candidates finds, bit
   for bit, whatever the search leaves out. */
#include "config.h"

#include "numbers/arithmetic/format.h"
#include "graph/weights/scales.h"
#include "unit.h"
#include "weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COARSE = 64, FINE = 16, MOST = 300 };

/* --- the definition -------------------------------------------------------- */

/* Adds in the order of the search: four sums in each 256 elements. */
static double
error_of(const float *x, size_t n, float scale, struct qdqi_rounding r)
{
    double all = 0;
    for (size_t from = 0; from < n; from += 256) {
        size_t m = n - from < 256 ? n - from : 256, i = 0;
        double sums[4] = {0}, sum = 0;
        for (; i + 4 <= m; i += 4)
            for (size_t k = 0; k < 4; k++) {
                float v = x[from + i + k];
                double d = (double)v - (double)qdqi_fake_number(v, scale, r);
                sums[k] += d * d;
            }
        for (; i < m; i++) {
            float v = x[from + i];
            double d = (double)v - (double)qdqi_fake_number(v, scale, r);
            sum += d * d;
        }
        for (size_t k = 0; k < 4; k++)
            sum += sums[k];
        all += sum;
    }
    return all;
}

struct found {
    float scale;
    int32_t zero_point;
    double error;
    int share;
};

static void
try_one(const float *x, size_t n, const struct qdqi_params *p, enum qdqi_dtype dtype,
        int share, struct found *best)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)p->format);
    bool symmetric = qdqi_weight_is_symmetric(p->format);
    double part = (double)share / (COARSE * FINE);
    int32_t zero_point = qdqi_zero_point(p, 0);
    double high = (double)p->scales[0] * ((double)row->highest - zero_point);
    double low = (double)p->scales[0] * ((double)row->lowest - zero_point);
    struct found tried = {.share = share};
    qdqi_range_params(p->format, symmetric, dtype, (symmetric ? -high : low) * part,
                      high * part, &tried.scale, &tried.zero_point);
    if (!(tried.scale < p->scales[0]))
        return;
    tried.error =
        error_of(x, n, tried.scale, qdqi_rounding_of(p->format, tried.zero_point));
    if (tried.error < best->error)
        *best = tried;
}

static struct found
find(const float *x, size_t n, const struct qdqi_params *p, enum qdqi_dtype dtype)
{
    int32_t zero_point = qdqi_zero_point(p, 0);
    struct qdqi_rounding r = qdqi_rounding_of(p->format, zero_point);
    struct found best = {p->scales[0], zero_point, error_of(x, n, p->scales[0], r),
                         COARSE * FINE};
    for (int k = COARSE - 1; k > 0; k--)
        try_one(x, n, p, dtype, k * FINE, &best);
    int middle = best.share;
    for (int k = FINE - 1; k > -FINE; k--)
        if (k != 0 && middle + k < COARSE * FINE)
            try_one(x, n, p, dtype, middle + k, &best);
    return best;
}

/* --- weights --------------------------------------------------------------- */

static uint64_t state;

/* Returns a number below n. */
static unsigned
below(unsigned n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(state >> 33) % n;
}

static float
normal(void)
{
    float sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (float)below(1 << 20) / (1 << 20);
    return sum - 6;
}

static float
draw(int kind, size_t i)
{
    switch (kind) {
    case 0:
        return normal() * 0.02F;
    case 1: /* multiples of one step: many candidates without an error, many ties */
        return (float)((int)below(15) - 7) * 0.125F;
    case 2: /* an outlier */
        return i % 37 == 5 ? 9 : normal() * 0.1F;
    case 3:
        return fabsf(normal());
    case 4:
        return normal() * 1e-20F;
    case 5:
        return normal() * 1e20F;
    case 6: /* all the same size */
        return below(2) ? 0.7F : -0.7F;
    case 7: /* numbers halfway between integers */
        return (float)((int)below(14) - 7) + 0.5F;
    case 8:
        return i ? 0 : 1e-38F;
    default:
        return 0;
    }
}

enum { KINDS = 10 };

static const enum qdqi_format formats[] = {QDQI_TO_INT4, QDQI_TO_UINT4, QDQI_TO_INT8,
                                           QDQI_TO_UINT8, QDQI_TO_FLOAT8E4M3FN};
static const int64_t blocks[] = {1, 16, 32, 100, 128, 256, MOST};

/* One weight of one block, for each format and each size of a block. */
UNIT_LOOP(a_search_finds_what_all_candidates_find,
          KINDS *(int)(sizeof formats / sizeof *formats))
{
    int kind = _i % KINDS;
    enum qdqi_format format = formats[_i / KINDS];
    state = (uint64_t)_i;
    for (size_t b = 0; b < 70; b++) {
        int64_t n = blocks[b % (sizeof blocks / sizeof *blocks)];
        float x[MOST];
        for (size_t i = 0; i < (size_t)n; i++)
            x[i] = draw(kind, i);
        struct qdqi_constant w = {QDQI_FLOAT32,       1,   &n, (size_t)n,
                                  (const uint8_t *)x, NULL};
        struct qdqi_params p = {.format = format, .axis = 0, .block = n};
        struct qdqi_arena *arena = qdqi_arena_new();
        ck_assert_int_eq(weight_params(&w, "w", arena, &p, NULL), 0);
        struct found want = find(x, (size_t)n, &p, QDQI_FLOAT32);
        ck_assert_int_eq(qdqi_weight_narrow(&w, &p, NULL), 0);
        ck_assert_mem_eq(&p.scales[0], &want.scale, sizeof want.scale);
        ck_assert_int_eq(qdqi_zero_point(&p, 0), want.zero_point);
        qdqi_arena_free(&arena);
    }
}

/* Narrows one block, gathered element by element. */
static float
alone(const struct qdqi_constant *w, const struct qdqi_params *of, size_t at, size_t n,
      size_t step, struct qdqi_arena *arena, int32_t *ret_zero_point)
{
    float x[MOST];
    const int64_t dim = (int64_t)n;
    for (size_t i = 0; i < n; i++)
        memcpy(&x[i], w->bytes + (at + i * step) * sizeof *x, sizeof *x);
    struct qdqi_constant one = {QDQI_FLOAT32, 1, &dim, n, (const uint8_t *)x, NULL};
    struct qdqi_params p = {.format = of->format, .axis = 0, .block = dim};
    ck_assert_int_eq(weight_params(&one, "w", arena, &p, NULL), 0);
    ck_assert_int_eq(qdqi_weight_narrow(&one, &p, NULL), 0);
    *ret_zero_point = qdqi_zero_point(&p, 0);
    return p.scales[0];
}

/* Shapes whose blocks are columns; the last block of each is shorter in some. */
static const struct {
    int64_t outer, rows, columns, block;
} shapes[] = {
    {1, 64, 16, 32}, {1, 70, 37, 32}, {3, 48, 5, 16},    {2, 130, 33, 128},
    {1, 40, 1, 16},  {5, 1, 50, 16},  {1, 280, 20, 280},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* Blocks that are gathered together have the scales that they have alone. */
UNIT_LOOP(columns_are_as_if_they_were_alone, N_SHAPES)
{
    size_t outer = (size_t)shapes[_i].outer, rows = (size_t)shapes[_i].rows,
           columns = (size_t)shapes[_i].columns, block = (size_t)shapes[_i].block;
    const int64_t dims[] = {shapes[_i].outer, shapes[_i].rows, shapes[_i].columns};
    size_t n = outer * rows * columns, n_blocks = (rows + block - 1) / block;
    float *x = malloc(n * sizeof *x);
    state = (uint64_t)_i;
    for (size_t i = 0; i < n; i++)
        x[i] = normal();
    struct qdqi_constant w = {QDQI_FLOAT32, 3, dims, n, (const uint8_t *)x, NULL};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        struct qdqi_params p = {
            .format = formats[f], .axis = 1, .block = shapes[_i].block};
        struct qdqi_arena *arena = qdqi_arena_new();
        ck_assert_int_eq(weight_params(&w, "w", arena, &p, NULL), 0);
        ck_assert_int_eq(qdqi_weight_narrow(&w, &p, NULL), 0);
        ck_assert_uint_eq(p.n, outer * n_blocks * columns);
        for (size_t i = 0; i < p.n; i++) {
            size_t b = i / columns % n_blocks, o = i / columns / n_blocks;
            size_t at = (o * rows + b * block) * columns + i % columns;
            size_t length = rows - b * block < block ? rows - b * block : block;
            int32_t zero_point;
            float scale = alone(&w, &p, at, length, columns, arena, &zero_point);
            ck_assert_mem_eq(&p.scales[i], &scale, sizeof scale);
            ck_assert_int_eq(qdqi_zero_point(&p, i), zero_point);
        }
        qdqi_arena_free(&arena);
    }
    free(x);
}

/* Blocks of zeros get the median of the others. */
UNIT_LOOP(blocks_of_zeros_get_the_median, 20)
{
    enum { BLOCKS = 101, BLOCK = 4 };
    float x[BLOCKS * BLOCK] = {0};
    const int64_t dims[] = {BLOCKS * BLOCK};
    struct qdqi_constant w = {QDQI_FLOAT32,       1,   dims, BLOCKS * BLOCK,
                              (const uint8_t *)x, NULL};
    size_t dead = (size_t)_i * 7 % BLOCKS;
    for (size_t i = 0; i < BLOCKS; i++) /* 1 … 100 in some order, and one of zeros */
        x[i * BLOCK] = i == dead ? 0 : (float)((i + 37 * (size_t)_i) % BLOCKS + 1);
    float all[BLOCKS];
    size_t n = 0;
    for (size_t i = 0; i < BLOCKS; i++)
        if (i != dead)
            all[n++] = x[i * BLOCK];
    for (size_t i = 1; i < n; i++) /* sorts */
        for (size_t k = i; k > 0 && all[k] < all[k - 1]; k--) {
            float swapped = all[k];
            all[k] = all[k - 1];
            all[k - 1] = swapped;
        }
    struct qdqi_params p = {.format = QDQI_TO_INT4, .axis = 0, .block = BLOCK};
    struct qdqi_arena *arena = qdqi_arena_new();
    ck_assert_int_eq(weight_params(&w, "w", arena, &p, NULL), 0);
    ck_assert_float_eq(p.scales[dead], all[n / 2] / 7);
    qdqi_arena_free(&arena);
}

UNIT_SUITE("least_error")
