/* SPDX-License-Identifier: Apache-2.0 */
/* Observers and range methods, compared with float64 references that are written
   here, most of them by brute force over the data. */
#include "config.h"

#include "numbers/range/method.h"
#include "numbers/range/observations.h"
#include "numbers/range/outline.h"
#include "arena.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* --- data ----------------------------------------------------------------- */

enum { MANY = 200000, EVEN_MORE = 600000 };
static float data[EVEN_MORE];

static double
uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (double)(*state >> 11) * 0x1p-53;
}

static double
normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform(state);
    return sum;
}

enum shape {
    NORMAL,
    RELU,
    HEAVY,   /* a few outliers */
    CLIPPED, /* many values are exactly 6 */
    SPARSE,  /* one value in a thousand is not zero */
    ONE,     /* all values are equal */
    ZERO,
    TINY, /* smaller than the narrowest bins */
    WIDE, /* up to the largest float32 */
    N_SHAPES
};

static double
value(enum shape shape, uint64_t *state)
{
    double x = normal(state);
    switch (shape) {
    case NORMAL:
        return 0.3 * x;
    case RELU:
        return x > 0 ? x : 0;
    case HEAVY:
        return x * x * x * fabs(x);
    case CLIPPED:
        return fmin(fmax(4 * x, 0), 6);
    case SPARSE:
        return uniform(state) < 0.001 ? x : 0;
    case ONE:
        return -5;
    case TINY:
        return x * 0x1p-130;
    case WIDE:
        return (double)FLT_MAX * (2 * uniform(state) - 1);
    default:
        return 0;
    }
}

static void
make(enum shape shape, size_t n)
{
    uint64_t state = 42 + (uint64_t)shape;
    for (size_t i = 0; i < n; i++)
        data[i] = (float)value(shape, &state);
}

/* --- observing ------------------------------------------------------------ */

static const char *const tensors[] = {"t"};
static struct qdqi_observers observers;

static struct qdqi_observer *
begin(unsigned needs, size_t threads)
{
    ck_assert(qdqi_observers_init(&observers, tensors, 1, needs, threads, arena));
    return &observers.rows[0];
}

/* Observes one run, whose parts come from the last to the first. Returns their
   number. */
static size_t
reach(const float *values, size_t n, int64_t axis0)
{
    struct qdqi_reached r = qdqi_reached(&observers, 0, QDQI_FLOAT32, values, n, axis0);
    for (size_t i = r.n_parts; i-- > 0;)
        qdqi_reached_part(&r, i);
    qdqi_reached_end(&r);
    return r.n_parts;
}

static struct qdqi_observer *
observe(const char *method, size_t n)
{
    struct qdqi_observer *o = begin(qdqi_method_find(method)->needs, 1);
    reach(data, n, 1);
    return o;
}

static struct qdqi_range
range_of(const char *method, double percentile, size_t n)
{
    const struct qdq_calibration_spec spec = {.method = method,
                                              .percentile = percentile};
    const struct qdqi_range_use use = {&spec, QDQI_TO_INT8, true};
    return qdqi_method_find(method)->range(observe(method, n), &use);
}

static double
largest(size_t n)
{
    double amax = 0;
    for (size_t i = 0; i < n; i++)
        amax = fmax(amax, fabs((double)data[i]));
    return amax;
}

static double
threshold(struct qdqi_range r)
{
    return fmax(fabs(r.min), fabs(r.max));
}

/* --- the histogram -------------------------------------------------------- */

/* Computes the bins' width by its definition, and the counts by division. */
static double
count_by_hand(size_t n, uint64_t *counts)
{
    double width = 0x1p-126, amax = largest(n);
    while (amax >= width * QDQI_BINS)
        width *= 2;
    memset(counts, 0, QDQI_BINS * sizeof *counts);
    for (size_t i = 0; i < n; i++)
        counts[(size_t)floor(fabs((double)data[i]) / width)]++;
    return width;
}

static const size_t sizes[] = {1, 1000, 9000, 70001, MANY};

UNIT_LOOP(histogram_counts_every_value_in_its_bin, N_SHAPES)
{
    static uint64_t want[QDQI_BINS];
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        make((enum shape)_i, sizes[k]);
        const struct qdqi_histogram *h = observe("mse", sizes[k])->all.histogram;
        double width = count_by_hand(sizes[k], want);
        ck_assert_double_eq(qdqi_histogram_width(h), width);
        ck_assert_mem_eq(h->counts, want, sizeof want);
        ck_assert_uint_eq(qdqi_histogram_total(h), sizes[k]);
        size_t used = (size_t)(largest(sizes[k]) / width) + 1;
        ck_assert_uint_eq(qdqi_histogram_used(h), used);
        if (_i != ZERO && _i != TINY && _i != SPARSE)
            ck_assert_uint_gt(used, QDQI_BINS / 2);
    }
}

static bool
same(const struct qdqi_observer *a, const struct qdqi_observer *b)
{
    return a->all.extremes.min == b->all.extremes.min &&
           a->all.extremes.max == b->all.extremes.max &&
           memcmp(a->all.histogram, b->all.histogram, sizeof *a->all.histogram) == 0;
}

/* The accumulators are equal to the last count, however the values are divided among
   runs, orders and threads. */
UNIT_LOOP(accumulators_depend_on_the_values_alone, N_SHAPES)
{
    static const size_t cuts[] = {1, 7, 1000, 65537, MANY};
    make((enum shape)_i, MANY);
    struct qdqi_observer whole = *observe("mse", MANY);
    for (size_t threads = 1; threads <= 5; threads++)
        for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
            struct qdqi_observer *o = begin(QDQI_NEEDS_HISTOGRAM, threads);
            for (size_t end = MANY; end > 0;) {
                size_t n = cuts[k] < end ? cuts[k] : end;
                reach(data + end - n, n, 1);
                end -= n;
            }
            ck_assert_msg(same(o, &whole), "%zu threads, cut %zu", threads, cuts[k]);
        }
}

UNIT_TEST(large_tensors_are_shared)
{
    make(NORMAL, MANY);
    begin(QDQI_NEEDS_HISTOGRAM, 4);
    ck_assert_uint_eq(reach(data, 1000, 1), 1);
    ck_assert_uint_eq(reach(data, MANY, 1), 4);
    begin(0, 4); /* extremes alone are so fast that one thread is enough */
    ck_assert_uint_eq(reach(data, MANY, 1), 1);
    begin(QDQI_NEEDS_HISTOGRAM, 1);
    ck_assert_uint_eq(reach(data, MANY, 1), 1);
}

UNIT_TEST(shared_extremes_are_exact)
{
    make(NORMAL, EVEN_MORE);
    struct qdqi_observer whole = *observe("minmax", EVEN_MORE);
    struct qdqi_observer *o = begin(0, 4);
    ck_assert_uint_eq(reach(data, EVEN_MORE, 1), 2);
    ck_assert_int_eq(o->all.extremes.min, whole.all.extremes.min);
    ck_assert_int_eq(o->all.extremes.max, whole.all.extremes.max);
}

UNIT_TEST(only_needed_accumulators_exist)
{
    ck_assert_ptr_null(begin(qdqi_method_minmax.needs, 2)->all.histogram);
    ck_assert_ptr_null(begin(qdqi_method_moving_average.needs, 2)->all.histogram);
    ck_assert_ptr_nonnull(begin(qdqi_method_entropy.needs, 2)->all.histogram);
}

UNIT_TEST(numbers_that_are_not_finite_are_noticed_and_have_no_bin)
{
    static const float odd[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++)
        for (unsigned needs = 0; needs <= QDQI_NEEDS_ALL; needs++) {
            make(NORMAL, 100000);
            data[99000] = odd[k];
            struct qdqi_observer *o = begin(needs, 3);
            reach(data, 100000, 1);
            ck_assert(!qdqi_extremes_finite(&o->all.extremes));
        }
}

/* --- extremes ------------------------------------------------------------- */

UNIT_TEST(minmax_is_the_range_seen)
{
    const float a[] = {-1.5f, 2}, b[] = {0.25f, 3.75f};
    struct qdqi_observer *o = begin(0, 1);
    reach(a, 2, 1);
    reach(b, 2, 1);
    struct qdqi_range range = qdqi_method_minmax.range(o, NULL);
    ck_assert_double_eq(range.min, -1.5);
    ck_assert_double_eq(range.max, 3.75);
    ck_assert_int_eq(o->runs, 2);
    ck_assert_ptr_null(qdqi_method_find("no such method"));
}

enum { SAMPLES = 48, ELEMENTS = 500 };

/* Observes runs of `batch` samples of a tensor whose axis 0 has `axis0` indices. */
static struct qdqi_range
averaged(size_t batch, int64_t axis0)
{
    struct qdqi_observer *o = begin(QDQI_NEEDS_AVERAGE, 2);
    ck_assert(qdqi_observers_begin(&observers, (int64_t)batch));
    for (size_t i = 0; i < SAMPLES; i += batch)
        reach(data + i * ELEMENTS, batch * ELEMENTS, axis0);
    return qdqi_method_moving_average.range(o, NULL);
}

/* Computes the average by hand, over groups of that many samples. */
static struct qdqi_range
averaged_by_hand(size_t group)
{
    struct qdqi_range average = {0, 0};
    for (size_t i = 0; i < SAMPLES; i += group) {
        double min = INFINITY, max = -INFINITY;
        for (size_t k = i * ELEMENTS; k < (i + group) * ELEMENTS; k++) {
            min = fmin(min, (double)data[k]);
            max = fmax(max, (double)data[k]);
        }
        double weight = i == 0 ? 1 : 0.01;
        average.min += weight * (min - average.min);
        average.max += weight * (max - average.max);
    }
    return average;
}

UNIT_TEST(moving_average_is_over_samples)
{
    make(HEAVY, SAMPLES * ELEMENTS);
    struct qdqi_range want = averaged_by_hand(1);
    for (size_t batch = 1; batch <= SAMPLES; batch++) {
        if (SAMPLES % batch != 0)
            continue;
        struct qdqi_range got = averaged(batch, (int64_t)batch);
        ck_assert_double_eq(got.min, want.min);
        ck_assert_double_eq(got.max, want.max);
        /* Where axis 0 is not the batch, a run counts as one sample. */
        got = averaged(batch, 5000);
        ck_assert_double_eq(got.max, averaged_by_hand(batch).max);
        got = averaged(batch, 0);
        ck_assert_double_eq(got.min, averaged_by_hand(batch).min);
    }
    ck_assert_double_lt(
        want.max,
        qdqi_method_minmax.range(observe("minmax", SAMPLES * ELEMENTS), NULL).max);
}

/* Observes samples first to end - 1, whose averages wait. */
static struct qdqi_observers
postponed(size_t first, size_t end, size_t batch)
{
    begin(QDQI_NEEDS_ALL, 1);
    ck_assert(qdqi_observers_postpone(&observers, end - first));
    for (size_t i = first; i < end; i += batch) {
        ck_assert(qdqi_observers_begin(&observers, (int64_t)batch));
        reach(data + i * ELEMENTS, batch * ELEMENTS, (int64_t)batch);
    }
    return observers;
}

UNIT_TEST(merged_observers_are_those_of_all_samples)
{
    make(HEAVY, SAMPLES * ELEMENTS);
    for (size_t batch = 1; batch <= 4; batch *= 2) {
        struct qdqi_observers first = postponed(0, 16, batch);
        struct qdqi_observers second = postponed(16, SAMPLES, batch);
        begin(QDQI_NEEDS_ALL, 1);
        struct qdqi_observers whole = observers;
        for (size_t i = 0; i < SAMPLES; i++)
            reach(data + i * ELEMENTS, ELEMENTS, 1);
        begin(QDQI_NEEDS_ALL, 1);
        ck_assert(qdqi_observers_can_merge(&first));
        qdqi_observers_average(&observers, &first);
        qdqi_observers_average(&observers, &second);
        qdqi_observers_merge(&observers, &second);
        qdqi_observers_merge(&observers, &first);
        const struct qdqi_observer *got = &observers.rows[0], *want = &whole.rows[0];
        ck_assert_int_eq(got->runs, SAMPLES / (int64_t)batch);
        ck_assert_int_eq(got->all.extremes.min, want->all.extremes.min);
        ck_assert_int_eq(got->all.extremes.max, want->all.extremes.max);
        ck_assert_mem_eq(got->all.histogram, want->all.histogram,
                         sizeof *want->all.histogram);
        ck_assert_double_eq(got->average.min, want->average.min);
        ck_assert_double_eq(got->average.max, want->average.max);
    }
}

UNIT_TEST(what_is_lost_or_not_finite_is_not_merged)
{
    make(HEAVY, SAMPLES * ELEMENTS);
    struct qdqi_observers one = postponed(0, 8, 1);
    ck_assert(qdqi_observers_can_merge(&one));
    reach(data, ELEMENTS, 1); /* there is room for 8 samples */
    ck_assert(!qdqi_observers_can_merge(&observers));
    data[5] = NAN;
    one = postponed(0, 8, 1);
    ck_assert(!qdqi_observers_can_merge(&one));
}

/* Observes n samples of this size in runs of `batch`; the last run may be shorter. */
static struct qdqi_observer
all_of(size_t size, size_t n, size_t batch, size_t threads, unsigned needs)
{
    struct qdqi_observer *o = begin(needs, threads);
    for (size_t i = 0; i < n; i += batch) {
        size_t m = i + batch < n ? batch : n - i;
        ck_assert(qdqi_observers_begin(&observers, (int64_t)m));
        reach(data + i * size, m * size, (int64_t)m);
    }
    return *o;
}

/* Threads may divide a sample anywhere: the average and the histogram are the same,
   bit for bit. */
UNIT_TEST(averages_and_histograms_go_together)
{
    static const size_t samples[] = {1, 3, 7, 1000, 40000, 150000};
    make(HEAVY, EVEN_MORE);
    for (size_t k = 0; k < sizeof samples / sizeof *samples; k++) {
        size_t size = samples[k], n = EVEN_MORE / size < 40 ? EVEN_MORE / size : 40;
        n = size < 40 ? EVEN_MORE / size : n;
        struct qdqi_observer want = all_of(size, n, 1, 1, QDQI_NEEDS_AVERAGE);
        struct qdqi_observer whole = *observe("mse", n * size);
        for (size_t threads = 1; threads <= 5; threads += 2) {
            static const size_t batches[] = {1, 2, 3, 16, 5000, EVEN_MORE};
            for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
                if (n / batches[b] > 30000)
                    continue;
                struct qdqi_observer got =
                    all_of(size, n, batches[b], threads, QDQI_NEEDS_ALL);
                ck_assert(same(&got, &whole));
                ck_assert(got.average.min == want.average.min &&
                          got.average.max == want.average.max);
                if (threads > 1)
                    continue; /* without a histogram, threads divide nothing else */
                got = all_of(size, n, batches[b], threads, QDQI_NEEDS_AVERAGE);
                ck_assert(got.average.max == want.average.max);
            }
        }
    }
}

UNIT_TEST(a_sample_without_elements_is_none)
{
    const float values[] = {1, 2, 3, 4};
    struct qdqi_observer *o = begin(QDQI_NEEDS_ALL, 2);
    ck_assert(qdqi_observers_begin(&observers, 2));
    reach(values, 0, 2);
    reach(values, 0, 0);
    ck_assert(qdqi_extremes_empty(&o->all.extremes) && !o->average.begun);
    reach(values, 4, 2);
    reach(values, 0, 2);
    ck_assert_double_eq(o->average.min, 1 + 0.01 * (3 - 1));
    ck_assert_int_eq(o->runs, 4);
}

/* --- percentile ----------------------------------------------------------- */

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static const double percentiles[] = {0.01, 1, 50, 90, 99, 99.9, 99.99, 99.9999, 100};

UNIT_LOOP(percentile_is_that_of_the_sorted_data, N_SHAPES)
{
    enum { N = 50000 };
    static double sorted[N];
    static uint64_t counts[QDQI_BINS];
    make((enum shape)_i, N);
    double width = count_by_hand(N, counts), amax = largest(N);
    for (size_t i = 0; i < N; i++)
        sorted[i] = fabs((double)data[i]);
    qsort(sorted, N, sizeof *sorted, by_size);
    for (size_t k = 0; k < sizeof percentiles / sizeof *percentiles; k++) {
        size_t at = (size_t)ceil(N * percentiles[k] / 100);
        double got = threshold(range_of("percentile", percentiles[k], N));
        ck_assert_double_le(fabs(got - sorted[at - 1]), width);
        ck_assert_double_le(got, amax);
    }
    ck_assert_double_eq(threshold(range_of("percentile", 100, N)), amax);
}

/* --- entropy -------------------------------------------------------------- */

/* Computes the divergence by its definition, with P and Q written out bin by bin. */
static double
divergence_by_hand(const uint64_t *counts, size_t used, size_t n)
{
    static double p[QDQI_BINS], q[QDQI_BINS];
    double sum_p = 0, sum_q = 0, kl = 0;
    memset(p, 0, sizeof p);
    memset(q, 0, sizeof q);
    for (size_t j = 0; j < used; j++)
        p[j < n ? j : n - 1] += (double)counts[j == 0 ? 1 : j];
    for (size_t k = 0; k < 128; k++) {
        size_t from = k * n / 128, to = (k + 1) * n / 128, filled = 0;
        double sum = 0;
        for (size_t j = from; j < to; j++) {
            sum += (double)counts[j == 0 ? 1 : j];
            filled += counts[j == 0 ? 1 : j] > 0;
        }
        for (size_t j = from; j < to; j++)
            q[j] = counts[j == 0 ? 1 : j] > 0 ? sum / (double)filled : 0;
    }
    for (size_t j = 0; j < n; j++) {
        sum_p += p[j];
        sum_q += q[j];
    }
    for (size_t j = 0; j < n; j++)
        if (p[j] > 0)
            kl +=
                q[j] > 0 ? p[j] / sum_p * log(p[j] / sum_p / (q[j] / sum_q)) : INFINITY;
    return kl;
}

static const enum shape searched[] = {NORMAL, RELU, HEAVY, CLIPPED, WIDE};

UNIT_ROWS(entropy_is_the_least_divergence, searched)
{
    enum { N = 100000 };
    static uint64_t counts[QDQI_BINS];
    make(searched[_i], N);
    double width = count_by_hand(N, counts), amax = largest(N);
    size_t used = (size_t)(amax / width) + 1;
    double got = threshold(range_of("entropy", 0, N)), least = INFINITY;
    for (size_t n = 128; n <= used; n++)
        least = fmin(least, divergence_by_hand(counts, used, n));
    size_t chosen = got == amax ? used : (size_t)(got / width);
    if (got != amax)
        ck_assert_double_eq((double)chosen * width, got);
    ck_assert_double_le(divergence_by_hand(counts, used, chosen), least + 1e-12);
    /* The search moves away from the extremes. */
    if (searched[_i] == HEAVY)
        ck_assert_double_lt(got, 0.9 * amax);
}

/* --- least squared error -------------------------------------------------- */

/* Returns the squared error of quantizing the data itself. */
static double
error_by_hand(size_t n, double t)
{
    double scale = t / 127, sum = 0;
    for (size_t i = 0; i < n; i++) {
        double x = fabs((double)data[i]);
        double error = x - scale * fmin(nearbyint(x / scale), 127);
        sum += error * error;
    }
    return sum;
}

/* Compares with all candidates. The search uses the histogram, so it may miss the
   best by a little. */
UNIT_ROWS(mse_is_the_least_error_over_the_data, searched)
{
    enum { N = 20000 };
    static uint64_t counts[QDQI_BINS];
    make(searched[_i], N);
    double width = count_by_hand(N, counts), amax = largest(N);
    double got = threshold(range_of("mse", 0, N));
    double least = error_by_hand(N, amax), full = least;
    for (size_t t = 16; (double)t * width < amax; t++)
        least = fmin(least, error_by_hand(N, (double)t * width));
    ck_assert_double_le(error_by_hand(N, got), 1.005 * least);
    if (searched[_i] == HEAVY)
        ck_assert_double_lt(least, 0.98 * full);
    if (searched[_i] == CLIPPED)
        ck_assert_double_eq(got, amax);
}

/* --- all methods ---------------------------------------------------------- */

static const char *
name_of_method(int i)
{
    struct qdq_range_method method;
    ck_assert(qdq_range_method((size_t)i, &method));
    return method.name;
}

/* A new method must set these members, and its name must find it. */
UNIT_LOOP(methods_are_found_by_their_names, QDQI_N_METHODS)
{
    struct qdq_range_method none;
    const struct qdqi_method *method = qdqi_method_find(name_of_method(_i));
    ck_assert_ptr_nonnull(method);
    ck_assert_ptr_nonnull(method->range);
    ck_assert_uint_eq(method->needs & ~(unsigned)QDQI_NEEDS_ALL, 0);
    ck_assert(!method->start ||
              (!method->start->start && method->needs == method->start->needs));
    ck_assert(!qdq_range_method(QDQI_N_METHODS, &none));
}

UNIT_LOOP(ranges_lie_within_what_was_seen, QDQI_N_METHODS)
{
    for (int shape = 0; shape < N_SHAPES; shape++)
        for (size_t k = 0; k < 3; k++) {
            make((enum shape)shape, sizes[k]);
            struct qdqi_range seen = range_of("minmax", 0, sizes[k]);
            struct qdqi_range got = range_of(name_of_method(_i), 99.99, sizes[k]);
            ck_assert(isfinite(got.min) && isfinite(got.max));
            ck_assert_double_le(got.min, got.max);
            ck_assert_double_le(threshold(got), threshold(seen));
            if (threshold(seen) > 0)
                ck_assert_double_gt(threshold(got), 0);
            if (shape == ONE) /* exact to the width of a bin */
                ck_assert_double_le(fabs(threshold(got) - 5), 5.0 / 1024);
            if (shape == ZERO)
                ck_assert(got.min == 0 && got.max == 0);
        }
}

/* Returns the sum of the squares of the errors of symmetric int8 with that threshold. */
static double
squared_errors(double t, size_t n)
{
    double sum = 0, scale = t / 127;
    for (size_t i = 0; i < n; i++) {
        double q = fmin(fmax(nearbyint((double)data[i] / scale), -127), 127);
        sum += ((double)data[i] - q * scale) * ((double)data[i] - q * scale);
    }
    return sum;
}

/* The bins, the share of clipped values and the SQNR are those of the data. */
UNIT_LOOP(an_outline_is_that_of_the_data, 6)
{
    static const enum shape shapes[] = {NORMAL, RELU, HEAVY, CLIPPED, SPARSE, ONE};
    enum shape shape = shapes[_i];
    struct qdq_calibration_spec spec = {.method = "mse"};
    struct qdqi_range_use use = {&spec, QDQI_TO_INT8, true};
    struct qdq_histogram_report h;
    make(shape, MANY);
    struct qdqi_observer *o = observe("mse", MANY);
    struct qdqi_range r =
        qdqi_range_within(o, 0.6 * (double)qdqi_extremes_amax(&o->all.extremes));
    ck_assert(qdqi_outline(o, &use, &r, 256, arena, &h));
    ck_assert_uint_gt(h.n, 128);
    ck_assert_uint_le(h.n, 256);
    ck_assert_int_eq(h.magnitudes,
                     shape == NORMAL || shape == HEAVY || shape == SPARSE);
    uint64_t counts[256] = {0}, outside = 0;
    double width = (h.high - h.low) / (double)h.n, power = 0;
    for (size_t i = 0; i < MANY; i++) {
        double x = h.magnitudes ? fabs((double)data[i]) : (double)data[i];
        double at = (x - h.low) / width;
        counts[(size_t)(h.low < 0 ? ceil(at) - 1 : floor(at))]++;
        outside += (double)data[i] < r.min || (double)data[i] > r.max;
        power += (double)data[i] * (double)data[i];
    }
    for (size_t i = 0; i < h.n; i++)
        ck_assert_uint_eq(counts[i], h.counts[i]);
    ck_assert_double_eq_tol(h.clipped, (double)outside / MANY, 2e-3);
    ck_assert(h.min == r.min && h.max == r.max);
    double wanted = 10 * log10(power / squared_errors(fmax(-r.min, r.max), MANY));
    ck_assert_double_eq_tol(h.sqnr_db, wanted, 0.5);
    ck_assert(qdqi_outline(o, &use, &r, 16, arena, &h));
    ck_assert_uint_le(h.n, 16);
}

UNIT_SUITE("range", ARENA)
