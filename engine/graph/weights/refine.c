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
    STEP = 32,        /* elements of a row that are moved before an update */
    ROUNDS = 3,       /* of scales and coordinate descent */
    PASSES = 5,       /* of coordinate descent in a round, at most */
    JOINT_ROUNDS = 6, /* where scales and integers are chosen together */
    MOST_SHARING = QDQI_MOST_SHARING, /* elements of a scale that is fitted alone */
};

/* --- the gradient ---------------------------------------------------------- */

/* Writes by how much each output's element at a place is off. */
static void
write_errors(const struct qdqi_panel *p, size_t place, float *to)
{
    for (size_t line = 0; line < p->n; line++)
        to[line] =
            (float)((double)p->weight[place][line] - qdqi_panel_value(p, place, line));
}

static void
compute_gradient(struct qdqi_panel *p)
{
    const struct qdqi_moment_block *b = p->b;
    memset(p->sums, 0, b->ld * sizeof *p->sums);
    memset(p->by, 0, sizeof p->by);
    for (size_t i = 0, end; i < b->n; i = end) {
        end = b->n - i < QDQI_AT_ONCE ? b->n : i + QDQI_AT_ONCE;
        for (size_t k = i; k < end; k++)
            write_errors(p, k, p->by[k - i]);
        const struct qdqi_update u = qdqi_update_by(b, b->c, i, end);
        qdqi_update_panel(&u, p->by, p->n, p->sums);
    }
}

/* --- coordinate descent ----------------------------------------------------- */

/* The elements of a place in all outputs, on which the descent works. */
struct place {
    const float *gradient, *scales, *live; /* by output; live is 1 or 0 */
    float limit; /* a gradient below it times the scale moves no integer */
};

/* Marks the outputs in which an integer may move; most do not, and a division takes long.
   Returns whether there are any. */
QDQI_LOOP int
mark_loop(const struct place *p, uint8_t *marks)
{
    int any = 0;
    for (size_t i = 0; i < QDQI_PANEL; i++) {
        float g = __builtin_fabsf(p->gradient[i] * p->live[i]);
        marks[i] = g > p->limit * __builtin_fabsf(p->scales[i]);
        any |= marks[i];
    }
    return any;
}

QDQI_VARIANTS(int, mark, (const struct place *p, uint8_t *marks), (p, marks))

/* Moves the integer of an output to where the error is least while the others stay. Returns the
   change of the error, or 0. */
static float
descend_one(struct qdqi_panel *p, size_t place, size_t line, double step)
{
    const size_t group = qdqi_panel_group(p, place);
    const double scale = (double)p->scales[group][line];
    const int32_t zero = p->zeros[group][line];
    int16_t *q = &p->integers[place][line];
    const double before = (*q - zero) * scale;
    *q = qdqi_nearest(before + step, scale, zero, p->b->r->lowest, p->b->r->highest);
    return (float)(before - (*q - zero) * scale);
}

/* Moves the integers of a place in all outputs that are live. Writes the changes of the errors.
   Returns whether there are any. */
static bool
descend_place(struct qdqi_panel *p, size_t place, const float *gradient,
              const float *live, float *changes)
{
    /* half a step, less what float32 rounds */
    static const float half = 0.49999f;
    const float curve = p->b->c[place * p->b->ld + place];
    const struct place all = {gradient, p->scales[qdqi_panel_group(p, place)], live,
                              half * curve};
    uint8_t marks[QDQI_PANEL];
    bool any = false;
    memset(changes, 0, QDQI_PANEL * sizeof *changes);
    if (!(curve > 0) || !mark(&all, marks))
        return false;
    for (size_t line = 0; line < p->n; line++)
        if (marks[line]) {
            changes[line] =
                descend_one(p, place, line, (double)gradient[line] / (double)curve);
            any |= changes[line] != 0;
        }
    return any;
}

static void
add_moved(const float *changes, size_t *moved)
{
    for (size_t line = 0; line < QDQI_PANEL; line++)
        moved[line] += changes[line] != 0;
}

/* Descends once along all places, in the outputs that are live: the others did not move
   in the last pass. Returns whether an integer moved. */
static bool
descend(struct qdqi_panel *p, bool *live)
{
    const struct qdqi_moment_block *b = p->b;
    size_t moved[QDQI_PANEL] = {0};
    float factors[QDQI_PANEL];
    bool any = false;
    for (size_t line = 0; line < QDQI_PANEL; line++)
        factors[line] = line < p->n && live[line] ? 1 : 0;
    for (size_t i = 0, end; i < b->n; i = end) {
        bool any_here = false;
        end = b->n - i < STEP ? b->n : i + STEP;
        qdqi_load_local(p, i, end);
        for (size_t k = i; k < end; k++) {
            float *changes = p->by[k - i];
            if (!descend_place(p, k, p->local[k - i], factors, changes))
                continue;
            qdqi_add_place(b->c + k * b->ld + k + 1, end - k - 1, changes,
                           p->local + k - i + 1);
            add_moved(changes, moved);
            any_here = true;
        }
        const struct qdqi_update u = qdqi_update_by(b, b->c, i, end);
        if (any_here)
            qdqi_update_panel(&u, p->by, p->n, p->sums);
    }
    for (size_t line = 0; line < p->n; line++)
        any |= live[line] = moved[line] > 0;
    return any;
}

/* --- scales of few elements -------------------------------------------------- */

/* The elements that share a scale. */
struct few {
    struct qdqi_panel *p;
    size_t group; /* the scale */
    size_t places[MOST_SHARING];
    size_t n;
    float c[MOST_SHARING][MOST_SHARING];         /* what the moment has of them */
    float gradient[MOST_SHARING][QDQI_PANEL];    /* in all outputs, */
    float before[MOST_SHARING][QDQI_PANEL];      /* the numbers they stood for, */
    float products[MOST_SHARING][QDQI_PANEL];    /* and c times their integers */
    double joint_c[MOST_SHARING * MOST_SHARING]; /* [n][n] */
    struct qdqi_joint joint;
};

static void
load_few(struct few *f, size_t group)
{
    const struct qdqi_panel *p = f->p;
    const struct qdqi_moment_block *b = p->b;
    const struct qdqi_shared *s = &b->shared;
    const size_t n = s->begin[group + 1] - s->begin[group];
    f->group = group;
    f->n = n;
    for (size_t i = 0; i < n; i++)
        f->places[i] = b->places[s->members[s->begin[group] + i]];
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            f->c[i][k] = b->c[f->places[i] * b->ld + f->places[k]];
    if (!p->r.joint)
        return;
    for (size_t i = 0; i < n * n; i++)
        f->joint_c[i] = (double)f->c[i / n][i % n];
    f->joint.r = &p->r;
    f->joint.members = f->places;
    f->joint.n = n;
    f->joint.c = f->joint_c;
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

/* Chooses scale and integers of an output together. Returns whether an integer moved. */
static bool
search_few(struct few *f, size_t line)
{
    double gradient[MOST_SHARING];
    for (size_t i = 0; i < f->n; i++)
        gradient[i] = (double)f->gradient[i][line];
    const bool moved = qdqi_joint_search(&f->joint, line, gradient);
    for (size_t i = 0; i < f->n; i++)
        f->gradient[i][line] = (float)gradient[i];
    return moved;
}

/* Writes the numbers that the integers of a place, less the zero points, times the scales are. */
static void
write_values(const struct qdqi_panel *p, size_t place, const float *scales, float *to)
{
    const int32_t *zeros = p->zeros[qdqi_panel_group(p, place)];
    for (size_t line = 0; line < QDQI_PANEL; line++)
        to[line] = (float)(p->integers[place][line] - zeros[line]) * scales[line];
}

static void
begin_few(struct few *f, bool *live)
{
    struct qdqi_panel *p = f->p;
    for (size_t i = 0; i < f->n; i++) {
        memcpy(f->gradient[i], p->sums[f->places[i]], sizeof f->gradient[i]);
        write_values(p, f->places[i], p->scales[f->group], f->before[i]);
    }
    for (size_t line = 0; p->r.joint && line < p->n; line++)
        live[line] |= search_few(f, line);
}

/* Computes c times the integers of all outputs. */
static void
multiply_few(struct few *f)
{
    struct qdqi_panel *p = f->p;
    static const float ones[QDQI_PANEL] = {[0 ... QDQI_PANEL - 1] = 1};
    memset(f->products, 0, f->n * sizeof *f->products);
    for (size_t i = 0; i < f->n; i += QDQI_AT_ONCE) {
        struct qdqi_update u = {.n = f->n - i < QDQI_AT_ONCE ? f->n - i : QDQI_AT_ONCE,
                                .end = f->n};
        for (size_t k = 0; k < u.n; k++) {
            u.rows[k] = f->c[i + k];
            write_values(p, f->places[i + k], ones, p->by[k]);
        }
        qdqi_update_panel(&u, p->by, p->n, f->products);
    }
}

/* Fits the scales of all outputs, whose integers stay. */
static void
fit_few(struct few *f)
{
    struct qdqi_panel *p = f->p;
    float *scales = p->scales[f->group], by[QDQI_PANEL] = {0};
    const int32_t *zeros = p->zeros[f->group];
    double top[QDQI_PANEL] = {0}, bottom[QDQI_PANEL] = {0};
    for (size_t i = 0; i < f->n; i++)
        for (size_t line = 0; line < QDQI_PANEL; line++) {
            const double q = p->integers[f->places[i]][line] - zeros[line];
            top[line] += q * (double)f->gradient[i][line];
            bottom[line] += q * (double)f->products[i][line];
        }
    for (size_t line = 0; line < p->n; line++) {
        const float after = fitted(scales[line], top[line], bottom[line]);
        by[line] = scales[line] - after;
        scales[line] = after;
    }
    for (size_t i = 0; i < f->n; i++)
        for (size_t line = 0; line < QDQI_PANEL; line++)
            f->gradient[i][line] += f->products[i][line] * by[line];
}

/* Descends along the elements. */
static void
descend_few(struct few *f, bool *live)
{
    struct qdqi_panel *p = f->p;
    float factors[QDQI_PANEL], changes[QDQI_PANEL];
    for (size_t line = 0; line < QDQI_PANEL; line++)
        factors[line] = line < p->n ? 1 : 0;
    for (size_t i = 0; i < f->n; i++) {
        if (!descend_place(p, f->places[i], f->gradient[i], factors, changes))
            continue;
        qdqi_add_place(f->c[i] + i + 1, f->n - i - 1, changes, f->gradient + i + 1);
        for (size_t line = 0; line < p->n; line++)
            live[line] |= changes[line] != 0;
    }
}

/* Tells the gradient by how much all elements of the scale changed. */
static void
apply_few(struct few *f)
{
    struct qdqi_panel *p = f->p;
    for (size_t i = 0; i < f->n; i += QDQI_AT_ONCE) {
        struct qdqi_update u = {.n = f->n - i < QDQI_AT_ONCE ? f->n - i : QDQI_AT_ONCE,
                                .end = p->b->n};
        for (size_t k = 0; k < u.n; k++) {
            const size_t place = f->places[i + k];
            u.rows[k] = p->b->c + place * p->b->ld;
            write_values(p, place, p->scales[f->group], p->by[k]);
            for (size_t line = 0; line < QDQI_PANEL; line++)
                p->by[k][line] = f->before[i + k][line] - p->by[k][line];
        }
        qdqi_update_panel(&u, p->by, p->n, p->sums);
    }
}

/* A pass of descent that fits scales on its way. live[line] becomes whether an integer of
   the output moved. */
static void
refine_scales(struct qdqi_panel *p, struct few *f, bool *live)
{
    memset(live, 0, QDQI_PANEL * sizeof *live);
    for (size_t i = 0; i < p->b->shared.n; i++) {
        load_few(f, i);
        begin_few(f, live);
        multiply_few(f);
        fit_few(f);
        descend_few(f, live);
        apply_few(f);
    }
}

/* --- scales of many elements -------------------------------------------------- */

/* Computes C times the integers that share a scale. */
static void
multiply_members(struct qdqi_panel *p, size_t group)
{
    const struct qdqi_moment_block *b = p->b;
    const struct qdqi_shared *s = &b->shared;
    memset(p->products, 0, b->ld * sizeof *p->products);
    for (size_t i = s->begin[group]; i < s->begin[group + 1]; i += QDQI_AT_ONCE) {
        const size_t left = s->begin[group + 1] - i;
        struct qdqi_update u = {.n = left < QDQI_AT_ONCE ? left : QDQI_AT_ONCE,
                                .end = b->n};
        for (size_t k = 0; k < u.n; k++) {
            const size_t place = b->places[s->members[i + k]];
            u.rows[k] = b->c + place * b->ld;
            for (size_t line = 0; line < QDQI_PANEL; line++)
                p->by[k][line] =
                    (float)(p->integers[place][line] - p->zeros[group][line]);
        }
        qdqi_update_panel(&u, p->by, p->n, p->products);
    }
}

/* Gives a scale of all outputs the value with which the error is least while the integers
   stay. */
static void
fit_scale(struct qdqi_panel *p, size_t group)
{
    const struct qdqi_moment_block *b = p->b;
    const struct qdqi_shared *s = &b->shared;
    double top[QDQI_PANEL] = {0}, bottom[QDQI_PANEL] = {0};
    float by[QDQI_PANEL] = {0};
    for (size_t i = s->begin[group]; i < s->begin[group + 1]; i++) {
        const size_t place = b->places[s->members[i]];
        for (size_t line = 0; line < QDQI_PANEL; line++) {
            const double q = p->integers[place][line] - p->zeros[group][line];
            top[line] += q * (double)p->sums[place][line];
            bottom[line] += q * (double)p->products[place][line];
        }
    }
    for (size_t line = 0; line < p->n; line++) {
        float *scale = &p->scales[group][line];
        const float after = fitted(*scale, top[line], bottom[line]);
        by[line] = *scale - after;
        *scale = after;
    }
    for (size_t i = 0; i < b->n; i++)
        for (size_t line = 0; line < QDQI_PANEL; line++)
            p->sums[i][line] += p->products[i][line] * by[line];
}

static void
fit_scales(struct qdqi_panel *p)
{
    for (size_t i = 0; i < p->b->shared.n; i++) {
        multiply_members(p, i);
        fit_scale(p, i);
    }
}

/* --- rounds -------------------------------------------------------------------- */

enum qdq_code
qdqi_refine_panel(struct qdqi_panel *p, struct qdq_error *err)
{
    bool fits = p->r.own_scales && p->b->n == p->r.moment->k;
    struct few *few = malloc(sizeof *few);
    if (!few)
        return qdqi_no_memory(err);
    few->p = p;
    compute_gradient(p);
    for (int round = 0; round < (p->r.joint ? JOINT_ROUNDS : ROUNDS); round++) {
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
