/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scales that refinement begins with: of some shares of the largest scale the one with the
 * least error that the diagonal of the moment knows of. Most of the shares are left out by an
 * approximate error in float32 and a bound of how far it is off, so the result is that of the
 * definition.
 */
#include "config.h"
#include "graph/weights/panel.h"

#include "ground/base/arena.h"
#include "ground/base/tasks.h"
#include "numbers/arithmetic/simd.h"

#include <stdlib.h>

enum {
    SHARES = 71, /* of the largest scale that are tried, down to 0.30 */
    PIECE = 32,  /* outputs whose scales are narrowed by one task */
};

/* Elements that share a scale: their numbers and what their errors weigh. */
struct weighed {
    double low, high; /* integers less the zero point */
    size_t n;
    double *numbers, *weights;
    float *floats, *shares; /* the same, the weights as shares of the largest one */
};

/* --- the error --------------------------------------------------------------- */

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

/* --- which scales can be the best ----------------------------------------------- */

/* By how much the error of float32 may be off, as approximate.c derives it. Weights that are
   multiplied in change nothing of that but the rounding of two more products, and of the weight
   itself; numbers below the smallest of float32 are lost. */
struct bound {
    double by_elements, by_sums, lost;
    bool is_usable;
};

static struct bound
bound_of(struct weighed *e, double most)
{
    const double unit = 0x1p-24, n = (double)e->n;
    double largest = 0, norm = 0;
    for (size_t k = 0; k < e->n; k++)
        largest = e->weights[k] > largest ? e->weights[k] : largest;
    for (size_t k = 0; k < e->n; k++) {
        const double share = e->weights[k] / largest;
        e->floats[k] = (float)e->numbers[k];
        e->shares[k] = (float)share;
        norm += share * e->numbers[k] * e->numbers[k];
    }
    return (struct bound){.by_elements = sqrt(norm) * 14 * unit,
                          .by_sums = (n + 40) * unit,
                          .lost = n * 0x1p-120,
                          .is_usable = most > 1e-10 && most < 1e10 && largest > 0 &&
                                       isfinite(largest) && isfinite(norm)};
}

static double
beyond(const struct bound *b, double error)
{
    return error * b->by_sums + b->by_elements * (sqrt(error) + b->by_elements) +
           b->lost;
}

/* The scales that are tried, and which of them may be the best. */
struct tries {
    size_t n;
    float scales[2 * SHARES];
    float errors[2 * SHARES]; /* of float32, where it is usable */
};

/* Computes nearly the same errors over the largest weight, with float32. */
QDQI_LOOP void
nearly_loop(const struct weighed *e, struct tries *t)
{
    const float low = (float)e->low, high = (float)e->high;
    const float *floats = e->floats, *shares = e->shares;
    for (size_t i = 0; i < t->n; i++) {
        const float s = t->scales[i], inverse = 1 / s;
        float part[8] = {0}, total = 0;
        for (size_t k = 0; k < e->n; k += 8)
            for (size_t j = 0; j < 8; j++) {
                float q = __builtin_rintf(floats[k + j] * inverse);
                q = q < low ? low : q > high ? high : q;
                float off = floats[k + j] - q * s;
                part[j] += shares[k + j] * (off * off);
            }
        for (size_t j = 0; j < 8; j++)
            total += part[j];
        t->errors[i] = total;
    }
}

QDQI_VARIANTS(void, nearly, (const struct weighed *e, struct tries *t), (e, t))

static double
largest_of_best(const struct tries *t, const struct bound *b)
{
    double least = INFINITY;
    for (size_t i = 0; i < t->n && b->is_usable; i++) {
        const double error = (double)t->errors[i];
        const double most = error + beyond(b, error);
        least = most < least ? most : least;
    }
    return least;
}

/* An error is at least what is left of the approximate one when what it may be off by, itself at
   most by a small share of it, is taken away twice. */
static bool
may_be_best(const struct bound *b, double error, double most)
{
    return !b->is_usable || !(error - 2 * beyond(b, error) > most);
}

/* --- the scales -------------------------------------------------------------------- */

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
    struct tries tries = {.n = 0};
    e->low = r->lowest - qdqi_zero_at(r, at);
    e->high = r->highest - qdqi_zero_at(r, at);
    e->n = (n + 7) / 8 * 8;
    for (size_t k = 0; k < e->n; k++) {
        e->numbers[k] =
            k < n ? (double)r->weight[qdqi_element(r, output, members[k])] : 0;
        e->weights[k] = k < n ? w->diagonal[members[k]] : 0;
    }
    const struct bound bound = bound_of(e, most);
    for (int k = 0; k < SHARES; k++)
        for (int sign = 1; sign >= (r->is_signed ? -1 : 1); sign -= 2) {
            const float tried = (float)(sign * most * (1 - 0.01 * k));
            tries.scales[tries.n++] = tried;
        }
    if (bound.is_usable)
        nearly(e, &tries);
    const double most_error = largest_of_best(&tries, &bound);
    for (size_t k = 0; k < tries.n; k++) {
        const double tried = (double)tries.scales[k];
        if (!isnormal(tries.scales[k]) ||
            !may_be_best(&bound, bound.is_usable ? (double)tries.errors[k] : 0,
                         most_error))
            continue;
        const double error = weighed_error(e, tried);
        if (error < least) {
            least = error;
            *s = tries.scales[k];
        }
    }
}

static enum qdq_code
narrow_piece(void *arg, size_t piece, struct qdq_error *err)
{
    const struct narrowing *w = arg;
    size_t room = w->shared->most + 7, first = piece * PIECE;
    struct weighed e = {.numbers = calloc(room, sizeof *e.numbers),
                        .weights = calloc(room, sizeof *e.weights),
                        .floats = calloc(room, sizeof *e.floats),
                        .shares = calloc(room, sizeof *e.shares)};
    bool ok = e.numbers && e.weights && e.floats && e.shares;
    for (size_t output = first; ok && output < w->r->outputs && output < first + PIECE;
         output++)
        for (size_t i = 0; i < w->shared->n; i++)
            narrow(w, output, i, &e);
    free(e.numbers);
    free(e.weights);
    free(e.floats);
    free(e.shares);
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
