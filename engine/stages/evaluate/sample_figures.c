/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/sample_figures.h"

#include <math.h>
#include <stdlib.h>

/* The share of further samples that may be below the bound, the least confidence, and the signal
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

size_t
qdqi_tolerance_rank(size_t n, double *ret_level)
{
    double term = exp((double)n * log1p(-share)), below = 0; /* P(k = 0) */
    size_t r = 0;
    *ret_level = 1 - term;
    while (r < n && below + term <= 1 - least_level) {
        below += term;
        *ret_level = 1 - below;
        term *= (double)(n - r) / (double)(r + 1) * share / (1 - share);
        r++;
    }
    return r ? r : 1;
}

static int
compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
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

void
qdqi_samples_finish(const struct qdqi_samples *s, struct qdq_sample_report *ret)
{
    double sum = 0;
    double *db = s->arena ? qdqi_arena_array(s->arena, s->n + 1, sizeof *db) : NULL;
    *ret = (struct qdq_sample_report){0, NAN, NAN, NAN, NAN, NAN};
    if (!db || s->n == 0 || s->is_lost)
        return;
    for (size_t i = 0; i < s->n; i++)
        sum += s->rows[i].signal;
    for (size_t i = 0; i < s->n; i++)
        db[i] = sqnr_of(&s->rows[i], silence * sum / (double)s->n);
    qsort(db, s->n, sizeof *db, compare_doubles);
    *ret = (struct qdq_sample_report){
        .n = (int64_t)s->n,
        .worst_db = db[0],
        .p5_db = db[(size_t)(share * (double)s->n)],
        .median_db = s->n % 2 ? db[s->n / 2] : (db[s->n / 2 - 1] + db[s->n / 2]) / 2,
    };
    const size_t rank = qdqi_tolerance_rank(s->n, &ret->confidence_level);
    ret->confidence_db = db[rank - 1];
}
