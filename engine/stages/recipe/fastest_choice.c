/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the placements that were judged is taken. */
#include "config.h"
#include "stages/recipe/fastest.h"

#include <math.h>

enum { MOST_DOUBTS = 3 }; /* placements that are measured twice */

/* Latencies that differ by no more are the same. */
static const double same_part = 0.03;

/* The choice is checked by fewer samples where those have so much more than is asked for, and may
   have more layers in float than it takes. */
static const double clear_db = 6;

/* A choice with so much more by the samples that it was chosen by is not checked: the evaluation
   follows. */
static const double sure_db = 8;

/* --- the choice ------------------------------------------------------------------ */

bool
qdqi_fastest_has_times(const struct qdqi_fastest *f)
{
    for (size_t i = 0; i < f->n_judged; i++)
        if (!f->judged[i].grade.is_float && !isnan(f->judged[i].grade.latency_ratio))
            return true;
    return false;
}

static bool
is_good(const struct qdqi_judged_placement *p, double sqnr_db)
{
    return p->grade.sqnr_db >= sqnr_db && qdqi_grade_fits(&p->grade) &&
           !isnan(p->grade.latency_ratio);
}

/* Returns the choice by what was measured so far, or NULL. */
static struct qdqi_judged_placement *
choose(const struct qdqi_fastest *f, double sqnr_db)
{
    struct qdqi_judged_placement *floats = NULL;
    double least = INFINITY;
    bool any = false;
    for (size_t i = 0; i < f->n_judged; i++) {
        struct qdqi_judged_placement *p = &f->judged[i];
        if (!is_good(p, sqnr_db))
            continue;
        if (p->grade.is_float && !floats)
            floats = p;
        any = any || !p->grade.is_float;
        if (!p->grade.is_float)
            least = fmin(least, p->grade.latency_ratio);
    }
    if (!any || (floats && least >= QDQI_WORTH_RATIO))
        return any ? floats : NULL;
    struct qdqi_judged_placement *best = NULL;
    for (size_t i = 0; i < f->n_judged; i++) {
        struct qdqi_judged_placement *p = &f->judged[i];
        if (is_good(p, sqnr_db) && !p->grade.is_float &&
            p->grade.latency_ratio <= least * (1 + same_part) &&
            (!best || p->grade.sqnr_db > best->grade.sqnr_db))
            best = p;
    }
    return best;
}

/* Judges a placement by more samples than it was chosen by: the worse figure counts. */
static enum qdq_code
check_accuracy(struct qdqi_fastest *f, struct qdqi_judged_placement *p, double sqnr_db,
               struct qdq_error *err)
{
    struct qdqi_candidates *c = f->candidates;
    const struct qdqi_left left = {
        .names = p->layers, .n = p->n_layers, .reason = c->reason};
    struct qdqi_attempt *trial = NULL;
    struct qdqi_grade again = {0};
    struct qdq_error why = {0};
    p->checked = true;
    if (p->grade.is_float || p->grade.sqnr_db >= sqnr_db + sure_db ||
        !qdqi_comparer_widen(c->comparer, true))
        return QDQ_OK;
    qdqi_comparer_judging(c->comparer)->is_resting = true;
    qdqi_comparer_judging(c->comparer)->clear_db = sqnr_db + clear_db;
    enum qdq_code code = qdqi_fastest_try(f, p->spec, &left, &trial, &why);
    if (!code)
        code = qdqi_candidates_grade(c, trial, &again, &why);
    qdqi_attempt_free(&trial);
    code = qdqi_candidates_outcome(c, code, &why, &again, err);
    qdqi_comparer_widen(c->comparer, false);
    qdqi_comparer_judging(c->comparer)->is_resting = false;
    if (code)
        return code;
    f->samples += again.samples;
    p->grade.sqnr_db = fmin(p->grade.sqnr_db, again.sqnr_db);
    return QDQ_OK;
}

/* Returns whether a placement is that of the rules: by itself, or because it has the same bytes, whose
   time was not measured again. */
static bool
is_of_rules(const struct qdqi_fastest *f, const struct qdqi_judged_placement *p)
{
    return !p->is_float ||
           (p == &f->judged[0] &&
            f->judged[QDQI_JUDGED_RULES].grade.latency_ratio == p->grade.latency_ratio);
}

/* Returns whether a choice of a placement is sure: it is the first guess, or was measured twice. */
static bool
is_sure(const struct qdqi_fastest *f, const struct qdqi_judged_placement *p)
{
    return !p || f->patterns || p->confirmed || p->grade.is_float ||
           is_of_rules(f, p) || !qdqi_comparer_measures(f->candidates->comparer) ||
           f->is_time_up(f->arg);
}

/* Measures the time of a placement once more: the longer one counts. */
static enum qdq_code
confirm(const struct qdqi_fastest *f, struct qdqi_judged_placement *p,
        struct qdq_error *err)
{
    const struct qdqi_candidates *c = f->candidates;
    const struct qdqi_left left = {
        .names = p->layers, .n = p->n_layers, .reason = c->reason};
    struct qdqi_attempt *trial = NULL;
    double ratio = NAN;
    struct qdq_error why = {0};
    p->confirmed = true;
    enum qdq_code code = qdqi_fastest_try(f, p->spec, &left, &trial, err);
    if (!code)
        code = qdqi_comparer_time_again(c->comparer, trial, &ratio, &why);
    qdqi_attempt_free(&trial);
    if (why.code && code != QDQ_RUN_FAILED && code != QDQ_JUDGE_GONE)
        return qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    if (ratio > p->grade.latency_ratio) {
        p->grade.latency_ratio = ratio;
        p->grade.excess =
            fmax(p->grade.excess, isnan(c->max_latency) ? 0 : ratio / c->max_latency);
    }
    return why.code ? QDQ_OK : code;
}

/* Chooses by what was measured so far, among placements whose accuracy was checked. */
static enum qdq_code
choose_checked(struct qdqi_fastest *f, double sqnr_db,
               struct qdqi_judged_placement **ret, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    *ret = choose(f, sqnr_db);
    while (!code && *ret && !(*ret)->checked &&
           !(code = check_accuracy(f, *ret, sqnr_db, err)))
        *ret = choose(f, sqnr_db);
    return code;
}

enum qdq_code
qdqi_fastest_choose(struct qdqi_fastest *f, double sqnr_db,
                    const struct qdqi_judged_placement **ret, struct qdq_error *err)
{
    struct qdqi_judged_placement *p = NULL;
    qdqi_comparer_judging(f->candidates->comparer)->is_resting = false;
    enum qdq_code code = choose_checked(f, sqnr_db, &p, err);
    for (int i = 0; !code && i < MOST_DOUBTS && !is_sure(f, p); i++) {
        code = confirm(f, p, err);
        if (!code)
            code = choose_checked(f, sqnr_db, &p, err);
    }
    *ret = p;
    return code;
}

bool
qdqi_fastest_is_ample(const struct qdqi_fastest *f,
                      const struct qdqi_judged_placement *chosen)
{
    const double goal = f->candidates->goal_db;
    return !chosen->grade.is_float && chosen->grade.sqnr_db > goal + clear_db &&
           f->judged[0].grade.sqnr_db < goal &&
           f->judged[QDQI_JUDGED_RULES].grade.sqnr_db < goal;
}

/* Returns whether a placement is better than the best so far of those that a choice is made of.
   Where both are beyond their bounds, one that reaches the goal of the outputs comes first; then one
   whose excess is less by more than noise, and among the same the more accurate one. */
static bool
is_better(const struct qdqi_fastest *f, const struct qdqi_grade *a,
          const struct qdqi_grade *b, double least)
{
    const double goal = f->candidates->goal_db;
    if (qdqi_grade_fits(a) || qdqi_grade_fits(b))
        return qdqi_grade_is_better(a, b);
    if ((a->sqnr_db >= goal) != (b->sqnr_db >= goal))
        return a->sqnr_db >= goal;
    const struct qdqi_grade edge = {.excess = least};
    const bool near = !qdqi_grade_is_relieved(&edge, a);
    if (near != !qdqi_grade_is_relieved(&edge, b))
        return near;
    return near ? a->sqnr_db > b->sqnr_db : a->excess < b->excess;
}

/* Returns the least excess among the placements but those that are left out: of those that reach the
   goal of the outputs where there are such. */
static double
least_excess(const struct qdqi_fastest *f,
             bool (*is_out)(const struct qdqi_fastest *f, size_t i))
{
    double any = INFINITY, reaching = INFINITY;
    for (size_t i = 0; i < f->n_judged; i++) {
        const struct qdqi_grade *g = &f->judged[i].grade;
        if (is_out(f, i))
            continue;
        any = fmin(any, g->excess);
        if (g->sqnr_db >= f->candidates->goal_db)
            reaching = fmin(reaching, g->excess);
    }
    return isinf(reaching) ? any : reaching;
}

static struct qdqi_judged_placement *
choose_best(const struct qdqi_fastest *f, size_t first,
            bool (*is_out)(const struct qdqi_fastest *f, size_t i))
{
    const double least = least_excess(f, is_out);
    struct qdqi_judged_placement *best = &f->judged[first];
    for (size_t i = 0; i < f->n_judged; i++)
        if (!is_out(f, i) && is_better(f, &f->judged[i].grade, &best->grade, least))
            best = &f->judged[i];
    return best;
}

static bool
is_float(const struct qdqi_fastest *f, size_t i)
{
    return f->judged[i].grade.is_float;
}

const struct qdqi_judged_placement *
qdqi_fastest_start(const struct qdqi_fastest *f)
{
    return choose_best(f, 0, is_float);
}

static bool
is_unquantized(const struct qdqi_fastest *f, size_t i)
{
    (void)f;
    return i == QDQI_JUDGED_UNQUANTIZED;
}

static struct qdqi_judged_placement *
find_best(const struct qdqi_fastest *f)
{
    return choose_best(f, QDQI_JUDGED_RULES, is_unquantized);
}

enum qdq_code
qdqi_fastest_best(struct qdqi_fastest *f, const struct qdqi_judged_placement **ret,
                  struct qdq_error *err)
{
    struct qdqi_judged_placement *best = find_best(f);
    enum qdq_code code = QDQ_OK;
    while (!best->checked && !(code = check_accuracy(f, best, INFINITY, err)))
        best = find_best(f);
    *ret = best;
    return code;
}
