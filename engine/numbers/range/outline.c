/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/range/outline.h"

#include <math.h>

/* Returns the magnitude beyond which values are outside of the range; infinite when none
   are. */
static double
threshold(const struct qdqi_range *seen, const struct qdqi_range *range)
{
    double t = INFINITY;
    if (seen->max > range->max)
        t = fmin(t, fmax(range->max, 0));
    if (seen->min < range->min)
        t = fmin(t, fmax(-range->min, 0));
    return t;
}

/* Returns the share of values whose magnitude is above t bins. Within a bin values are taken
   to be spread evenly. */
static double
share_above(const struct qdqi_histogram *h, double t)
{
    double above = 0, total = (double)qdqi_histogram_total(h);
    for (size_t j = 0; j < QDQI_BINS; j++)
        above += (double)h->counts[j] * fmin(fmax((double)(j + 1) - t, 0), 1);
    return total > 0 ? above / total : 0;
}

/* Returns the sum of the squares of all values, in bins. */
static double
power(const struct qdqi_histogram *h)
{
    double sum = 0;
    for (size_t j = 0; j < QDQI_BINS; j++) {
        double x = (double)j;
        sum += (double)h->counts[j] * (x * x + x + 1. / 3);
    }
    return sum;
}

/* Joins neighbouring bins until there are at most `most`. In a tensor without positive values
   the bins stand in the opposite order. */
static bool
join_bins(const struct qdqi_histogram *h, size_t most, bool mirrored,
          struct qdqi_arena *arena, struct qdq_histogram_report *ret)
{
    size_t used = qdqi_histogram_used(h), joined = 1;
    while ((used + joined - 1) / joined > most)
        joined *= 2;
    ret->n = (used + joined - 1) / joined;
    uint64_t *counts = qdqi_arena_array(arena, ret->n, sizeof *counts);
    if (!counts)
        return false;
    for (size_t j = 0; j < used; j++)
        counts[mirrored ? ret->n - 1 - j / joined : j / joined] += h->counts[j];
    double high = (double)(ret->n * joined) * qdqi_histogram_width(h);
    ret->low = mirrored ? -high : 0;
    ret->high = mirrored ? 0 : high;
    ret->counts = counts;
    return true;
}

/* Returns the sum of the squared errors of all values, in bins. */
static double
noise_of(const struct qdqi_observer *observer, const struct qdqi_range_use *use,
         const struct qdqi_range *range)
{
    const double width = qdqi_histogram_width(observer->all.histogram);
    const double t = fmin(fmax(-range->min, range->max),
                          (double)qdqi_extremes_amax(&observer->all.extremes));
    return t > 0 ? qdqi_mse_error(observer, use, t / width) : 0;
}

double
qdqi_outline_noise(const struct qdqi_observer *observer,
                   const struct qdqi_range_use *use, const struct qdqi_range *range)
{
    const struct qdqi_histogram *h = observer->all.histogram;
    if (!h || qdqi_extremes_empty(&observer->all.extremes) ||
        qdqi_histogram_used(h) == 0)
        return 0;
    return noise_of(observer, use, range) / power(h);
}

bool
qdqi_outline(const struct qdqi_observer *observer, const struct qdqi_range_use *use,
             const struct qdqi_range *range, size_t most, struct qdqi_arena *arena,
             struct qdq_histogram_report *ret)
{
    const struct qdqi_histogram *h = observer->all.histogram;
    const struct qdqi_range seen = qdqi_range_seen(observer);
    double width = qdqi_histogram_width(h);
    double noise = noise_of(observer, use, range);
    *ret = (struct qdq_histogram_report){
        .tensor = observer->tensor,
        .magnitudes = seen.min < 0 && seen.max > 0,
        .min = range->min,
        .max = range->max,
        .clipped = share_above(h, threshold(&seen, range) / width),
        .sqnr_db = noise > 0 ? 10 * log10(power(h) / noise) : (double)NAN,
    };
    return join_bins(h, most, seen.max <= 0 && seen.min < 0, arena, ret);
}
