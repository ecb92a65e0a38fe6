/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms on the device have exactly the counts of number/histogram.c. */
#include "config.h"

#include "cuda.h"

static float wide[MAX_SIZE];
static _Alignas(16) uint8_t data[MAX_SIZE * sizeof(float)];
static uint8_t *memory;
static struct qdqi_cuda_histogram *histogram;

static void
setup(void)
{
    memory = device_memory(sizeof data);
    histogram = device_memory(2 * sizeof *histogram);
}

static void
teardown(void)
{
    fine(gpu->release(memory));
    fine(gpu->release(histogram));
}

/* How data are added: in two passes, in one, or the first data in two and all others in one, as
   a session does it. */
enum way { TWO_PASSES, ONE_PASS, AS_A_SESSION, N_WAYS };
static enum way way;
static bool is_first; /* nothing was added yet */

static int
update(int type, const void *at, size_t n)
{
    bool twice = way == TWO_PASSES || (way == AS_A_SESSION && is_first);
    is_first = false;
    return (twice ? gpu->histogram_update : gpu->histogram_continue)(type, at, n,
                                                                     histogram, stream);
}

/* The CPU's histogram with its extremes. */
struct want {
    struct qdqi_histogram histogram;
    struct qdqi_extremes extremes;
};

static void
begin(struct want *w)
{
    qdqi_histogram_init(&w->histogram);
    w->extremes = QDQI_NO_EXTREMES;
    is_first = true;
    fine(gpu->histogram_init(histogram, 2, stream));
}

/* Adds the same data to the histogram of the CPU and to that of the device. */
static void
take(struct want *w, int type, enum kind kind, float factor, size_t n, size_t offset)
{
    struct qdqi_extremes piece = QDQI_NO_EXTREMES;
    uint8_t *at = memory + offset * size_of(type);
    make(type, kind, n + offset, n, data, wide);
    for (size_t i = 0; type == QDQI_FLOAT32 && factor != 1 && i < n; i++)
        ((float *)data)[i] = wide[i] *= factor;
    qdqi_extremes_update(&piece, wide, n);
    qdqi_extremes_merge(&w->extremes, &piece);
    if (n > 0 && qdqi_extremes_finite(&piece))
        qdqi_histogram_update(&w->histogram, qdqi_extremes_amax(&piece), wide, n);
    to_device(at, data, n * size_of(type));
    fine(update(type, at, n));
}

static void
check(const struct want *w, const char *what, size_t n)
{
    static struct qdqi_cuda_histogram got;
    from_device(&got, histogram, sizeof got);
    if (got.extremes.min != w->extremes.min || got.extremes.max != w->extremes.max)
        ck_abort_msg("%s, %zu elements: the extremes differ", what, n);
    if (got.blocks != 0 || !qdqi_extremes_empty(&got.piece))
        ck_abort_msg("%s, %zu elements: the piece has not ended", what, n);
    for (size_t j = 0; j < QDQI_BINS; j++)
        if (got.added[j])
            ck_abort_msg("%s, %zu elements: bin %zu of the piece remains", what, n, j);
    if (got.histogram.exponent != w->histogram.exponent)
        ck_abort_msg("%s, %zu elements: bins of 2^%d, not 2^%d", what, n,
                     got.histogram.exponent, w->histogram.exponent);
    for (size_t j = 0; j < QDQI_BINS; j++)
        if (got.histogram.counts[j] != w->histogram.counts[j])
            ck_abort_msg("%s, %zu elements: %llu in bin %zu, not %llu", what, n,
                         (unsigned long long)got.histogram.counts[j], j,
                         (unsigned long long)w->histogram.counts[j]);
}

static struct want want;

START_TEST(counts_are_those_of_the_cpu)
{
    size_t n = sizes[_i / 2];
    way = _i % 2 ? ONE_PASS : TWO_PASSES;
    for (size_t t = 0; t < 2; t++)
        for (size_t o = 0; o < N_OFFSETS; o++)
            for (int kind = 0; kind < N_KINDS; kind++) {
                begin(&want);
                take(&want, types[t], (enum kind)kind, 1, n, offsets[o]);
                check(&want, qdqi_dtype_name(types[t]), n);
                ck_assert(kind == BITS || qdqi_histogram_total(&want.histogram) == n);
            }
}
END_TEST

/* From one tensor to the next the range doubles any number of times, or shrinks. */
START_TEST(bins_are_joined_as_on_the_cpu)
{
    way = (enum way)(_i % N_WAYS);
    begin(&want);
    take(&want, QDQI_FLOAT32, NORMAL, 0x1p-100f, 5000, 0);
    for (int i = 0; i < 6; i++) {
        float factor = ldexpf(1, -100 + _i / N_WAYS * i);
        take(&want, QDQI_FLOAT32, NORMAL, factor, 4001, 1);
        check(&want, "grown", (size_t)_i);
        take(&want, QDQI_FLOAT32, RELU, factor / 64, 999, 2);
        check(&want, "smaller", (size_t)_i);
    }
}
END_TEST

/* A few elements of many are outside of the range of the data before. */
START_TEST(few_elements_are_outside)
{
    static const size_t n = 30001;
    way = (enum way)(_i % N_WAYS);
    begin(&want);
    take(&want, QDQI_FLOAT32, RELU, 1, n, 1);
    for (int i = 1; i < 5; i++) {
        struct qdqi_extremes piece = QDQI_NO_EXTREMES;
        make(QDQI_FLOAT32, i % 2 ? NORMAL : RELU, (uint64_t)i, n, data, wide);
        wide[17 * i] = ldexpf(_i % 2 ? 1.5f : -1, 3 * i + _i);
        wide[n - 1] = ldexpf(1, 2 * i + _i);
        qdqi_extremes_update(&piece, wide, n);
        qdqi_extremes_merge(&want.extremes, &piece);
        qdqi_histogram_update(&want.histogram, qdqi_extremes_amax(&piece), wide, n);
        to_device(memory, wide, n * sizeof *wide);
        fine(update(QDQI_FLOAT32, memory, n));
        check(&want, "outside", (size_t)i);
    }
}
END_TEST

START_TEST(types_share_a_histogram)
{
    way = (enum way)_i;
    begin(&want);
    for (size_t i = 0; i < 8; i++) {
        take(&want, types[i % 2], (enum kind)(i % FINITE), 1, sizes[20 + i], i % 4);
        check(&want, "both", i);
    }
}
END_TEST

/* A tensor with a NaN or an infinity is not counted; the next one is. */
START_TEST(tensors_that_are_not_finite_are_not_counted)
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    float x[4] = {1, 2, bad[_i % 4], 3};
    static struct qdqi_cuda_histogram got;
    way = (enum way)(_i / 4);
    begin(&want);
    take(&want, QDQI_FLOAT32, NORMAL, 1, 1000, 0);
    qdqi_extremes_update(&want.extremes, x, 4);
    to_device(memory, x, sizeof x);
    fine(update(QDQI_FLOAT32, memory, 4));
    check(&want, "not finite", 4);
    take(&want, QDQI_FLOAT32, NORMAL, 4, 1001, 0);
    check(&want, "after it", 1001);
    from_device(&got, histogram + 1, sizeof got);
    ck_assert(qdqi_extremes_empty(&got.extremes));
    ck_assert_uint_eq(qdqi_histogram_total(&got.histogram), 0);
}
END_TEST

START_TEST(extremes_of_histograms_are_copied)
{
    struct qdqi_extremes got[2];
    struct qdqi_extremes *copies = device_memory(sizeof got);
    begin(&want);
    take(&want, QDQI_FLOAT32, NORMAL, 1, 1000, 0);
    fine(gpu->histogram_extremes(histogram, 2, copies, stream));
    from_device(got, copies, sizeof got);
    ck_assert_mem_eq(&got[0], &want.extremes, sizeof *got);
    ck_assert(qdqi_extremes_empty(&got[1]));
    fine(gpu->release(copies));
}
END_TEST

START_TEST(repeated_runs_give_the_same_counts)
{
    static struct qdqi_cuda_histogram first, again;
    size_t n = is_brief() ? 200001 : MAX_SIZE;
    make(QDQI_FLOAT32, RELU, 9, n, data, wide);
    to_device(memory, data, n * sizeof(float));
    for (int i = 0; i < (is_brief() ? 4 : 20); i++) {
        way = i % 2 ? ONE_PASS : TWO_PASSES;
        fine(gpu->histogram_init(histogram, 1, stream));
        fine(update(QDQI_FLOAT32, memory, n));
        from_device(i ? &again : &first, histogram, sizeof first);
        ck_assert(i == 0 || memcmp(&first.histogram, &again.histogram,
                                   sizeof first.histogram) == 0);
    }
    ck_assert_uint_eq(qdqi_histogram_total(&first.histogram), n);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("cuda/histogram");
    TCase *t = tcase_create("histogram");
    tcase_add_unchecked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, counts_are_those_of_the_cpu, 0, 2 * n_sizes());
    tcase_add_loop_test(t, bins_are_joined_as_on_the_cpu, 0, 16 * N_WAYS);
    tcase_add_loop_test(t, few_elements_are_outside, 0, 4 * N_WAYS);
    tcase_add_loop_test(t, types_share_a_histogram, 0, N_WAYS);
    tcase_add_loop_test(t, tensors_that_are_not_finite_are_not_counted, 0, 4 * N_WAYS);
    tcase_add_test(t, extremes_of_histograms_are_copied);
    tcase_add_test(t, repeated_runs_give_the_same_counts);
    suite_add_tcase(s, t);
    return s;
}

CUDA_MAIN(suite)
