/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the threshold for |x| with the least Kullback-Leibler divergence between the
 * distribution of |x| clipped at the threshold and what n levels preserve of it. For
 * integer formats n is the number of integers from 0 to the largest |x| (128 for int8,
 * 256 for uint8 if no x is negative), for float formats it is 128. The candidates are
 * the upper edges of all bins from the n-th on; the last candidate is the largest |x|.
 * If the format has more levels than there are bins, clipping cannot be judged, and the
 * range is the observed one.
 *  - P: the counts below the candidate; the counts beyond it are added to its last bin.
 *  - Q: the counts below the candidate alone. Level k of n spreads its sum evenly over
 *    those of its bins floor(k * bins / n) … floor((k + 1) * bins / n) - 1 that are not
 *    empty.
 *  - Zeros: 0 is exact at any scale and says nothing about it, so bin 0 (where a Relu
 *    puts half of all values) counts as many as bin 1. A bin that is empty in P adds
 *    nothing. If only Q is empty, which is the case for a last bin that has nothing but
 *    the counts from beyond, the divergence is infinite and the candidate is excluded.
 * The largest of several candidates with the least divergence wins.
 *
 * Let c be the counts, S and z the sum and the number of the filled bins of a level, N
 * the number of all values, B that of the values below the candidate, and c' the counts
 * with those from beyond added to the last bin. Then
 *
 *   KL = (sum c' log c' - sum c' log(S / z)) / N - log N + log B
 *
 * The first sum is a prefix sum. In the second sum a level adds S log(S / z), which
 * depends on the beginning and the length of the level. The levels of one candidate
 * have at most two lengths, so the table for one length serves all candidates with that
 * length. A search over 1,900 candidates then takes 33,000 logarithms, not millions.
 */
#include "config.h"
#include "numbers/range/method.h"

#include <math.h>

enum { USUAL_LEVELS = 128 };

struct search {
    size_t n; /* number of bins */
    size_t levels;
    double below[QDQI_BINS + 1];    /* sum of the counts of the previous bins */
    double own[QDQI_BINS + 1];      /* sum of c log c of the previous bins */
    uint16_t filled[QDQI_BINS + 1]; /* number of previous bins that are not empty */
    /* S log(S / z) of the level that begins at the bin, for the even and the odd
       length */
    double terms[2][QDQI_BINS];
};

static double
xlogx(double x)
{
    return x > 0 ? x * log(x) : 0;
}

static void
begin(struct search *s, const struct qdqi_histogram *h)
{
    s->n = qdqi_histogram_used(h);
    for (size_t j = 0; j < s->n; j++) {
        uint64_t count = h->counts[j == 0 && s->n > 1 ? 1 : j];
        s->below[j + 1] = s->below[j] + (double)count;
        s->own[j + 1] = s->own[j] + xlogx((double)count);
        s->filled[j + 1] = (uint16_t)(s->filled[j] + (count > 0));
    }
}

/* Returns log(S / z) of the bins from … to - 1, which are not all empty. */
static double
log_mean(const struct search *s, size_t from, size_t to)
{
    return log((s->below[to] - s->below[from]) / (s->filled[to] - s->filled[from]));
}

static void
fill_terms(struct search *s, size_t length)
{
    double *terms = s->terms[length % 2];
    for (size_t from = 0; from + length <= s->n; from++) {
        double sum = s->below[from + length] - s->below[from];
        terms[from] = sum > 0 ? sum * log_mean(s, from, from + length) : 0;
    }
}

/* Computes the divergence of the candidate with n bins. */
static double
divergence(const struct search *s, size_t n)
{
    double all = s->below[s->n], kept = s->below[n], beyond = all - kept;
    double last = kept - s->below[n - 1];
    if (last == 0 && beyond > 0)
        return INFINITY;
    double levels = 0;
    size_t from = 0, last_from = 0;
    for (size_t k = 1; k <= s->levels; k++) {
        size_t to = k * n / s->levels;
        levels += s->terms[(to - from) % 2][from];
        last_from = from;
        from = to;
    }
    double own = s->own[n] - xlogx(last) + xlogx(last + beyond);
    if (beyond > 0)
        levels += beyond * log_mean(s, last_from, n);
    return (own - levels) / all - log(all) + log(kept);
}

/* Returns the number of integers from 0 to the largest |x|. Float formats have a
   fixed number, because their numbers are not spread evenly. */
static size_t
count_levels(const struct qdqi_observer *observer, const struct qdqi_range_use *use)
{
    double amax = (double)qdqi_extremes_amax(&observer->all.extremes);
    if (qdqi_format_row((int)use->format)->fraction_bits > 0)
        return USUAL_LEVELS;
    size_t levels = (size_t)(qdqi_steps_within(observer, use, amax) + 1.5);
    return levels > 0 ? levels : 1;
}

static struct qdqi_range
entropy(const struct qdqi_observer *observer, const struct qdqi_range_use *use)
{
    const struct qdqi_histogram *h = observer->all.histogram;
    const size_t levels = count_levels(observer, use);
    struct search s = {.levels = levels};
    double least = INFINITY;
    size_t best = 0;
    begin(&s, h);
    fill_terms(&s, 1);
    for (size_t n = levels; n <= s.n; n++) {
        if (n % levels == 0)
            fill_terms(&s, n / levels + 1);
        double kl = divergence(&s, n);
        if (kl <= least) {
            least = kl;
            best = n;
        }
    }
    return best > 0 && best < s.n
               ? qdqi_range_within(observer, (double)best * qdqi_histogram_width(h))
               : qdqi_range_seen(observer);
}

QDQI_METHOD(entropy, .needs = QDQI_NEEDS_HISTOGRAM, .range = entropy);
