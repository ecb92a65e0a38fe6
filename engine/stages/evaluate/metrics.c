/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/metrics.h"

#include "stages/evaluate/choices.h"

#include "numbers/arithmetic/noise.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_SCATTERED = 8 }; /* outputs of which points are kept */

struct sums {
    double f, ff, qq, fq, ee, max;
};

/* Returns the larger number, or NaN if one of them is a NaN. */
static double
larger(double a, double b)
{
    return a >= b || isnan(a) ? a : b;
}

static inline void
add_one(struct sums *s, float f, float q)
{
    const double a = (double)f, b = (double)q, e = a - b, size = fabs(e);
    s->f += a;
    s->ff += a * a;
    s->qq += b * b;
    s->fq += a * b;
    s->ee += e * e;
    s->max = size > s->max ? size : s->max;
}

/* Adds neighbours in memory, in sums that a processor adds to at the same time. An error that is a
   NaN makes `ee` one, and is then the largest. */
static void
add_sums(struct sums *s, const float *f, const float *q, size_t n)
{
    enum { LANES = 4 };
    struct sums lanes[LANES] = {{0}};
    const size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            add_one(&lanes[k], f[i + k], q[i + k]);
    for (size_t i = whole; i < n; i++)
        add_one(&lanes[0], f[i], q[i]);
    for (size_t k = 0; k < LANES; k++) {
        s->f += lanes[k].f;
        s->ff += lanes[k].ff;
        s->qq += lanes[k].qq;
        s->fq += lanes[k].fq;
        s->ee += lanes[k].ee;
        s->max = larger(s->max, isnan(lanes[k].ee) ? NAN : lanes[k].max);
    }
}

/* Returns the cosine similarity: 1 for two vectors of zeros, 0 when only one of them
   is all zeros. */
static double
cosine(const struct sums *s)
{
    if (s->ff == 0 && s->qq == 0)
        return 1;
    double norms = sqrt(s->ff) * sqrt(s->qq);
    return norms > 0 ? s->fq / norms : norms == 0 ? 0 : NAN;
}

size_t
qdqi_argmax(const float *row, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (row[i] > row[best])
            best = i;
    return best;
}

enum qdq_code
qdqi_metrics_init(const struct qdq_model *model, bool keeps_samples,
                  struct qdqi_arena *arena, struct qdqi_metrics **ret,
                  struct qdq_error *err)
{
    const size_t n = model->info.n_outputs;
    struct qdqi_metrics *m = qdqi_arena_array(arena, n + 1, sizeof *m);
    enum qdq_code code = m ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; !code && i < n; i++) {
        struct qdqi_cuts *cuts = qdqi_arena_alloc(arena, sizeof *cuts);
        code =
            cuts ? qdqi_output_cuts(model, i, arena, cuts, err) : qdqi_no_memory(err);
        if (!code)
            code = qdqi_slice_sums_init(&m[i].slices, cuts, arena, err);
        m[i].language = qdqi_language_of(&model->info, i);
        m[i].by_sample.arena = keeps_samples ? arena : NULL;
        if (!code && keeps_samples && i < MOST_SCATTERED)
            code = qdqi_scatter_init(&m[i].scatter, arena, err);
    }
    *ret = m;
    return code;
}

void
qdqi_metrics_clear(struct qdqi_metrics *m)
{
    qdqi_slice_sums_clear(&m->slices);
    m->by_sample.n = 0;
    m->language.divergence = m->language.float_nats = m->language.nats = 0;
    m->language.rows = m->language.tokens = 0;
    *m = (struct qdqi_metrics){
        .slices = m->slices, .language = m->language, .by_sample = m->by_sample};
}

/* Returns the number of elements that are the same infinity, or NaN, in both, as masked logits
   have them. */
static size_t
count_nonfinite(const float *f, const float *q, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += qdqi_same_nonfinite(f[i], q[i]);
    return count;
}

/* Copies both with zeros in the place of such elements. Returns the copy of f, which the caller
   frees and behind which that of q stands, or NULL when out of memory. */
static float *
copy_finite(const float *f, const float *q, size_t n)
{
    float *copy = calloc(n, 2 * sizeof *copy);
    for (size_t i = 0; copy && i < n; i++) {
        if (qdqi_same_nonfinite(f[i], q[i]))
            continue;
        copy[i] = f[i];
        copy[n + i] = q[i];
    }
    return copy;
}

static void
count_rows(struct qdqi_metrics *m, const float *f, const float *q, size_t n,
           size_t last)
{
    for (size_t i = 0; last >= 2 && i + last <= n; i += last) {
        m->rows++;
        m->agreeing += qdqi_argmax(f + i, last) == qdqi_argmax(q + i, last);
    }
}

static void
add_outputs(struct qdqi_metrics *m, const float *f, const float *q, size_t n,
            int64_t samples, const struct qdqi_output_shape *shape)
{
    /* An output whose elements cannot be divided among the samples is compared as a
       whole. */
    size_t parts = samples > 0 && n % (size_t)samples == 0 ? (size_t)samples : 1;
    size_t part = n / parts;
    for (size_t i = 0; i < parts; i++) {
        struct sums s = {0};
        add_sums(&s, f + i * part, q + i * part, part);
        m->signal += s.ff;
        m->noise += s.ee;
        m->sum += s.f;
        m->elements += (double)part;
        qdqi_samples_add(&m->by_sample, s.ff, s.ee);
        m->cosine += cosine(&s);
        m->samples++;
        m->max_abs_error = larger(m->max_abs_error, s.max);
    }
    qdqi_slice_sums_add(&m->slices, f, q, shape->dims, shape->rank, samples);
}

void
qdqi_metrics_update(struct qdqi_metrics *m, const float *f, const float *q, size_t n,
                    int64_t samples, const struct qdqi_output_shape *shape)
{
    const size_t last = shape->rank ? (size_t)shape->dims[shape->rank - 1] : 0;
    const size_t nonfinite = count_nonfinite(f, q, n);
    float *copy = nonfinite ? copy_finite(f, q, n) : NULL;
    count_rows(m, f, q, n, last);
    qdqi_scatter_add(&m->scatter, f, q, n);
    add_outputs(m, copy ? copy : f, copy ? copy + n : q, n, samples, shape);
    if (copy) {
        m->elements -= (double)nonfinite;
        m->nonfinite += (int64_t)nonfinite;
    }
    free(copy);
}

void
qdqi_metrics_finish(const struct qdqi_metrics *m, const char *name,
                    struct qdq_output_report *ret)
{
    *ret = (struct qdq_output_report){
        .name = name,
        .sqnr_db = m->noise == 0 ? INFINITY : 10 * log10(m->signal / m->noise),
        .cosine = m->samples ? m->cosine / (double)m->samples : NAN,
        .max_abs_error = m->max_abs_error,
        .top1_agreement = m->rows ? (double)m->agreeing / (double)m->rows : NAN,
        .rows = (int64_t)m->rows,
        .nonfinite = m->nonfinite,
        .worst_slice_db = qdqi_slice_sums_worst(&m->slices),
        .n_points = m->scatter.n,
        .points = m->scatter.points,
    };
    qdqi_language_finish(&m->language, ret);
    const struct qdqi_slice_sum whole = {m->elements, m->sum, m->signal, m->noise};
    const char *why;
    ret->centred_db = qdqi_slice_sqnr(&whole, &why);
    qdqi_samples_finish(&m->by_sample, &ret->samples);
    if (m->is_choice)
        qdqi_choices_finish(m, ret);
}
