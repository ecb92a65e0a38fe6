/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/kept_figures.h"

#include <math.h>

/* Numbers that are written one after the other, or read in the same order. */
struct walk {
    struct qdqi_arena *arena;
    double *numbers;
    size_t n, capacity;
    size_t at;     /* of the next one to read */
    bool is_read;  /* else it is written */
    bool no_room;  /* out of memory */
    bool is_other; /* what is read is not of this form */
};

static void
number(struct walk *w, double *x)
{
    if (w->is_read) {
        w->is_other = w->is_other || w->at >= w->n;
        if (!w->is_other)
            *x = w->numbers[w->at++];
        return;
    }
    double *grown = w->no_room ? NULL
                               : qdqi_arena_grow(w->arena, w->numbers, w->n,
                                                 &w->capacity, sizeof *grown);
    w->no_room = !grown;
    if (!grown)
        return;
    w->numbers = grown;
    grown[w->n++] = *x;
}

/* A whole number from 0 to 2^53, which a double holds exactly. */
static void
count(struct walk *w, int64_t *x)
{
    double value = (double)*x;
    number(w, &value);
    if (!(value >= 0 && value <= 0x1p53) || value != floor(value))
        w->is_other = true;
    else
        *x = (int64_t)value;
}

static void
flag(struct walk *w, bool *x)
{
    int64_t value = *x;
    count(w, &value);
    w->is_other = w->is_other || value > 1;
    *x = value == 1;
}

static void
walk_samples(struct walk *w, struct qdqi_samples *s)
{
    int64_t n = (int64_t)s->n;
    count(w, &n);
    for (int64_t i = 0; i < n && !w->is_other && !w->no_room; i++) {
        struct qdqi_sample one = w->is_read ? (struct qdqi_sample){0} : s->rows[i];
        number(w, &one.signal);
        number(w, &one.noise);
        if (w->is_read && !w->is_other)
            qdqi_samples_add(s, one.signal, one.noise);
    }
    w->no_room = w->no_room || s->is_lost;
}

static void
walk_points(struct walk *w, struct qdqi_scatter *s)
{
    int64_t n = (int64_t)s->n;
    count(w, &n);
    w->is_other = w->is_other || n < 0 || n > (s->points ? QDQI_MOST_POINTS : 0);
    for (int64_t i = 0; i < n && !w->is_other && !w->no_room; i++) {
        double f = w->is_read ? 0 : (double)s->points[i].f;
        double q = w->is_read ? 0 : (double)s->points[i].q;
        number(w, &f);
        number(w, &q);
        s->points[i] = (struct qdq_point){(float)f, (float)q};
    }
    s->n = w->is_other ? s->n : (size_t)n;
}

static void
walk_slices(struct walk *w, struct qdqi_slice_sums *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct qdqi_cut_sums *cut = &s->cuts[i];
        count(w, &cut->size);
        flag(w, &cut->is_broken);
        for (size_t k = 0; k < cut->cut->n && !w->is_other && !w->no_room; k++) {
            number(w, &cut->rows[k].n);
            number(w, &cut->rows[k].f);
            number(w, &cut->rows[k].ff);
            number(w, &cut->rows[k].ee);
        }
    }
}

static void
walk_metrics(struct walk *w, struct qdqi_metrics *m)
{
    double *const sums[] = {&m->signal,
                            &m->noise,
                            &m->sum,
                            &m->elements,
                            &m->cosine,
                            &m->max_abs_error,
                            &m->language.divergence,
                            &m->language.float_nats,
                            &m->language.nats};
    int64_t *const counts[] = {&m->samples,       &m->entries,        &m->found,
                               &m->nonfinite,     &m->rows,           &m->agreeing,
                               &m->language.rows, &m->language.tokens};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        number(w, sums[i]);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        count(w, counts[i]);
    flag(w, &m->is_choice);
    flag(w, &m->has_other_entries);
    walk_samples(w, &m->by_sample);
    walk_points(w, &m->scatter);
    walk_slices(w, &m->slices);
}

static void
walk_all(struct walk *w, struct qdqi_evaluated *e)
{
    int64_t n_layers = (int64_t)e->comparisons->n;
    count(w, &e->samples);
    count(w, &e->of);
    flag(w, &e->is_settled);
    count(w, e->layer_samples);
    for (size_t i = 0; i < e->n_outputs; i++) {
        flag(w, &e->not_float[i]);
        flag(w, &e->literal->measured[i]);
        flag(w, &e->deployed->measured[i]);
        walk_metrics(w, &e->literal->metrics[i]);
        walk_metrics(w, &e->deployed->metrics[i]);
    }
    count(w, &n_layers);
    w->is_other = w->is_other || n_layers != (int64_t)e->comparisons->n;
    for (size_t i = 0; i < e->comparisons->n && !w->is_other; i++) {
        struct qdqi_comparison *row = &e->comparisons->rows[i];
        number(w, &row->sums.signal);
        number(w, &row->sums.noise);
        count(w, &row->runs);
        flag(w, &row->differs);
    }
}

uint64_t
qdqi_kept_evaluation_key(const struct qdqi_attempt *a,
                         const struct qdq_model *quantized,
                         const struct qdqi_feed_options *samples,
                         int64_t most_layer_samples)
{
    const int64_t parts[] = {samples->first,    samples->max_samples,
                             samples->batch,    most_layer_samples,
                             a->spec->evaluate, a->spec->evaluate_samples};
    uint64_t key = qdqi_kept_key_add_model(qdqi_kept_key_of_data(a), quantized);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        key = qdqi_kept_key_add(key, parts[i]);
    return key;
}

enum qdq_code
qdqi_kept_evaluation_take(const struct qdqi_attempt *a, uint64_t key,
                          struct qdqi_evaluated *to, bool *ret, struct qdq_error *err)
{
    struct qdqi_kept_times *kept = NULL;
    const double *numbers;
    struct walk w = {.is_read = true};
    enum qdq_code code = qdqi_kept_times_get(a, &kept, err);
    *ret = false;
    if (code || !qdqi_kept_times_take_numbers(kept, key, &numbers, &w.n))
        return code;
    /* the const is cast away: what is read is not changed */
    w.numbers = (double *)(uintptr_t)numbers;
    walk_all(&w, to);
    *ret = !w.is_other && w.at == w.n;
    return w.no_room ? qdqi_no_memory(err) : QDQ_OK;
}

enum qdq_code
qdqi_kept_evaluation_add(const struct qdqi_attempt *a, uint64_t key,
                         struct qdqi_evaluated *from, struct qdq_error *err)
{
    struct qdqi_kept_times *kept = NULL;
    struct walk w = {.arena = a->scratch};
    for (size_t i = 0; i < from->n_outputs; i++)
        if (from->literal->why[i] || from->deployed->why[i])
            return QDQ_OK;
    walk_all(&w, from);
    if (w.no_room)
        return qdqi_no_memory(err);
    enum qdq_code code = w.is_other ? QDQ_OK : qdqi_kept_times_get(a, &kept, err);
    return code || w.is_other
               ? code
               : qdqi_kept_times_add_numbers(kept, key, w.numbers, w.n, err);
}
