/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/sample_figures.h"

#include "ground/base/order.h"

#include <math.h>
#include <stdlib.h>

/* The share of the next samples that may be below the bound, the least confidence, and the signal
   of silence in parts of the mean signal. */
static const double share = 0.05, least_level = 0.95, silence = 0.01;

void
qdqi_samples_add(struct qdqi_samples *s, double signal, double noise)
{
    if (!s->arena || s->is_lost)
        return;
    struct qdqi_sample *rows =
        qdqi_arena_grow(s->arena, s->rows, s->n, &s->capacity, sizeof *rows);
    s->is_lost = !rows;
    if (!rows)
        return;
    s->rows = rows;
    s->rows[s->n++] = (struct qdqi_sample){signal, noise};
}

/* Returns the probability that of the first s of 2n in a random order k are of one half. */
static double
exactly(size_t n, size_t s, size_t k)
{
    double log_p = 0;
    for (size_t i = 0; i < k; i++)
        log_p += log((double)(n - i) / (double)(2 * n - i) * (double)(s - i) /
                     (double)(i + 1));
    for (size_t i = k; i < s; i++)
        log_p += log((double)(n - (i - k)) / (double)(2 * n - i));
    return exp(log_p);
}

/* Returns the confidence that no more than a share of the next n samples are below the r-th of n:
   that the first s of all 2n have at least r of those n. */
static double
level_of(size_t n, size_t r)
{
    const size_t s = (size_t)(share * (double)n) + r;
    double total = 0;
    /* the probability of r - 1 of them, then of fewer */
    double term = exactly(n, s, r - 1);
    for (size_t a = r - 1;; a--) {
        total += term;
        if (a == 0 || term < total * 1e-18)
            return 1 - total;
        term *= (double)a * (double)(n - s + a) /
                ((double)(n - a + 1) * (double)(s - a + 1));
    }
}

size_t
qdqi_tolerance_rank(size_t n, double *ret_level)
{
    size_t low = 1, high = (size_t)(share * (double)n) + 2;
    while (high - low > 1) { /* the level falls with the rank */
        const size_t middle = low + (high - low) / 2;
        if (middle <= n && level_of(n, middle) >= least_level)
            low = middle;
        else
            high = middle;
    }
    *ret_level = level_of(n, low);
    return low;
}

static double
sqnr_of(const struct qdqi_sample *s, double least)
{
    const double signal = fmax(s->signal, least);
    if (s->noise == 0)
        return INFINITY;
    const double db = 10 * log10(signal / s->noise);
    return isnan(db) ? -(double)INFINITY : db;
}

/* Returns the least signal that counts. */
static double
least_signal(const struct qdqi_samples *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += s->rows[i].signal;
    return silence * sum / (double)s->n;
}

int64_t
qdqi_samples_below(const struct qdqi_samples *s, double db)
{
    const double least = least_signal(s);
    int64_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += sqnr_of(&s->rows[i], least) < db;
    return n;
}

void
qdqi_samples_finish(const struct qdqi_samples *s, struct qdq_sample_report *ret)
{
    double *db = s->arena ? qdqi_arena_array(s->arena, s->n + 1, sizeof *db) : NULL;
    *ret = (struct qdq_sample_report){0, NAN, NAN, NAN, NAN, NAN};
    if (!db || s->n == 0 || s->is_lost)
        return;
    const double least = least_signal(s);
    for (size_t i = 0; i < s->n; i++)
        db[i] = sqnr_of(&s->rows[i], least);
    qsort(db, s->n, sizeof *db, qdqi_compare_doubles);
    *ret = (struct qdq_sample_report){
        .n = (int64_t)s->n,
        .worst_db = db[0],
        .p5_db = db[(size_t)(share * (double)s->n)],
        .median_db = s->n % 2 ? db[s->n / 2] : (db[s->n / 2 - 1] + db[s->n / 2]) / 2,
    };
    const size_t rank = qdqi_tolerance_rank(s->n, &ret->confidence_level);
    ret->confidence_db = db[rank - 1];
}
