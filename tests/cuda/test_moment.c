/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares second moments of the device with those of number/moment.h, which gets the same
 * rows in the same order: sums and products must be the same, since both fuse
 * multiplications and additions (on a processor that does not, they agree to 2^-11 a row).
 * The rows are cut out of the input by this file's own code.
 */
#include "config.h"

#include "cuda.h"
#include "numbers/arithmetic/moment.h"
#include "numbers/arithmetic/simd.h"

enum { MAX_ROWS = 700, MAX_INPUT = 1 << 20 };

static float input[MAX_INPUT], row[QDQI_MOMENT_WHOLE * 2];
static float *on_device;

/* An input with one sample, and the window over it. */
struct shape {
    unsigned axes;
    size_t groups, channels; /* of one group */
    int64_t in[3], kernel[3], stride[3], dilation[3], begin[3], end[3];
    size_t wanted;
    double offset;
};

static const struct shape shapes[] = {
    {0, 1, 1, {300}, {0}, {0}, {0}, {0}, {0}, 300, 0}, /* 1 element a row */
    {0, 1, 16, {256}, {0}, {0}, {0}, {0}, {0}, 256, 0},
    {0, 1, 17, {257}, {0}, {0}, {0}, {0}, {0}, 100, 0.5},
    {0, 1, 64, {600}, {0}, {0}, {0}, {0}, {0}, 511, 0.25},
    {0, 1, 200, {700}, {0}, {0}, {0}, {0}, {0}, 700, 0},
    {0, 1, 4700, {40}, {0}, {0}, {0}, {0}, {0}, 40, 0}, /* in blocks */
    {1, 1, 3, {100}, {5}, {2}, {3}, {4}, {1}, 1000, 0},
    {2, 1, 3, {20, 21}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 420, 0},
    {2, 1, 40, {14, 14}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 30, 0.75},
    {2, 6, 1, {19, 9}, {5, 3}, {1, 2}, {1, 1}, {2, 1}, {2, 1}, 1000, 0}, /* depthwise */
    {2, 2, 20, {16, 16}, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}, 33, 0.125},
    {3,
     1,
     2,
     {6, 7, 8},
     {3, 2, 3},
     {1, 1, 2},
     {1, 2, 1},
     {1, 0, 2},
     {1, 2, 0},
     99,
     0.5},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* --- the device ----------------------------------------------------------- */

static struct qdqi_cuda_moment
open_moment(size_t groups, const struct qdqi_moment *host)
{
    struct qdqi_cuda_moment m = {
        .groups = groups, .k = host->k, .block = host->block, .tile = host->tile};
    m.blocks = (m.k + m.block - 1) / m.block;
    m.tiles = (m.block + m.tile - 1) / m.tile;
    size_t products = groups * qdqi_moment_products(m.k) * sizeof *m.products;
    size_t sums = groups * m.k * sizeof *m.sums, rows = groups * sizeof *m.rows;
    size_t pending = groups * QDQI_CUDA_MOMENT_ROWS * m.blocks * m.tiles * m.tile *
                     sizeof *m.pending;
    m.products = device_memory(products);
    m.sums = device_memory(sums);
    m.rows = device_memory(rows);
    m.pending = device_memory(pending);
    fine(gpu->clear(m.products, products, stream));
    fine(gpu->clear(m.sums, sums, stream));
    fine(gpu->clear(m.rows, rows, stream));
    fine(gpu->clear(m.pending, pending, stream));
    return m;
}

static void
close_moment(struct qdqi_cuda_moment *m)
{
    finish();
    fine(gpu->release(m->products));
    fine(gpu->release(m->sums));
    fine(gpu->release(m->rows));
    fine(gpu->release(m->pending));
}

/* The rows that are still to be copied, and those that were since the last addition. */
struct taking {
    const struct qdqi_cuda_window *w;
    const struct qdqi_cuda_moment *m;
    struct qdqi_cuda_rows rows;
    size_t n_pending;
};

/* Copies the rows of all pieces. */
static void
take_pieces(struct taking *t)
{
    fine(gpu->moment_gather(t->w, t->m, &t->rows, stream));
    t->n_pending += t->rows.n;
    if (t->n_pending == QDQI_CUDA_MOMENT_ROWS) {
        fine(gpu->moment_add(t->m, t->n_pending, stream));
        t->n_pending = 0;
    }
    t->rows.n = t->rows.n_pieces = 0;
    t->rows.at = t->n_pending;
}

/* Takes a sample in as a session does: pieces end where the pending rows are full, and several
   are copied at once. */
static void
take_on_device(struct taking *t, const float *data, double offset)
{
    for (size_t first = 0, n; first < t->rows.wanted; first += n) {
        size_t room = QDQI_CUDA_MOMENT_ROWS - t->n_pending - t->rows.n;
        size_t left = t->rows.wanted - first;
        n = left < room ? left : room;
        t->rows.pieces[t->rows.n_pieces++] =
            (struct qdqi_cuda_piece){data, first, n, offset};
        t->rows.n += n;
        if (n == room || t->rows.n_pieces == QDQI_CUDA_PIECES)
            take_pieces(t);
    }
}

/* --- the host ------------------------------------------------------------- */

static int64_t
outputs(const struct shape *s, unsigned a)
{
    int64_t reach = (s->kernel[a] - 1) * s->dilation[a] + 1;
    return (s->in[a] + s->begin[a] + s->end[a] - reach) / s->stride[a] + 1;
}

static size_t
n_positions(const struct shape *s)
{
    size_t n = s->axes ? 1 : (size_t)s->in[0];
    for (unsigned a = 0; a < s->axes; a++)
        n *= (size_t)outputs(s, a);
    return n;
}

/* The three axes of an input and a kernel; those that it has not are 1. */
static int64_t
size_at(const int64_t *sizes_by_axis, const struct shape *s, int from_last)
{
    return from_last < (int)s->axes ? sizes_by_axis[(int)s->axes - 1 - from_last] : 1;
}

/* Returns element e of the kernel at an output, in a channel. */
static float
element_of(const struct shape *s, const float *channel, size_t output, size_t e)
{
    size_t at = 0, size = 1;
    for (int last = 0; last < 3; last++) {
        if (last >= (int)s->axes)
            break;
        unsigned a = s->axes - 1 - (unsigned)last;
        int64_t o = (int64_t)(output % (size_t)outputs(s, a));
        int64_t x = o * s->stride[a] - s->begin[a] +
                    (int64_t)(e % (size_t)s->kernel[a]) * s->dilation[a];
        if (x < 0 || x >= s->in[a])
            return 0;
        at += (size_t)x * size;
        size *= (size_t)s->in[a];
        output /= (size_t)outputs(s, a);
        e /= (size_t)s->kernel[a];
    }
    return channel[at];
}

static size_t
kernel_size(const struct shape *s)
{
    return (size_t)(size_at(s->kernel, s, 0) * size_at(s->kernel, s, 1) *
                    size_at(s->kernel, s, 2));
}

static size_t
plane_size(const struct shape *s)
{
    return (size_t)(size_at(s->in, s, 0) * size_at(s->in, s, 1) * size_at(s->in, s, 2));
}

static void
make_row(const struct shape *s, const float *sample, size_t group, size_t position)
{
    size_t kernel = kernel_size(s), plane = plane_size(s);
    if (s->axes == 0) {
        memcpy(row, sample + position * s->channels, s->channels * sizeof *row);
        return;
    }
    for (size_t c = 0; c < s->channels; c++)
        for (size_t e = 0; e < kernel; e++)
            row[c * kernel + e] =
                element_of(s, sample + (group * s->channels + c) * plane, position, e);
}

static void
add_pending(struct qdqi_moment *m)
{
    for (size_t i = 0; i < qdqi_moment_parts(m); i++)
        qdqi_moment_add_part(m, i);
    qdqi_moment_added(m);
}

static void
take_on_host(const struct shape *s, const float *sample, double offset, size_t group,
             size_t wanted, struct qdqi_moment *m)
{
    size_t n = n_positions(s);
    for (size_t r = 0; r < wanted; r++) {
        double at = ((double)r + offset) * (double)n / (double)wanted;
        make_row(s, sample, group, (size_t)at < n ? (size_t)at : n - 1);
        qdqi_moment_put(m, m->n_pending, row);
        if (qdqi_moment_push(m, 1))
            add_pending(m);
    }
}

/* --- comparing ------------------------------------------------------------ */

/* Returns whether two sums of products of so many rows agree. */
static bool
agree(float a, float b, uint64_t rows)
{
    return qdqi_simd() == QDQI_SIMD_PLAIN ? fabsf(a - b) <= 0x1p-11f * (float)rows
                                          : a == b;
}

/* Below the diagonal the host has no sums. */
static void
compare(const struct qdqi_cuda_moment *m, size_t group, struct qdqi_moment *want)
{
    size_t n = qdqi_moment_products(m->k);
    float *products = malloc(n * sizeof *products);
    double *sums = malloc(m->k * sizeof *sums);
    uint64_t rows;
    ck_assert(products && sums);
    from_device(products, m->products + group * n, n * sizeof *products);
    from_device(sums, m->sums + group * m->k, m->k * sizeof *sums);
    from_device(&rows, m->rows + group, sizeof rows);
    ck_assert_uint_eq(rows, want->rows);
    ck_assert_mem_eq(sums, want->sums, m->k * sizeof *sums);
    for (size_t i = 0; i < m->k; i++)
        for (size_t j = i; j < m->k && j / m->block == i / m->block; j++) {
            const float *at = qdqi_moment_product(want, i, j);
            float got = products[at - want->products];
            if (!agree(got, *at, rows))
                ck_abort_msg("elements %zu and %zu: %.9g, not %.9g", i, j, (double)got,
                             (double)*at);
        }
    free(products);
    free(sums);
}

static struct qdqi_cuda_window
window_of(const struct shape *s)
{
    struct qdqi_cuda_window w = {.axes = s->axes,
                                 .elements = s->channels * plane_size(s)};
    for (unsigned a = 0; a < s->axes; a++) {
        w.kernel[a] = (size_t)s->kernel[a];
        w.out[a] = (size_t)outputs(s, a);
        w.stride[a] = s->stride[a];
        w.dilation[a] = s->dilation[a];
        w.begin[a] = s->begin[a];
        w.in[a] = s->in[a];
    }
    return w;
}

/* Takes samples in, on the device and on the host. They overlap in the input, and those of a
   session are not all copied at once. */
static void
check(const struct shape *s, int samples)
{
    struct qdqi_moment host[8];
    size_t positions = n_positions(s);
    size_t k = s->axes ? s->channels * kernel_size(s) : s->channels;
    for (size_t g = 0; g < s->groups; g++)
        ck_assert(qdqi_moment_init(&host[g], k) && qdqi_moment_begin(&host[g]));
    struct qdqi_cuda_moment m = open_moment(s->groups, host);
    const struct qdqi_cuda_window w = window_of(s);
    struct taking t = {.w = &w, .m = &m};
    t.rows.positions = positions;
    t.rows.wanted = s->wanted < positions ? s->wanted : positions;
    to_device(on_device, input, sizeof input);
    for (int i = 0; i < samples; i++) {
        size_t at = (size_t)i * 101;
        double offset = (s->offset + 0.375 * i) - floor(s->offset + 0.375 * i);
        take_on_device(&t, on_device + at, offset);
        if (i % 20 == 3 && t.rows.n > 0)
            take_pieces(&t);
        for (size_t g = 0; g < s->groups; g++)
            take_on_host(s, input + at, offset, g, t.rows.wanted, &host[g]);
    }
    if (t.rows.n > 0)
        take_pieces(&t);
    fine(gpu->moment_add(&m, t.n_pending, stream));
    for (size_t g = 0; g < s->groups; g++) {
        add_pending(&host[g]);
        compare(&m, g, &host[g]);
        qdqi_moment_fini(&host[g]);
    }
    close_moment(&m);
}

static void
fill(uint64_t seed)
{
    for (size_t i = 0; i < MAX_INPUT; i++)
        input[i] = value_of(NORMAL, &seed);
}

static void
setup(void)
{
    on_device = device_memory(sizeof input);
}

static void
teardown(void)
{
    fine(gpu->release(on_device));
}

START_TEST(moments_are_those_of_the_cpu)
{
    fill((uint64_t)_i + 1);
    check(&shapes[_i], is_brief() ? 2 : 25);
}
END_TEST

START_TEST(many_samples_are_copied_at_once)
{
    struct shape few = shapes[_i];
    few.wanted = 1 + (size_t)_i;
    fill(9);
    check(&few, 30);
}
END_TEST

/* A row with a NaN or an infinity is left out, and no other. */
START_TEST(rows_that_are_not_finite_are_left_out)
{
    fill(7);
    input[1000] = _i % 2 ? NAN : -INFINITY;
    check(&shapes[_i], 2);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("cuda/moment");
    TCase *t = tcase_create("moment");
    tcase_add_unchecked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, moments_are_those_of_the_cpu, 0, N_SHAPES);
    tcase_add_loop_test(t, many_samples_are_copied_at_once, 0, N_SHAPES);
    tcase_add_loop_test(t, rows_that_are_not_finite_are_left_out, 0, N_SHAPES);
    suite_add_tcase(s, t);
    return s;
}

CUDA_MAIN(suite)
