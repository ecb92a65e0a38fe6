/* SPDX-License-Identifier: Apache-2.0 */
/* Moments of a layer's input, the patches that they are made of, and rounding by them. */
#include "config.h"

#include "numbers/arithmetic/products.h"
#include "numbers/arithmetic/simd.h"
#include "numbers/range/patches.h"
#include "unit.h"
#include "graph/weights/gptq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float
uniform(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(int32_t)*state / 2147483648.0f;
}

/* --- moments -------------------------------------------------------------- */

/* Does the parts one after the other. */
static void
share(void *arg, void (*do_part)(void *part_arg, size_t i), size_t n, void *part_arg)
{
    (void)arg;
    for (size_t i = 0; i < n; i++)
        do_part(part_arg, i);
}

static void
add_pending(struct qdqi_moment *m)
{
    for (size_t i = 0; i < qdqi_moment_parts(m); i++)
        qdqi_moment_add_part(m, i);
    qdqi_moment_added(m);
}

/* Rows whose elements depend on each other. */
static void
fill_rows(float *rows, size_t n, size_t k, unsigned state)
{
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < k; i++) {
            float x = uniform(&state);
            rows[r * k + i] = i ? 0.8f * rows[r * k + i - 1] + x : x + 0.5f;
        }
}

static void
make_moment(struct qdqi_moment *m, const float *rows, size_t n, size_t k)
{
    ck_assert(qdqi_moment_init(m, k) && qdqi_moment_begin(m));
    for (size_t r = 0; r < n; r++) {
        qdqi_moment_put(m, m->n_pending, rows + r * k);
        if (qdqi_moment_push(m, 1))
            add_pending(m);
    }
    add_pending(m);
}

/* Writes block `b` as it is kept, row behind row. */
static void
write_dense(const struct qdqi_moment *m, size_t b, bool centred, double *to,
            size_t *ret_n)
{
    *ret_n = qdqi_moment_block_size(m, b);
    size_t *places = calloc(*ret_n, sizeof *places);
    ck_assert(places);
    for (size_t i = 0; i < *ret_n; i++)
        places[i] = i;
    const struct qdqi_moment_matrix matrix = {.m = m,
                                              .block = b,
                                              .centred = centred,
                                              .places = places,
                                              .ld = *ret_n,
                                              .to = to};
    for (size_t part = 0; part < qdqi_moment_matrix_parts(m); part++)
        qdqi_moment_write(&matrix, part);
    free(places);
}

/* Row lengths around the tiles' borders, and one that is cut into blocks. */
static const size_t lengths[] = {1, 3, 16, 63, 64, 65, 130, QDQI_MOMENT_WHOLE + 1};

UNIT_ROWS(a_moment_is_the_mean_of_products, lengths)
{
    size_t k = lengths[_i], n = k > 1000 ? 20 : 300, size;
    float *rows = malloc(n * k * sizeof *rows);
    double *got = malloc(k * k * sizeof *got);
    struct qdqi_moment m;
    ck_assert(rows && got);
    fill_rows(rows, n, k, 7);
    make_moment(&m, rows, n, k);
    ck_assert_uint_eq(m.rows, n);
    for (int centred = 0; centred < 2; centred++)
        for (size_t b = 0; b * m.block < k; b++) {
            write_dense(&m, b, centred, got, &size);
            for (size_t i = 0; i < size; i += 1 + size / 7)
                for (size_t j = 0; j < size; j += 1 + size / 5) {
                    double sum = 0, x = 0, y = 0;
                    for (size_t r = 0; r < n; r++) {
                        double a = rows[r * k + b * m.block + i];
                        double c = rows[r * k + b * m.block + j];
                        sum += a * c / (double)n;
                        x += a / (double)n;
                        y += c / (double)n;
                    }
                    ck_assert_double_eq_tol(got[i * size + j],
                                            sum - (centred ? x * y : 0), 1e-5);
                }
        }
    qdqi_moment_fini(&m);
    free(rows);
    free(got);
}

UNIT_TEST(a_row_that_is_not_finite_is_left_out)
{
    const float rows[] = {1, 2, NAN, 1, 3, 4, 1, INFINITY};
    double got[4];
    size_t n;
    struct qdqi_moment m;
    make_moment(&m, rows, 4, 2);
    ck_assert_uint_eq(m.rows, 2);
    write_dense(&m, 0, false, got, &n);
    ck_assert_double_eq(got[0], 5);
    ck_assert_double_eq(got[1], 7);
    ck_assert_double_eq(got[3], 10);
    qdqi_moment_fini(&m);
}

/* Where two numbers are the same in all of n rows, 2 / n of their product is noise; where they do not
   depend on each other, all is. */
UNIT_TEST(few_rows_leave_products_to_chance)
{
    const float same[] = {1, 1, -1, -1, 2, 2, -2, -2},
                apart[] = {1, 1, 1, -1, -1, 1, -1, -1};
    struct qdqi_moment m;
    make_moment(&m, same, 4, 2);
    ck_assert_double_eq_tol(qdqi_moment_noise(&m, false, 4), 0.5, 1e-12);
    ck_assert_double_eq_tol(qdqi_moment_noise(&m, true, 100), 0.02, 1e-12);
    qdqi_moment_fini(&m);
    make_moment(&m, apart, 4, 2);
    ck_assert_double_eq(qdqi_moment_noise(&m, false, 1000), 1);
    qdqi_moment_fini(&m);
}

UNIT_TEST(products_shrink_and_squares_stay)
{
    const float rows[] = {1, 1, -1, -1, 2, 2, -2, -2};
    const size_t places[] = {0, 1};
    double got[4];
    struct qdqi_moment m;
    make_moment(&m, rows, 4, 2);
    const struct qdqi_moment_matrix matrix = {
        .m = &m, .places = places, .ld = 2, .to = got, .shrunk = 0.2};
    qdqi_moment_write(&matrix, 0);
    ck_assert_double_eq(got[0], 2.5);
    ck_assert_double_eq_tol(got[1], 2, 1e-12);
    ck_assert_double_eq_tol(got[2], 2, 1e-12);
    ck_assert_double_eq(got[3], 2.5);
    qdqi_moment_fini(&m);
}

/* All variants give about the sum in float64, and those that fuse the same bits. The product
   of a matrix with itself has nothing below the squares of its diagonal. */
UNIT_RANGE(variants_of_the_inner_loop_agree, 4, 20)
{
    enum { ROWS = 100, STEP = QDQI_PRODUCTS_STEP };
    static const struct qdqi_runs shapes[] = {{1, ROWS, ROWS}, {4, 21, 25}};
    static float a[ROWS * 64], other[ROWS * 64], got[QDQI_N_SIMD][64 * 64];
    size_t width = (size_t)(_i / 4) * STEP;
    const float *b = _i % 2 ? a : other;
    const struct qdqi_runs runs = shapes[_i / 2 % 2];
    enum qdqi_simd here = qdqi_simd();
    fill_rows(a, ROWS, 64, 5);
    fill_rows(other, ROWS, 64, 9);
    memset(got, 0, sizeof got);
    for (int level = 0; level < QDQI_N_SIMD; level++) {
        if (!qdqi_simd_runs((enum qdqi_simd)level))
            continue;
        qdqi_simd_use((enum qdqi_simd)level);
        qdqi_products_add(a, b, ROWS * STEP, runs, width, got[level]);
        for (size_t k = 0; k < width * width; k++) {
            size_t i = k / width, j = k % width;
            double want = 0;
            for (size_t r = 0; r < ROWS && !(a == b && j / STEP < i / STEP); r++)
                if (r % runs.step < runs.rows)
                    want += (double)a[i / STEP * ROWS * STEP + r * STEP + i % STEP] *
                            (double)b[j / STEP * ROWS * STEP + r * STEP + j % STEP];
            ck_assert_double_eq_tol((double)got[level][k], want, 1e-3);
            ck_assert_msg(level <= QDQI_SIMD_AVX2 ||
                              got[level][k] == got[QDQI_SIMD_AVX2][k],
                          "%s %zu", qdqi_simd_name((enum qdqi_simd)level), k);
        }
    }
    qdqi_simd_use(here);
}

/* --- patches -------------------------------------------------------------- */

/* An image of two channels of 3 by 4, and the patches of some convolutions of it that
   stand at the second output in the first row. */
static const struct {
    struct qdqi_window window;
    size_t k, positions;
    float second[8];
} convolutions[] = {
    {{.axes = 2, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}},
     2,
     12,
     {1, 13}},
    {{.axes = 2, .kernel = {2, 2}, .stride = {1, 2}, .dilation = {1, 1}},
     8,
     4,
     {2, 3, 6, 7, 14, 15, 18, 19}},
    {{.axes = 2,
      .kernel = {2, 2},
      .stride = {2, 2},
      .dilation = {1, 1},
      .begin = {1, 1},
      .end = {0, 0}},
     8,
     4,
     {0, 0, 1, 2, 0, 0, 13, 14}},
    {{.axes = 2,
      .kernel = {2, 2},
      .stride = {1, 1},
      .dilation = {2, 2},
      .same_upper = true},
     8,
     12,
     {0, 0, 4, 6, 0, 0, 16, 18}},
};

static void
take(struct qdqi_patches *p, const float *data, size_t rank, const int64_t *dims,
     size_t per_sample, bool fits)
{
    struct qdqi_moments all = {
        .rows = &p, .n = 1, .samples = dims[0], .per_sample = per_sample};
    const struct qdqi_patched input = {data, rank, dims};
    ck_assert(qdqi_patches_add(&all, 0, &input, share, NULL) == fits);
}

UNIT_ROWS(a_patch_is_what_a_convolution_multiplies, convolutions)
{
    const int64_t dims[] = {1, 2, 3, 4};
    float image[24];
    struct qdqi_moment m;
    struct qdqi_patches p = {
        .window = convolutions[_i].window, .groups = 1, .moments = &m};
    for (int i = 0; i < 24; i++)
        image[i] = (float)i;
    ck_assert(qdqi_moment_init(&m, convolutions[_i].k) && qdqi_moment_begin(&m));
    take(&p, image, 4, dims, 1000, true);
    ck_assert_uint_eq(m.rows, convolutions[_i].positions);
    for (size_t i = 0; i < m.k; i++)
        ck_assert_msg(m.pending[m.tile + i] == convolutions[_i].second[i], "%zu: %g", i,
                      (double)m.pending[m.tile + i]);
    qdqi_moment_fini(&m);
}

/* A patch with a number that is not finite is left out; others of the image are not. */
UNIT_TEST(a_patch_that_is_not_finite_is_left_out)
{
    const int64_t dims[] = {1, 2, 3, 4};
    float image[24] = {0};
    struct qdqi_moment m;
    struct qdqi_patches p = {
        .window = convolutions[0].window, .groups = 1, .moments = &m};
    for (int i = 0; i < 12; i++)
        image[i] = 1;
    image[12 + 5] = NAN;
    image[12 + 7] = -INFINITY;
    ck_assert(qdqi_moment_init(&m, 2) && qdqi_moment_begin(&m));
    take(&p, image, 4, dims, 1000, true);
    qdqi_patches_finish(&p, share, NULL);
    ck_assert_uint_eq(m.rows, 10);
    ck_assert_double_eq(m.sums[0], 10);
    ck_assert_double_eq(m.sums[1], 0);
    ck_assert_float_eq(*qdqi_moment_product(&m, 0, 0), 10);
    ck_assert_float_eq(*qdqi_moment_product(&m, 0, 1), 0);
    qdqi_moment_fini(&m);
}

/* Images that are taken whole by products of shifts. Those of the first and of the last row
   are more than are put aside. */
static const struct {
    size_t channels, height, width, n;
} images[] = {
    {16, 3, 3, 70}, {20, 5, 7, 3}, {70, 6, 4, 3}, {130, 9, 14, 3}, {16, 40, 50, 3}};

/* Returns a pixel of the image with zeros around. */
static float
pixel(const float *image, size_t i, size_t c, ptrdiff_t y, ptrdiff_t x)
{
    ptrdiff_t height = (ptrdiff_t)images[i].height, width = (ptrdiff_t)images[i].width;
    bool inside = y >= 0 && y < height && x >= 0 && x < width;
    return inside ? image[((ptrdiff_t)c * height + y) * width + x] : 0;
}

UNIT_ROWS(a_whole_image_gives_the_moment_of_its_patches, images)
{
    size_t channels = images[_i].channels, k = channels * 9;
    size_t height = images[_i].height, width = images[_i].width;
    size_t n = height * width, size = channels * n;
    const int64_t dims[] = {(int64_t)images[_i].n, (int64_t)channels, (int64_t)height,
                            (int64_t)width};
    float *all = calloc(images[_i].n * size, sizeof *all);
    double *want = calloc(k * k, sizeof *want), *got = calloc(k * k, sizeof *got);
    double *means = calloc(k, sizeof *means);
    float *patch = calloc(k, sizeof *patch);
    struct qdqi_moment m;
    struct qdqi_patches p = {.window = {.axes = 2,
                                        .kernel = {3, 3},
                                        .stride = {1, 1},
                                        .dilation = {1, 1},
                                        .begin = {1, 1},
                                        .end = {1, 1}},
                             .groups = 1,
                             .moments = &m};
    size_t got_n;
    fill_rows(all, 1, images[_i].n * size, 21);
    all[size + 5] = INFINITY; /* the second image is left out */
    for (size_t image = 0; image < images[_i].n; image += image ? 1 : 2)
        for (size_t at = 0; at < n; at++) {
            for (size_t i = 0; i < k; i++)
                patch[i] = pixel(all + image * size, (size_t)_i, i / 9,
                                 (ptrdiff_t)(at / width + i % 9 / 3) - 1,
                                 (ptrdiff_t)(at % width + i % 3) - 1);
            for (size_t i = 0; i < k; i++)
                for (size_t j = 0; j < k; j++)
                    want[i * k + j] += (double)patch[i] * (double)patch[j];
            for (size_t i = 0; i < k; i++)
                means[i] += (double)patch[i];
        }
    ck_assert(qdqi_moment_init(&m, k) && qdqi_moment_begin(&m));
    take(&p, all, 4, dims, 1000, true);
    ck_assert_ptr_nonnull(p.shifts);
    ck_assert_uint_eq(m.n_pending, 0);
    qdqi_patches_finish(&p, share, NULL);
    qdqi_patches_fini(&p);
    ck_assert_uint_eq(m.rows, (images[_i].n - 1) * n);
    write_dense(&m, 0, false, got, &got_n);
    for (size_t i = 0; i < k; i++) {
        ck_assert_double_eq_tol(m.sums[i], means[i], 1e-3);
        for (size_t j = 0; j < k; j++)
            ck_assert_double_eq_tol(got[i * k + j], want[i * k + j] / (double)m.rows,
                                    1e-4);
    }
    qdqi_moment_fini(&m);
    free(all);
    free(want);
    free(got);
    free(means);
    free(patch);
}

/* Convolutions of groups whose rows are pending side by side. */
static const struct {
    size_t groups, channels; /* of a group */
    struct qdqi_window window;
} grouped[] = {
    {19,
     1,
     {.axes = 2,
      .kernel = {3, 3},
      .stride = {1, 1},
      .dilation = {1, 1},
      .begin = {1, 1},
      .end = {1, 1}}},
    {4,
     1,
     {.axes = 2,
      .kernel = {5, 5},
      .stride = {2, 1},
      .dilation = {1, 2},
      .same_upper = true}},
    {33, 2, {.axes = 2, .kernel = {2, 4}, .stride = {2, 2}, .dilation = {1, 1}}},
    {16, 3, {.axes = 1, .kernel = {1}, .stride = {1}, .dilation = {1}}},
};

/* Takes samples of 9 by 11 pixels, or of 99, of some groups. */
static void
take_groups(struct qdqi_patches *p, const float *data, size_t samples, size_t channels)
{
    const int64_t n = (int64_t)samples, c = (int64_t)channels;
    const int64_t image[] = {n, c, 9, 11}, line[] = {n, c, 99};
    bool is_image = p->window.axes == 2;
    for (size_t g = 0; g < p->groups; g++)
        ck_assert(qdqi_moment_init(&p->moments[g],
                                   channels / p->groups * (size_t)p->window.kernel[0] *
                                       (is_image ? (size_t)p->window.kernel[1] : 1)));
    ck_assert(qdqi_patches_begin(p));
    take(p, data, is_image ? 4 : 3, is_image ? image : line, 40, true);
    qdqi_patches_finish(p, share, NULL);
    qdqi_patches_fini(p);
}

static void
compare_moments(const struct qdqi_moment *got, const struct qdqi_moment *want)
{
    ck_assert_uint_eq(got->rows, want->rows);
    for (size_t i = 0; i < want->k; i++) {
        ck_assert_double_eq(got->sums[i], want->sums[i]);
        for (size_t j = i; j < want->k; j++)
            ck_assert_float_eq(*qdqi_moment_product(got, i, j),
                               *qdqi_moment_product(want, i, j));
    }
}

/* Rows that are pending side by side give the same bits as those of each group alone. */
static void
compare_groups(size_t which)
{
    enum { SAMPLES = 15, PIXELS = 99 };
    size_t groups = grouped[which].groups, channels = grouped[which].channels;
    size_t size = groups * channels * PIXELS, own = channels * PIXELS;
    float *data = calloc(SAMPLES * size, sizeof *data);
    float *alone = calloc(SAMPLES * own, sizeof *alone);
    struct qdqi_moment together[33], single;
    struct qdqi_patches p = {
        .window = grouped[which].window, .groups = groups, .moments = together};
    fill_rows(data, 1, SAMPLES * size, 31);
    for (size_t i = 0; i < PIXELS; i += 2) /* of the second group */
        data[size + own + i] = NAN;
    data[14 * size + (groups - 1) * own + 50] = -INFINITY;
    take_groups(&p, data, SAMPLES, groups * channels);
    for (size_t g = 0; g < groups; g++) {
        struct qdqi_patches one = {
            .window = grouped[which].window, .groups = 1, .moments = &single};
        for (size_t i = 0; i < SAMPLES; i++)
            memcpy(alone + i * own, data + i * size + g * own, own * sizeof *alone);
        take_groups(&one, alone, SAMPLES, channels);
        compare_moments(&together[g], &single);
        ck_assert(g != 1 || together[1].rows < together[0].rows);
        qdqi_moment_fini(&single);
    }
    for (size_t g = 0; g < groups; g++)
        qdqi_moment_fini(&together[g]);
    free(data);
    free(alone);
}

UNIT_ROWS(groups_side_by_side_give_the_moments_of_each, grouped)
{
    enum qdqi_simd here = qdqi_simd();
    ck_assert(qdqi_lanes_fit(grouped[_i].groups, 25) && !qdqi_lanes_fit(1, 9));
    for (int level = 0; level < QDQI_N_SIMD; level++)
        if (qdqi_simd_runs((enum qdqi_simd)level)) {
            qdqi_simd_use((enum qdqi_simd)level);
            compare_groups((size_t)_i);
        }
    qdqi_simd_use(here);
}

UNIT_TEST(positions_are_spread_and_samples_are_kept_apart)
{
    const int64_t dims[] = {2, 50, 3};
    float data[2 * 50 * 3];
    struct qdqi_moment m;
    struct qdqi_patches p = {.groups = 1, .moments = &m};
    for (size_t i = 0; i < 300; i++)
        data[i] = (float)(i / 3);
    ck_assert(qdqi_moment_init(&m, 3) && qdqi_moment_begin(&m));
    take(&p, data, 3, dims, 5, true);
    ck_assert_uint_eq(m.rows, 10);
    for (size_t i = 0; i < 10; i++) {
        float at = m.pending[i * m.tile];
        ck_assert(at >= (float)i * 10 && at < (float)(i + 1) * 10);
    }
    qdqi_moment_fini(&m);
}

UNIT_TEST(an_input_that_does_not_fit_is_refused)
{
    const int64_t dims[] = {1, 2, 3, 4};
    const float image[24] = {0};
    struct qdqi_moment m;
    struct qdqi_patches matrix = {.groups = 1, .moments = &m};
    struct qdqi_patches convolution = {
        .window = convolutions[1].window, .groups = 1, .moments = &m};
    ck_assert(qdqi_moment_init(&m, 7) && qdqi_moment_begin(&m));
    take(&matrix, image, 4, dims, 1, false);
    take(&convolution, image, 4, dims, 1, false);
    take(&convolution, image, 3, dims, 1, false);
    qdqi_moment_fini(&m);
}

/* --- rounding ------------------------------------------------------------- */

enum { OUTPUTS = 11, K = 70 };

struct layer {
    float weight[OUTPUTS * K], scales[OUTPUTS * K];
    uint32_t scale_of[OUTPUTS * K];
    int16_t integers[OUTPUTS * K];
    struct qdqi_moment moment;
    struct qdqi_gptq r;
};

/* A layer with the scales of its channels, or of blocks of so many elements, for integers
   of -limit to limit. */
static void
make_layer(struct layer *l, size_t block, int limit)
{
    float rows[500 * K];
    unsigned state = 3;
    fill_rows(rows, 500, K, 11);
    make_moment(&l->moment, rows, 500, K);
    for (size_t i = 0; i < OUTPUTS * K; i++) {
        l->weight[i] = uniform(&state);
        l->scales[i] = 0;
    }
    for (size_t i = 0; i < OUTPUTS * K; i++) {
        size_t s = i / K * K + (block ? i % K / block : 0);
        float need = fabsf(l->weight[i]) / (float)limit;
        l->scale_of[i] = (uint32_t)s;
        l->scales[s] = need > l->scales[s] ? need : l->scales[s];
    }
    l->r = (struct qdqi_gptq){.outputs = OUTPUTS,
                              .row = K,
                              .column = 1,
                              .weight = l->weight,
                              .scale_of = l->scale_of,
                              .scales = l->scales,
                              .lowest = -limit,
                              .highest = limit,
                              .moment = &l->moment,
                              .own_scales = true,
                              .integers = l->integers};
}

/* Returns tr(E C E^T) for the layer's integers. */
static double
error_of(const struct layer *l)
{
    static double c[K * K];
    double total = 0;
    size_t n;
    write_dense(&l->moment, 0, l->r.centred, c, &n);
    for (size_t o = 0; o < OUTPUTS; o++)
        for (size_t i = 0; i < K; i++)
            for (size_t j = 0; j < K; j++) {
                size_t a = o * K + i, b = o * K + j;
                double x = (double)l->weight[a] -
                           l->integers[a] * (double)l->scales[l->scale_of[a]];
                double y = (double)l->weight[b] -
                           l->integers[b] * (double)l->scales[l->scale_of[b]];
                total += x * c[i * K + j] * y;
            }
    return total;
}

/* GPTQ as its paper has it: the inverse of C, its Cholesky factor, and updates of the
   weights that are still to be rounded. Writes the integers. */
static void
round_as_the_paper(const struct layer *l, int *integers)
{
    static double h[K][K], inverse[K][K], u[K][K];
    static double flat[K * K];
    size_t order[K], n;
    double mean = 0;
    write_dense(&l->moment, 0, l->r.centred, flat, &n);
    for (size_t i = 0; i < K; i++) {
        size_t at = i;
        for (; at > 0 && flat[order[at - 1] * (K + 1)] < flat[i * (K + 1)]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        mean += flat[i * (K + 1)] / K;
    }
    for (size_t i = 0; i < K; i++)
        for (size_t j = 0; j < K; j++) {
            h[i][j] = flat[order[i] * K + order[j]] + (i == j ? 0.01 * mean : 0);
            inverse[i][j] = i == j;
        }
    for (size_t p = 0; p < K; p++) { /* Gauss and Jordan */
        double pivot = h[p][p];
        for (size_t j = 0; j < K; j++) {
            h[p][j] /= pivot;
            inverse[p][j] /= pivot;
        }
        for (size_t i = 0; i < K; i++) {
            double by = h[i][p];
            for (size_t j = 0; i != p && j < K; j++) {
                h[i][j] -= by * h[p][j];
                inverse[i][j] -= by * inverse[p][j];
            }
        }
    }
    memset(u, 0, sizeof u);
    for (size_t i = 0; i < K; i++) /* inverse = u^T u */
        for (size_t j = i; j < K; j++) {
            double sum = inverse[i][j];
            for (size_t k = 0; k < i; k++)
                sum -= u[k][i] * u[k][j];
            u[i][j] = i == j ? sqrt(sum) : sum / u[i][i];
        }
    for (size_t o = 0; o < OUTPUTS; o++) {
        double w[K];
        for (size_t i = 0; i < K; i++)
            w[i] = (double)l->weight[o * K + order[i]];
        for (size_t i = 0; i < K; i++) {
            double s = (double)l->scales[l->scale_of[o * K + order[i]]];
            double q = fmin(fmax(rint(w[i] / s), l->r.lowest), l->r.highest);
            double e = (w[i] - q * s) / u[i][i];
            integers[o * K + order[i]] = (int)q;
            for (size_t j = i; j < K; j++)
                w[j] -= e * u[i][j];
        }
    }
}

static const struct {
    size_t block;
    int limit;
    bool centred;
} layers[] = {
    {0, 127, false}, {0, 127, true}, {0, 7, false}, {0, 7, true}, {16, 7, true}};

UNIT_ROWS(integers_are_those_of_the_paper, layers)
{
    static struct layer l;
    static int wanted[OUTPUTS * K];
    const char *why;
    make_layer(&l, layers[_i].block, layers[_i].limit);
    l.r.centred = layers[_i].centred;
    round_as_the_paper(&l, wanted);
    ck_assert_int_eq(qdqi_round_gptq(&l.r, &why, NULL), QDQ_OK);
    ck_assert_ptr_null(why);
    for (size_t i = 0; i < OUTPUTS * K; i++)
        ck_assert_int_eq(l.integers[i], wanted[i]);
    qdqi_moment_fini(&l.moment);
}

UNIT_ROWS(each_step_has_less_error, layers)
{
    static struct layer l;
    const char *why;
    make_layer(&l, layers[_i].block, layers[_i].limit);
    l.r.centred = layers[_i].centred;
    qdqi_round_nearest(&l.r);
    double nearest = error_of(&l);
    ck_assert_int_eq(qdqi_round_gptq(&l.r, &why, NULL), QDQ_OK);
    double compensated = error_of(&l);
    ck_assert(compensated < nearest / 2);
    l.r.refine = true;
    ck_assert_int_eq(qdqi_round_gptq(&l.r, &why, NULL), QDQ_OK);
    double before = error_of(&l);
    ck_assert(layers[_i].limit == 127 || before < compensated);
    l.r.joint = true;
    ck_assert(qdqi_round_gptq(&l.r, &why, NULL) == QDQ_OK && error_of(&l) <= before);
    for (size_t i = 0; i < OUTPUTS * K; i++)
        ck_assert(l.integers[i] >= l.r.lowest && l.integers[i] <= l.r.highest);
    qdqi_moment_fini(&l.moment);
}

UNIT_TEST(an_input_without_variation_is_rounded_to_the_nearest)
{
    static struct layer l;
    static float rows[3 * K];
    static int16_t nearest[OUTPUTS * K];
    const char *why;
    make_layer(&l, 0, 127);
    qdqi_round_nearest(&l.r);
    memcpy(nearest, l.integers, sizeof nearest);
    qdqi_moment_fini(&l.moment);
    make_moment(&l.moment, rows, 3, K);
    ck_assert_int_eq(qdqi_round_gptq(&l.r, &why, NULL), QDQ_OK);
    ck_assert_str_eq(why, "the input of its layer was always the same");
    ck_assert_int_eq(memcmp(nearest, l.integers, sizeof nearest), 0);
    qdqi_moment_fini(&l.moment);
}

UNIT_TEST(a_moment_that_is_not_positive_definite_says_so)
{
    static struct layer l;
    static int16_t nearest[OUTPUTS * K];
    const char *why;
    make_layer(&l, 0, 127);
    qdqi_round_nearest(&l.r);
    memcpy(nearest, l.integers, sizeof nearest);
    *qdqi_moment_product(&l.moment, 0, 1) =
        100 *
        (*qdqi_moment_product(&l.moment, 0, 0) + *qdqi_moment_product(&l.moment, 1, 1));
    ck_assert_int_eq(qdqi_round_gptq(&l.r, &why, NULL), QDQ_OK);
    ck_assert_ptr_nonnull(strstr(why, "not positive definite"));
    ck_assert_int_eq(memcmp(nearest, l.integers, sizeof nearest), 0);
    qdqi_moment_fini(&l.moment);
}

UNIT_SUITE("gptq")
