/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/frontier/pattern_search.h"

#include "ground/base/order.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The noise of a measurement, as a part of its time, and what a placement differs from the sum by. */
static const double noise_part = 0.03, own_part = 0.03;

/* Before anything was measured integers are taken to need half as long, with doubt. */
static const double usual_gain = 0.5, first_doubt = 0.3, doubt_of_share = 0.5,
                    least_doubt = 0.02;

/* A failure counts as such a time, with so much doubt. */
static const double failed_ratio = 1.5, failed_doubt = 0.25;

/* Times beyond these are absurd. */
static const double least_ratio = 0.01, most_ratio = 100;

/* A time that differs by more than so much from what was expected is measured again, and two times agree that
   differ by no more. */
static const double surprise_part = 0.25, agreeing_part = 0.12;

/* A neighbour of the best placement is tried if it seems to be slower by no more than so much. */
static const double close_part = 0.15;

enum {
    ENOUGH = 3,         /* measurements of a placement that the search comes back to */
    LAST_PART = 8,      /* one in so many measurements is for making sure */
    MOST_IDLE = 40,     /* draws, one after another, that find nothing to measure */
    MOST_FAILURES = 20, /* likewise measurements that fail */
    RULED_OUT = 3       /* failures of one placement */
};

struct qdqi_pattern_sum {
    struct qdqi_pattern_search *s;
    size_t d;             /* terms of the sum */
    double *precision;    /* d x d */
    double *moment;       /* d */
    double *root;         /* d x d: the lower triangle whose square is the precision */
    double *mean, *drawn; /* d */
    double *f;            /* d: the terms of a placement */
    bool *next;           /* by pattern */
    uint64_t state;       /* of the random numbers */
    size_t capacity;
    int n_failures;
};

/* --- random numbers -------------------------------------------------------------- */

/* A number from 0 to 1 of a sequence that is the same in each run (xorshift64). */
static double
next_random(struct qdqi_pattern_sum *m)
{
    m->state ^= m->state << 13;
    m->state ^= m->state >> 7;
    m->state ^= m->state << 17;
    return (double)(m->state >> 11) / 9007199254740992.0;
}

/* One that is nearly normal, with a variance of 1. */
static double
next_normal(struct qdqi_pattern_sum *m)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += next_random(m);
    return sum;
}

/* --- the sum ----------------------------------------------------------------------- */

static void
set_terms(const struct qdqi_pattern_sum *m, const bool *is_float, double *f)
{
    const struct qdqi_pattern_search *s = m->s;
    f[0] = 1;
    for (size_t i = 0; i < s->n; i++)
        f[1 + i] = is_float[i];
    for (size_t i = 0; i < s->n_pairs; i++)
        f[1 + s->n + i] = is_float[s->pairs[i].a] != is_float[s->pairs[i].b];
}

static double
weigh(const struct qdqi_pattern_sum *m, const double *weights, const bool *is_float)
{
    const struct qdqi_pattern_search *s = m->s;
    double sum = weights[0];
    for (size_t i = 0; i < s->n; i++)
        sum += is_float[i] ? weights[1 + i] : 0;
    for (size_t i = 0; i < s->n_pairs; i++)
        if (is_float[s->pairs[i].a] != is_float[s->pairs[i].b])
            sum += weights[1 + s->n + i];
    return sum;
}

static void
expect(struct qdqi_pattern_sum *m, size_t i, double mean, double doubt)
{
    m->precision[i * m->d + i] = 1 / (doubt * doubt);
    m->moment[i] = mean / (doubt * doubt);
}

static void
add_measurement(struct qdqi_pattern_sum *m, const bool *is_float, double ratio,
                double doubt)
{
    const double weight = 1 / (doubt * doubt);
    set_terms(m, is_float, m->f);
    for (size_t i = 0; i < m->d; i++) {
        if (m->f[i] == 0)
            continue;
        m->moment[i] += weight * ratio;
        for (size_t k = 0; k <= i; k++)
            m->precision[i * m->d + k] += m->f[k] != 0 ? weight : 0;
    }
}

/* Finds the means, and the root of the precision, by Cholesky's decomposition. */
static void
solve(struct qdqi_pattern_sum *m)
{
    const size_t d = m->d;
    double *l = m->root;
    for (size_t i = 0; i < d; i++)
        for (size_t k = 0; k <= i; k++) {
            double sum = m->precision[i * d + k];
            for (size_t j = 0; j < k; j++)
                sum -= l[i * d + j] * l[k * d + j];
            l[i * d + k] = i == k ? sqrt(fmax(sum, 1e-12)) : sum / l[k * d + k];
        }
    for (size_t i = 0; i < d; i++) {
        double sum = m->moment[i];
        for (size_t j = 0; j < i; j++)
            sum -= l[i * d + j] * m->mean[j];
        m->mean[i] = sum / l[i * d + i];
    }
    for (size_t i = d; i-- > 0;) {
        for (size_t j = i + 1; j < d; j++)
            m->mean[i] -= l[j * d + i] * m->mean[j];
        m->mean[i] /= l[i * d + i];
    }
}

/* Draws a sum from those that are possible. */
static void
draw(struct qdqi_pattern_sum *m)
{
    const size_t d = m->d;
    for (size_t i = 0; i < d; i++)
        m->drawn[i] = next_normal(m);
    for (size_t i = d; i-- > 0;) {
        for (size_t j = i + 1; j < d; j++)
            m->drawn[i] -= m->root[j * d + i] * m->drawn[j];
        m->drawn[i] /= m->root[i * d + i];
    }
    for (size_t i = 0; i < d; i++)
        m->drawn[i] += m->mean[i];
}

/* Notes what is known before the first measurement: also that the float model takes its own time. */
static void
begin(struct qdqi_pattern_sum *m)
{
    const struct qdqi_pattern_search *s = m->s;
    const double each = least_doubt + 0.1 / (double)(s->n + 1);
    memset(m->precision, 0, m->d * m->d * sizeof *m->precision);
    expect(m, 0, 1 - usual_gain, first_doubt);
    for (size_t i = 0; i < s->n; i++)
        expect(m, 1 + i, usual_gain * s->shares[i],
               doubt_of_share * s->shares[i] + each);
    for (size_t i = 0; i < s->n_pairs; i++)
        expect(m, 1 + s->n + i, 0, each);
    for (size_t i = 0; i < s->n; i++)
        m->next[i] = true;
    add_measurement(m, m->next, 1, 0.001);
}

/* Estimates the terms by all measurements. */
static void
estimate(struct qdqi_pattern_sum *m)
{
    const struct qdqi_pattern_search *s = m->s;
    begin(m);
    for (size_t i = 0; i < s->n_tried; i++) {
        const struct qdqi_tried_placement *p = &s->tried[i];
        if (p->n > 0)
            add_measurement(m, p->is_float, p->median,
                            (noise_part * p->median + least_ratio) / sqrt(p->n));
        if (p->n_failed > 0)
            add_measurement(m, p->is_float, failed_ratio,
                            failed_doubt / sqrt(p->n_failed));
    }
    solve(m);
}

/* --- placements ----------------------------------------------------------------------- */

static struct qdqi_tried_placement *
find(const struct qdqi_pattern_sum *m, const bool *is_float)
{
    struct qdqi_pattern_search *s = m->s;
    for (size_t i = 0; i < s->n_tried; i++)
        if (memcmp(s->tried[i].is_float, is_float, s->n * sizeof *is_float) == 0)
            return &s->tried[i];
    return NULL;
}

static struct qdqi_tried_placement *
find_or_add(struct qdqi_pattern_sum *m, const bool *is_float, struct qdq_error *err)
{
    struct qdqi_pattern_search *s = m->s;
    struct qdqi_tried_placement *found = find(m, is_float);
    if (found)
        return found;
    bool *copy = qdqi_arena_copy(s->arena, is_float, s->n, sizeof *copy);
    struct qdqi_tried_placement *grown =
        qdqi_arena_grow(s->arena, s->tried, s->n_tried, &m->capacity, sizeof *s->tried);
    if (!copy || !grown) {
        (void)qdqi_no_memory(err);
        return NULL;
    }
    s->tried = grown;
    s->tried[s->n_tried] = (struct qdqi_tried_placement){.is_float = copy};
    return &s->tried[s->n_tried++];
}

static bool
is_out(const struct qdqi_tried_placement *p)
{
    return p->n_failed >= RULED_OUT && p->n_failed > p->n;
}

/* Estimates the time of a placement by the sum and by its own measurements. */
static double
estimate_of(const struct qdqi_pattern_sum *m, const struct qdqi_tried_placement *p)
{
    const double sum = weigh(m, m->mean, p->is_float);
    const double own = own_part * own_part;
    if (is_out(p))
        return INFINITY;
    return p->n == 0
               ? sum
               : sum + (p->median - sum) * own / (own + noise_part * noise_part / p->n);
}

static int
compare_tried(const void *a, const void *b)
{
    const struct qdqi_tried_placement *x = a, *y = b;
    return (x->estimate > y->estimate) - (x->estimate < y->estimate);
}

/* Estimates all that were tried again, and sorts them. */
static void
sort_tried(const struct qdqi_pattern_sum *m)
{
    struct qdqi_pattern_search *s = m->s;
    for (size_t i = 0; i < s->n_tried; i++)
        s->tried[i].estimate = estimate_of(m, &s->tried[i]);
    qsort(s->tried, s->n_tried, sizeof *s->tried, compare_tried);
}

/* Switches the pattern with the greatest gain by a sum, until none gains. */
static void
descend(const struct qdqi_pattern_sum *m, const double *weights, bool *is_float)
{
    const struct qdqi_pattern_search *s = m->s;
    double now = weigh(m, weights, is_float);
    for (size_t step = 0; step < 4 * s->n; step++) {
        size_t best = s->n;
        double least = now;
        for (size_t i = 0; i < s->n; i++) {
            is_float[i] = !is_float[i];
            const double then = weigh(m, weights, is_float);
            is_float[i] = !is_float[i];
            if (then < least) {
                least = then;
                best = i;
            }
        }
        if (best == s->n)
            return;
        is_float[best] = !is_float[best];
        now = least;
    }
}

/* Finds the best placement by the sum that was drawn: from the best one so far, and from both ends. */
static void
propose(const struct qdqi_pattern_sum *m)
{
    const struct qdqi_pattern_search *s = m->s;
    bool from[QDQI_MOST_PATTERNS];
    double least = INFINITY;
    for (int start = 0; start < 3; start++) {
        for (size_t i = 0; i < s->n; i++)
            from[i] = start == 0 ? s->tried[0].is_float[i] : start == 1;
        descend(m, m->drawn, from);
        const double then = weigh(m, m->drawn, from);
        if (then < least) {
            least = then;
            memcpy(m->next, from, s->n * sizeof *from);
        }
    }
}

/* --- measuring --------------------------------------------------------------------------- */

static bool
is_over(const struct qdqi_pattern_sum *m)
{
    const struct qdqi_pattern_search *s = m->s;
    return s->n_measured >= s->most || m->n_failures >= MOST_FAILURES ||
           s->is_time_up(s->time_arg);
}

/* Measures once. *ret is NAN where that failed, or told what cannot be. */
static enum qdq_code
measure_once(struct qdqi_pattern_sum *m, const bool *is_float, double *ret,
             struct qdq_error *err)
{
    struct qdqi_pattern_search *s = m->s;
    *ret = NAN;
    enum qdq_code code = s->measure(s->arg, is_float, ret, err);
    s->n_measured++;
    if (!(*ret >= least_ratio && *ret <= most_ratio))
        *ret = NAN;
    m->n_failures = isnan(*ret) ? m->n_failures + 1 : 0;
    return code;
}

static bool
agree(double a, double b)
{
    return fabs(a - b) <= agreeing_part * fmin(a, b);
}

/* Measures a placement, again where the time is a surprise: it counts if one of two others agrees.
   Otherwise the measurement has failed. */
static enum qdq_code
measure_surely(struct qdqi_pattern_sum *m, const bool *is_float, double *ret,
               struct qdq_error *err)
{
    const struct qdqi_tried_placement *p = find(m, is_float);
    const double expected = p && p->n > 0 ? p->median : weigh(m, m->mean, is_float);
    double ratios[3];
    int n = 0;
    enum qdq_code code = measure_once(m, is_float, &ratios[n], err);
    *ret = ratios[n];
    if (code || isnan(*ret) || fabs(*ret - expected) <= surprise_part * fabs(expected))
        return code;
    for (n = 1; n < 3 && !is_over(m); n++) {
        if ((code = measure_once(m, is_float, &ratios[n], err)))
            return code;
        for (int k = 0; k < n; k++)
            if (agree(ratios[k], ratios[n])) {
                *ret = (ratios[k] + ratios[n]) / 2;
                return QDQ_OK;
            }
    }
    *ret = NAN;
    return QDQ_OK;
}

static void
set_median(struct qdqi_tried_placement *p)
{
    qsort(p->ratios, (size_t)p->n, sizeof *p->ratios, qdqi_compare_doubles);
    p->median = p->n > 0 ? (p->ratios[p->n / 2] + p->ratios[(p->n - 1) / 2]) / 2 : NAN;
}

/* Measures a placement, and learns from it. */
static enum qdq_code
try(struct qdqi_pattern_sum *m, const bool *is_float, struct qdq_error *err)
{
    double ratio;
    struct qdqi_tried_placement *p = find_or_add(m, is_float, err);
    if (!p)
        return QDQ_NO_MEMORY;
    enum qdq_code code = measure_surely(m, p->is_float, &ratio, err);
    if (code)
        return code;
    if (isnan(ratio))
        p->n_failed++;
    else if (p->n < QDQI_MOST_TRIES)
        p->ratios[p->n++] = ratio;
    set_median(p);
    estimate(m);
    sort_tried(m);
    return QDQ_OK;
}

/* Finds the neighbour of the best placement, by one pattern or by two that are a pair, that was not tried and
   seems fastest. Returns whether there is one that may be the best. */
static bool
propose_neighbour(const struct qdqi_pattern_sum *m)
{
    const struct qdqi_pattern_search *s = m->s;
    const struct qdqi_tried_placement *best = &s->tried[0];
    double least = best->estimate * (1 + close_part);
    bool any = false, near[QDQI_MOST_PATTERNS];
    for (size_t i = 0; i < s->n + s->n_pairs; i++) {
        const struct qdqi_pattern_pair pair =
            i < s->n ? (struct qdqi_pattern_pair){i, i} : s->pairs[i - s->n];
        memcpy(near, best->is_float, s->n * sizeof *near);
        near[pair.a] = !near[pair.a];
        near[pair.b] = i < s->n ? near[pair.b] : !near[pair.b];
        const double then = weigh(m, m->mean, near);
        if (then >= least || find(m, near))
            continue;
        least = then;
        any = true;
        memcpy(m->next, near, s->n * sizeof *near);
    }
    return any;
}

/* Measures what draws propose, and where they find nothing new, what is near the best placement. */
static enum qdq_code
explore(struct qdqi_pattern_sum *m, size_t most, struct qdq_error *err)
{
    struct qdqi_pattern_search *s = m->s;
    enum qdq_code code = QDQ_OK;
    int idle = 0;
    while (!code && s->n_measured < most && idle < MOST_IDLE && !is_over(m)) {
        draw(m);
        propose(m);
        const struct qdqi_tried_placement *known = find(m, m->next);
        const bool is_known = known && (known->n >= ENOUGH || is_out(known));
        idle = is_known ? idle + 1 : 0;
        if (!is_known || propose_neighbour(m))
            code = try(m, m->next, err);
    }
    return code;
}

/* Measures the best ones again, until the first one is sure. */
static enum qdq_code
make_sure(struct qdqi_pattern_sum *m, size_t most, struct qdq_error *err)
{
    struct qdqi_pattern_search *s = m->s;
    enum qdq_code code = QDQ_OK;
    while (!code && s->n_measured < most && s->tried[0].n < QDQI_MOST_TRIES &&
           !is_out(&s->tried[0]) && !is_over(m))
        code = try(m, s->tried[0].is_float, err);
    return code;
}

static bool
allocate(struct qdqi_pattern_sum *m)
{
    const struct qdqi_pattern_search *s = m->s;
    const size_t d = m->d = 1 + s->n + s->n_pairs;
    m->precision = qdqi_arena_array(s->arena, d * d, sizeof *m->precision);
    m->root = qdqi_arena_array(s->arena, d * d, sizeof *m->root);
    m->moment = qdqi_arena_array(s->arena, d, sizeof *m->moment);
    m->mean = qdqi_arena_array(s->arena, d, sizeof *m->mean);
    m->drawn = qdqi_arena_array(s->arena, d, sizeof *m->drawn);
    m->f = qdqi_arena_array(s->arena, d, sizeof *m->f);
    m->next = qdqi_arena_array(s->arena, s->n + 1, sizeof *m->next);
    return m->precision && m->root && m->moment && m->mean && m->drawn && m->f &&
           m->next;
}

enum qdq_code
qdqi_pattern_search(struct qdqi_pattern_search *s, struct qdq_error *err)
{
    struct qdqi_pattern_sum *m = qdqi_arena_alloc(s->arena, sizeof *m);
    if (!m)
        return qdqi_no_memory(err);
    *m = (struct qdqi_pattern_sum){.s = s, .state = 0x9e3779b97f4a7c15U};
    if (!allocate(m))
        return qdqi_no_memory(err);
    s->tried = NULL;
    s->n_tried = s->n_measured = 0;
    s->sum = m;
    s->estimates = m->mean;
    const size_t most = s->most - s->reserved;
    estimate(m);
    memset(m->next, 0, s->n * sizeof *m->next);
    enum qdq_code code = try(m, m->next, err);
    if (!code)
        code = explore(m, most - most / LAST_PART, err);
    return code ? code : make_sure(m, most, err);
}

enum qdq_code
qdqi_pattern_search_time(struct qdqi_pattern_search *s, const bool *is_float,
                         double *ret, struct qdq_error *err)
{
    struct qdqi_pattern_sum *m = s->sum;
    const struct qdqi_tried_placement *p = find(m, is_float);
    enum qdq_code code = QDQ_OK;
    while (!code && !(p && (p->n >= ENOUGH || is_out(p))) && !is_over(m)) {
        code = try(m, is_float, err);
        p = find(m, is_float);
    }
    *ret = p && p->n > 0 ? estimate_of(m, p) : NAN;
    return code;
}
