/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refinement for few bits: scales by least squares and coordinate descent. `sums` of a
 * panel has C times the error of each output, the gradient, and follows each change.
 *
 * Where few elements share a scale, a round takes one scale after the other: it fits the
 * scale and descends along the elements that share it, and tells the change of both to
 * the gradient at once. Where many do, it fits the scales first.
 */
#include "config.h"
#include "graph/weights/joint.h"
#include "graph/weights/panel.h"

#include "ground/base/arena.h"
#include "ground/base/tasks.h"
#include "numbers/arithmetic/simd.h"

#include <stdlib.h>
#include <string.h>

enum {
    STEP = QDQI_AT_ONCE, /* elements of a row that are moved before an update */
    ROUNDS = 3,          /* of scales and coordinate descent */
    PASSES = 5,          /* of coordinate descent in a round, at most */
    JOINT_ROUNDS = 6,    /* where scales and integers are chosen together */
    MOST_SHARING = QDQI_MOST_SHARING, /* elements of a scale that is fitted alone */
    SHARES = 71, /* of the largest scale that are tried, down to 0.30 */
    PIECE = 32,  /* outputs whose scales are narrowed by one task */
};

/* --- the gradient ---------------------------------------------------------- */

static void
compute_gradient(struct qdqi_panel *p)
{
    const struct qdqi_moment_block *b = p->b;
    const struct qdqi_gptq *r = b->r;
    memset(p->sums, 0, QDQI_PANEL * b->ld * sizeof *p->sums);
    for (size_t i = 0, end; i < b->n; i = end) {
        end = b->n - i < STEP ? b->n : i + STEP;
        for (size_t k = i; k < end; k++)
            for (size_t line = 0; line < p->n; line++) {
                size_t at = qdqi_at_place(p, line, k);
                p->by[line][k - i] = (double)r->weight[at] - qdqi_value_at(r, at);
            }
        const struct qdqi_update u = qdqi_update_by(b, b->c, i, end);
        qdqi_update_panel(&u, p->by, p->n, p->sums, b->ld);
    }
}

/* Adds the moves of some places to the sums: line by line where few places moved. */
static void
add_moved(struct qdqi_panel *p, const struct qdqi_update *u, const size_t *n_moved)
{
    size_t total = 0;
    for (size_t line = 0; line < p->n; line++)
        total += n_moved[line];
    if (total * 4 > p->n * u->n)
        qdqi_update_panel(u, p->by, p->n, p->sums, p->b->ld);
    else
        for (size_t line = 0; line < p->n; line++)
            if (n_moved[line] > 0)
                qdqi_update_line(u, p->by[line], p->sums + line * p->b->ld);
}

/* --- coordinate descent ----------------------------------------------------- */

/* Moves an integer to where the error is least while the others stay. Returns the change
   of the error, or 0. */
static double
descend_one(const struct qdqi_gptq *r, size_t at, double gradient, double curve)
{
    /* A step of less than half a scale leaves the integer where it is; most are, and a division takes
       long. */
    static const double half = 0.499999;
    if (!(curve > 0) || fabs(gradient) < half * curve * fabs(qdqi_scale_at(r, at)))
        return 0;
    double before = qdqi_value_at(r, at);
    int16_t q = qdqi_nearest_at(r, at, before + gradient / curve);
    if (q == r->integers[at])
        return 0;
    r->integers[at] = q;
    return before - qdqi_value_at(r, at);
}

/* Descends once along all places, in the outputs that are live: the others did not move
   in the last pass. Returns whether an integer moved. */
static bool
descend(struct qdqi_panel *p, bool *live)
{
    const struct qdqi_moment_block *b = p->b;
    size_t total[QDQI_PANEL] = {0};
    bool any = false;
    for (size_t i = 0, end; i < b->n; i = end) {
        size_t n_moved[QDQI_PANEL] = {0};
        end = b->n - i < STEP ? b->n : i + STEP;
        qdqi_load_local(p, i, end);
        memset(p->by, 0, sizeof p->by);
        for (size_t k = i; k < end; k++)
            for (size_t line = 0; line < p->n; line++) {
                double change =
                    live[line] ? descend_one(b->r, qdqi_at_place(p, line, k),
                                             p->local[line][k - i], b->c[k * b->ld + k])
                               : 0;
                if (change == 0)
                    continue;
                p->by[line][k - i] = change;
                qdqi_add_to_local(p, line, b->c + k * b->ld + i, k - i, end - i);
                n_moved[line]++;
                total[line]++;
            }
        const struct qdqi_update u = qdqi_update_by(b, b->c, i, end);
        add_moved(p, &u, n_moved);
    }
    for (size_t line = 0; line < p->n; line++)
        any |= live[line] = total[line] > 0;
    return any;
}

/* --- scales of few elements -------------------------------------------------- */

/* The elements of an output that share a scale. */
struct few {
    struct qdqi_panel *p;
    const size_t *members;
    size_t n;
    double c[MOST_SHARING * MOST_SHARING]; /* [n][n]: what the moment has of them */
    double gradient[MOST_SHARING];
    double before[MOST_SHARING];             /* the numbers that they stood for */
    double change[QDQI_PANEL][MOST_SHARING]; /* of these numbers, in all outputs */
    struct qdqi_joint joint;
};

static void
load_few(struct few *f, const size_t *members, size_t n)
{
    const struct qdqi_moment_block *b = f->p->b;
    f->members = members;
    f->n = n;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            f->c[i * n + k] =
                b->c[b->places[members[i]] * b->ld + b->places[members[k]]];
    f->joint.r = b->r;
    f->joint.members = members;
    f->joint.n = n;
    f->joint.c = f->c;
    if (b->r->joint)
        qdqi_joint_begin(&f->joint);
}

/* Returns a scale that least squares ask for, or the present one where it is out of all
   proportion. */
static float
fitted(float before, double top, double bottom)
{
    float after = (float)((double)before + (bottom > 0 ? top / bottom : 0));
    float size = fabsf(after), old = fabsf(before);
    bool same_sign = (after < 0) == (before < 0);
    return !isnormal(after) || !same_sign || size < old / 4 || size > old * 4 ? before
                                                                              : after;
}

/* Computes C times the integers of an output. Rows and columns of C are the same, and each sum is
   built in the order of the integers. */
QDQI_LOOP void
multiply_few_loop(const double *c, size_t n, const double *integers,
                  double *restrict products)
{
    memset(products, 0, n * sizeof *products);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++)
            products[i] += c[k * n + i] * integers[k];
}

QDQI_VARIANTS(void, multiply_few,
              (const double *c, size_t n, const double *integers,
               double *restrict products),
              (c, n, integers, products))

/* Fits the scale of an output, whose integers stay. */
static void
fit_few(struct few *f, size_t line)
{
    const struct qdqi_gptq *r = f->p->b->r;
    double integers[MOST_SHARING], product[MOST_SHARING], top = 0, bottom = 0;
    float *s = NULL;
    for (size_t i = 0; i < f->n; i++) {
        size_t at = qdqi_element(r, f->p->first + line, f->members[i]);
        s = &r->scales[r->scale_of[at]];
        integers[i] = r->integers[at] - qdqi_zero_at(r, at);
    }
    if (!s)
        return;
    multiply_few(f->c, f->n, integers, product);
    for (size_t i = 0; i < f->n; i++) {
        top += integers[i] * f->gradient[i];
        bottom += integers[i] * product[i];
    }
    float after = fitted(*s, top, bottom);
    for (size_t i = 0; i < f->n; i++)
        f->gradient[i] += product[i] * ((double)*s - (double)after);
    *s = after;
}

/* Fits the scale of one output and descends along its elements. Returns whether an
   integer moved. */
static bool
refine_few(struct few *f, size_t line)
{
    const struct qdqi_panel *p = f->p;
    const struct qdqi_gptq *r = p->b->r;
    bool moved = false;
    for (size_t i = 0; i < f->n; i++) {
        f->gradient[i] = p->sums[line * p->b->ld + p->b->places[f->members[i]]];
        f->before[i] =
            qdqi_value_at(r, qdqi_element(r, p->first + line, f->members[i]));
    }
    if (r->joint)
        moved = qdqi_joint_search(&f->joint, p->first + line, f->gradient);
    fit_few(f, line);
    for (size_t i = 0; i < f->n; i++) {
        const double *row = f->c + i * f->n;
        size_t at = qdqi_element(r, p->first + line, f->members[i]);
        double change = descend_one(r, at, f->gradient[i], row[i]);
        for (size_t k = i + 1; change != 0 && k < f->n; k++)
            f->gradient[k] += change * row[k];
        moved |= change != 0;
    }
    return moved;
}

/* Refines the elements of one scale in all outputs of the panel. */
static void
refine_scale(struct few *f, bool *live)
{
    struct qdqi_panel *p = f->p;
    const struct qdqi_gptq *r = p->b->r;
    for (size_t line = 0; line < p->n; line++) {
        live[line] |= refine_few(f, line);
        for (size_t i = 0; i < f->n; i++)
            f->change[line][i] =
                f->before[i] -
                qdqi_value_at(r, qdqi_element(r, p->first + line, f->members[i]));
    }
    for (size_t i = 0; i < f->n; i += QDQI_AT_ONCE) {
        struct qdqi_update u = {.n = f->n - i < QDQI_AT_ONCE ? f->n - i : QDQI_AT_ONCE,
                                .end = p->b->n};
        for (size_t k = 0; k < u.n; k++) {
            u.rows[k] = p->b->c + p->b->places[f->members[i + k]] * p->b->ld;
            for (size_t line = 0; line < p->n; line++)
                p->by[line][k] = f->change[line][i + k];
        }
        qdqi_update_panel(&u, p->by, p->n, p->sums, p->b->ld);
    }
}

/* A pass of descent that fits scales on its way. live[line] becomes whether an integer of
   the output moved. */
static void
refine_scales(struct qdqi_panel *p, struct few *f, bool *live)
{
    const struct qdqi_shared *s = &p->b->shared;
    memset(live, 0, QDQI_PANEL * sizeof *live);
    for (size_t i = 0; i < s->n; i++) {
        load_few(f, s->members + s->begin[i], s->begin[i + 1] - s->begin[i]);
        refine_scale(f, live);
    }
}

/* --- scales of many elements -------------------------------------------------- */

/* Computes C times the integers that share a scale. */
static void
multiply_members(struct qdqi_panel *p, const size_t *members, size_t n)
{
    const struct qdqi_moment_block *b = p->b;
    const struct qdqi_gptq *r = b->r;
    memset(p->products, 0, QDQI_PANEL * b->ld * sizeof *p->products);
    for (size_t i = 0; i < n; i += QDQI_AT_ONCE) {
        struct qdqi_update u = {.n = n - i < QDQI_AT_ONCE ? n - i : QDQI_AT_ONCE,
                                .end = b->n};
        for (size_t k = 0; k < u.n; k++) {
            u.rows[k] = b->c + b->places[members[i + k]] * b->ld;
            for (size_t line = 0; line < p->n; line++) {
                size_t at = qdqi_element(r, p->first + line, members[i + k]);
                p->by[line][k] = r->integers[at] - qdqi_zero_at(r, at);
            }
        }
        qdqi_update_panel(&u, p->by, p->n, p->products, b->ld);
    }
}

/* Gives a scale of one output the value with which the error is least while the integers
   stay. */
static void
fit_scale(struct qdqi_panel *p, size_t line, const size_t *members, size_t n)
{
    const struct qdqi_moment_block *b = p->b;
    const struct qdqi_gptq *r = b->r;
    double *product = p->products + line * b->ld, *gradient = p->sums + line * b->ld;
    float *s = &r->scales[r->scale_of[qdqi_element(r, p->first + line, members[0])]];
    double top = 0, bottom = 0;
    for (size_t k = 0; k < n; k++) {
        size_t at = qdqi_element(r, p->first + line, members[k]);
        int32_t q = r->integers[at] - qdqi_zero_at(r, at);
        top += q * gradient[b->places[members[k]]];
        bottom += q * product[b->places[members[k]]];
    }
    float after = fitted(*s, top, bottom);
    const struct qdqi_update u = {{product}, 1, 0, b->n};
    const double by = (double)*s - (double)after;
    *s = after;
    qdqi_update_line(&u, &by, gradient);
}

static void
fit_scales(struct qdqi_panel *p)
{
    const struct qdqi_shared *s = &p->b->shared;
    for (size_t i = 0; i < s->n; i++) {
        const size_t *members = s->members + s->begin[i];
        size_t n = s->begin[i + 1] - s->begin[i];
        multiply_members(p, members, n);
        for (size_t line = 0; line < p->n; line++)
            fit_scale(p, line, members, n);
    }
}

/* --- rounds -------------------------------------------------------------------- */

enum qdq_code
qdqi_refine_panel(struct qdqi_panel *p, struct qdq_error *err)
{
    bool fits = p->b->r->own_scales && p->b->n == p->b->r->moment->k;
    struct few *few = malloc(sizeof *few);
    if (!few)
        return qdqi_no_memory(err);
    few->p = p;
    compute_gradient(p);
    for (int round = 0; round < (p->b->r->joint ? JOINT_ROUNDS : ROUNDS); round++) {
        bool live[QDQI_PANEL];
        int pass = 0;
        memset(live, true, sizeof live);
        if (fits && p->b->shared.most <= MOST_SHARING) {
            refine_scales(p, few, live);
            pass++;
        } else if (fits)
            fit_scales(p);
        for (; pass < PASSES && descend(p, live); pass++)
            ;
    }
    free(few);
    return QDQ_OK;
}

/* --- the first scales ------------------------------------------------------------ */

/* Elements that share a scale: their numbers and what their errors weigh. */
struct weighed {
    double low, high; /* integers less the zero point */
    size_t n;
    double *numbers, *weights;
};

/* Returns the sum of C_kk (w - q)^2, in eight parts so that it vectorizes. */
QDQI_LOOP double
weighed_error_loop(const struct weighed *e, double s)
{
    double part[8] = {0}, total = 0, low = e->low, high = e->high;
    for (size_t k = 0; k < e->n; k += 8)
        for (size_t i = 0; i < 8; i++) {
            double q = __builtin_rint(e->numbers[k + i] / s);
            q = q < low ? low : q > high ? high : q;
            double off = e->numbers[k + i] - q * s;
            part[i] += e->weights[k + i] * off * off;
        }
    for (size_t i = 0; i < 8; i++)
        total += part[i];
    return total;
}

QDQI_VARIANTS(double, weighed_error, (const struct weighed *e, double s), (e, s))

struct narrowing {
    const struct qdqi_gptq *r;
    const double *diagonal;
    const struct qdqi_shared *shared;
};

/* Gives a scale of an output the best of its shares. The arrays of `e` have room for 7
   more elements than share a scale. */
static void
narrow(const struct narrowing *w, size_t output, size_t i, struct weighed *e)
{
    const struct qdqi_gptq *r = w->r;
    const size_t *members = w->shared->members + w->shared->begin[i];
    size_t n = w->shared->begin[i + 1] - w->shared->begin[i];
    size_t at = qdqi_element(r, output, members[0]);
    float *s = &r->scales[r->scale_of[at]];
    double most = fabs((double)*s), least = INFINITY;
    e->low = r->lowest - qdqi_zero_at(r, at);
    e->high = r->highest - qdqi_zero_at(r, at);
    e->n = (n + 7) / 8 * 8;
    for (size_t k = 0; k < e->n; k++) {
        e->numbers[k] =
            k < n ? (double)r->weight[qdqi_element(r, output, members[k])] : 0;
        e->weights[k] = k < n ? w->diagonal[members[k]] : 0;
    }
    for (int k = 0; k < SHARES; k++) {
        for (int sign = 1; sign >= (r->is_signed ? -1 : 1); sign -= 2) {
            float tried = (float)(sign * most * (1 - 0.01 * k));
            double error = weighed_error(e, (double)tried);
            if (isnormal(tried) && error < least) {
                least = error;
                *s = tried;
            }
        }
    }
}

static enum qdq_code
narrow_piece(void *arg, size_t piece, struct qdq_error *err)
{
    const struct narrowing *w = arg;
    size_t room = w->shared->most + 7, first = piece * PIECE;
    struct weighed e = {.numbers = calloc(room, sizeof *e.numbers),
                        .weights = calloc(room, sizeof *e.weights)};
    bool ok = e.numbers && e.weights;
    for (size_t output = first; ok && output < w->r->outputs && output < first + PIECE;
         output++)
        for (size_t i = 0; i < w->shared->n; i++)
            narrow(w, output, i, &e);
    free(e.numbers);
    free(e.weights);
    return ok ? QDQ_OK : qdqi_no_memory(err);
}

enum qdq_code
qdqi_narrow_scales(const struct qdqi_gptq *r, const double *diagonal,
                   const struct qdqi_shared *shared, struct qdq_error *err)
{
    struct narrowing w = {r, diagonal, shared};
    return qdqi_tasks_run(r->tasks, (r->outputs + PIECE - 1) / PIECE, narrow_piece, &w,
                          err);
}
