/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/fastest.h"

#include "qdq/targets.h"
#include "stages/attempt/leave.h"
#include "plan/placement/target.h"
#include "stages/frontier/costs.h"
#include "stages/scale/scale.h"

#include <math.h>
#include <string.h>

enum {
    MOST_DOUBTS = 3, /* placements that are measured twice */
    ROUNDS = 3,      /* of judging, and of correcting the costs */
    EACH_ROUND =
        2,        /* placements that a round judges where only the fastest is wanted */
    CORNERS = 24, /* of the hull that are looked at */
    OTHERS = 5    /* placements that are judged besides: see qdqi_fastest.judged */
};

/* Places of some of them. */
enum { RULES = 1, UNQUANTIZED = 2 };

/* A result that takes more of the float model's time is not worth its loss. */
static const double worth_ratio = 0.98;

/* Latencies that differ by no more are the same. */
static const double same_part = 0.03;

/* A placement that promises less is not judged. */
static const double gain_part = 0.01;

/* A placement that is slower than was predicted by more shows that the costs are wrong. */
static const double wrong_part = 0.1;

/* A prediction of the noise may be wrong by so much. */
static const double doubt_db = 1;

/* The choice is checked by fewer samples where those have so much more than is asked for, and may
   have more layers in float than it takes. */
static const double clear_db = 6;

/* A choice with so much more by the samples that it was chosen by is not checked: the evaluation
   follows. */
static const double sure_db = 8;

struct search {
    struct qdqi_fastest *f;
    struct qdqi_arena *arena;
    struct qdqi_costs costs;
    size_t most; /* that may be judged */
};

static double
noise_of(double sqnr_db)
{
    return pow(10, -sqnr_db / 10);
}

bool
qdqi_fastest_is_asked(const struct qdqi_attempt *a)
{
    const struct qdqi_hooks *hooks = a->spec->target->hooks;
    return qdqi_by_patterns_is_asked(a) ||
           (hooks->weighs && hooks->weighs(a->context->asked) &&
            !hooks->weighs(a->spec));
}

const struct qdq_spec *
qdqi_fastest_spec_by_rules(const struct qdqi_candidates *c)
{
    const struct qdq_spec *spec = c->attempt->planned_by;
    struct qdq_spec *copy = qdqi_arena_alloc(c->result->arena, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *spec;
    if (spec->target->hooks->set_weighing)
        spec->target->hooks->set_weighing(copy, c->attempt->context->asked);
    return copy;
}

/* --- judging ------------------------------------------------------------------ */

void
qdqi_fastest_add(struct qdqi_fastest *f, const struct qdqi_judged_placement *p)
{
    f->judged[f->n_judged++] = *p;
    f->samples += p->grade.samples;
}

static enum qdq_code
judge(struct qdqi_fastest *f, const char *step, const bool *is_float, double predicted,
      struct qdq_error *err)
{
    struct qdqi_candidates *c = f->candidates;
    struct qdqi_judged_placement p = {.step = step,
                                      .is_float = is_float,
                                      .spec = c->attempt->planned_by,
                                      .predicted = predicted};
    enum qdq_code code = qdqi_candidates_score(c, is_float, &p.grade, err);
    if (!code && f->patterns)
        code = qdqi_by_patterns_set_time(f->patterns, is_float, &p.grade, err);
    if (!code)
        code = qdqi_candidates_list(c, is_float, c->result->arena, &p.layers,
                                    &p.n_layers, err);
    if (!code)
        qdqi_fastest_add(f, &p);
    return code;
}

/* Makes a trial by a spec with these layers in float besides. */
static enum qdq_code
try_placement(const struct qdqi_fastest *f, const struct qdq_spec *spec,
              const struct qdqi_left *left, struct qdqi_attempt **ret,
              struct qdq_error *err)
{
    struct qdqi_attempt *trial = NULL;
    enum qdq_code code = qdqi_attempt_derive(f->candidates->attempt, &trial, err);
    if (!code)
        code = qdqi_attempt_replan(trial, spec, err);
    if (!code && left->n > 0)
        code = qdqi_attempt_leave(trial, left, err);
    if (!code)
        code = qdqi_choose_scales(trial, err);
    if (code)
        qdqi_attempt_free(&trial);
    *ret = trial;
    return code;
}

enum qdq_code
qdqi_fastest_try_rules(const struct qdqi_fastest *f, struct qdqi_attempt **ret,
                       struct qdq_error *err)
{
    return try_placement(f, f->by_rules, &(struct qdqi_left){.n = 0}, ret, err);
}

static enum qdq_code
judge_rules(struct qdqi_fastest *f, struct qdq_error *err)
{
    struct qdqi_judged_placement p = {
        .step = "rules", .spec = f->by_rules, .predicted = NAN};
    struct qdqi_attempt *trial = NULL;
    struct qdq_error why = {0};
    if (f->patterns) { /* no rule weighs layers: it is the first one */
        p.grade = f->judged[0].grade;
        p.grade.samples = 0;
        qdqi_fastest_add(f, &p);
        return QDQ_OK;
    }
    enum qdq_code code = qdqi_fastest_try_rules(f, &trial, &why);
    if (!code)
        code = qdqi_candidates_grade(f->candidates, trial, &p.grade, &why);
    qdqi_attempt_free(&trial);
    code = qdqi_candidates_outcome(f->candidates, code, &why, &p.grade, err);
    if (!code)
        qdqi_fastest_add(f, &p);
    return code;
}

/* Returns a copy of a placement in which weights that are only stored as integers stay so: they
   take no time. Returns NULL when out of memory. */
static bool *
keep_stored(const struct qdqi_candidates *c, const bool *is_float, bool *ret_any)
{
    bool *copy = qdqi_arena_array(c->result->arena, c->n + 1, sizeof *copy);
    for (size_t i = 0; copy && i < c->n; i++) {
        copy[i] = (!is_float || is_float[i]) && !c->only_stored[i];
        *ret_any = *ret_any || c->only_stored[i];
    }
    return copy;
}

/* Adds the result without any layer that computes in integers. It is the float model, unless
   weights are stored as integers. */
static enum qdq_code
add_float(struct qdqi_fastest *f, struct qdq_error *err)
{
    const struct qdqi_candidates *c = f->candidates;
    bool stores = false;
    const bool *all = keep_stored(c, NULL, &stores);
    struct qdqi_judged_placement p = {.step = "unquantized",
                                      .is_float = all,
                                      .spec = c->attempt->planned_by,
                                      .predicted = NAN,
                                      .grade = {.sqnr_db = INFINITY,
                                                .output_db = INFINITY,
                                                .size_ratio = 1,
                                                .latency_ratio = 1,
                                                .is_float = true}};
    if (!all)
        return qdqi_no_memory(err);
    if (stores) {
        enum qdq_code code = judge(f, "unquantized", all, NAN, err);
        if (!code)
            f->judged[f->n_judged - 1].grade.is_float = true;
        return code;
    }
    p.grade.excess = fmax(isnan(c->max_size) ? 0 : 1 / c->max_size,
                          isnan(c->max_latency) ? 0 : 1 / c->max_latency);
    enum qdq_code code =
        qdqi_candidates_list(c, all, c->result->arena, &p.layers, &p.n_layers, err);
    if (!code)
        qdqi_fastest_add(f, &p);
    return code;
}

/* --- the costs ----------------------------------------------------------------- */

/* Measures the kernels of the two ends of the frontier. *ret_any is whether the runtime told
   them. */
static enum qdq_code
measure(struct search *s, bool *ret_any, struct qdq_error *err)
{
    const struct qdqi_candidates *c = s->f->candidates;
    const struct qdqi_attempt *a = c->attempt;
    const struct qdqi_deploy_ops *ops =
        qdqi_engine_ops(a->context->engine, a->spec->target->runtime);
    struct qdqi_profiled p = {.names = ops->kernels};
    struct qdq_model *model = NULL;
    enum qdq_code code = qdqi_comparer_profile(c->comparer, a, s->arena, &model,
                                               &p.floats, &p.integers, err);
    p.model = model;
    *ret_any = !code && p.floats.n_nodes > 0 && p.integers.n_nodes > 0;
    if (*ret_any)
        code =
            qdqi_costs_make(a, c->names, c->n, c->noise, &p, s->arena, &s->costs, err);
    qdq_model_free(&model);
    return code;
}

/* Corrects the costs by the placements that were judged, the first of which is all in integers. */
static void
correct(struct search *s, size_t from)
{
    const struct qdqi_fastest *f = s->f;
    struct qdqi_seen_placement
        seen[QDQ_MOST_FRONTIER_POINTS + OTHERS + ROUNDS * EACH_ROUND];
    size_t n = 0;
    for (size_t i = 0; i < f->n_judged; i++) {
        const struct qdqi_judged_placement *p = &f->judged[i];
        const bool counts = p->is_float && !p->grade.is_float && (i == 0 || i >= from);
        if (counts && isfinite(p->grade.sqnr_db))
            seen[n++] = (struct qdqi_seen_placement){
                p->is_float, p->grade.latency_ratio, noise_of(p->grade.sqnr_db)};
    }
    qdqi_costs_correct(&s->costs, seen, n);
}

/* --- which ones are judged ------------------------------------------------------ */

static bool
is_judged(const struct qdqi_fastest *f, const bool *is_float)
{
    for (size_t i = 0; i < f->n_judged; i++)
        if (f->judged[i].is_float && memcmp(f->judged[i].is_float, is_float,
                                            f->candidates->n * sizeof *is_float) == 0)
            return true;
    return false;
}

/* Returns the time of the fastest placement that was judged and has the accuracy; that of a result
   that is not worth its loss where there is none. */
static double
least_ratio(const struct qdqi_fastest *f)
{
    double least = worth_ratio;
    for (size_t i = 0; i < f->n_judged; i++) {
        const struct qdqi_grade *g = &f->judged[i].grade;
        if (g->sqnr_db >= f->candidates->goal_db && qdqi_grade_fits(g))
            least = fmin(least, g->latency_ratio);
    }
    return least;
}

static enum qdq_code
judge_corner(struct search *s, const struct qdqi_placement *p, struct qdq_error *err)
{
    struct qdqi_fastest *f = s->f;
    bool stores = false;
    const bool *is_float = keep_stored(f->candidates, p->is_float, &stores);
    if (!is_float)
        return qdqi_no_memory(err);
    if (is_judged(f, is_float) || f->n_judged >= s->most || f->is_time_up(f->arg))
        return QDQ_OK;
    /* Each point of a frontier has its time. */
    if (f->points == 0 && !f->patterns)
        qdqi_comparer_judging(f->candidates->comparer)->least_latency = least_ratio(f);
    return judge(f, "cut", is_float, qdqi_costs_ratio(&s->costs, p), err);
}

/* Returns whether the placement that was judged last is as fast as was predicted. */
static bool
is_as_predicted(const struct qdqi_fastest *f)
{
    const struct qdqi_judged_placement *p = &f->judged[f->n_judged - 1];
    return isnan(p->predicted) ||
           p->grade.latency_ratio <= p->predicted * (1 + wrong_part);
}

/* Judges the fastest corner that should have the accuracy, and the next slower one, where they
   promise to be faster than what was judged. */
static enum qdq_code
judge_goal(struct search *s, const struct qdqi_placement *corners, size_t n,
           struct qdq_error *err)
{
    const double most = noise_of(s->f->candidates->goal_db + doubt_db);
    const size_t before = s->f->n_judged;
    size_t i = 0;
    enum qdq_code code = QDQ_OK;
    while (i < n && corners[i].noise > most)
        i++;
    for (size_t k = i; !code && k < n && k < i + EACH_ROUND; k++) {
        if (s->f->n_judged > before && !is_as_predicted(s->f))
            break;
        if (!isnan(corners[k].ms) && qdqi_costs_ratio(&s->costs, &corners[k]) <
                                         least_ratio(s->f) * (1 - gain_part))
            code = judge_corner(s, &corners[k], err);
    }
    return code;
}

/* Judges corners that lie evenly on the hull. */
static enum qdq_code
judge_evenly(struct search *s, const struct qdqi_placement *corners, size_t n,
             struct qdq_error *err)
{
    const size_t wanted = s->f->points < n ? s->f->points : n;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; !code && i < wanted; i++)
        code =
            judge_corner(s, &corners[wanted > 1 ? i * (n - 1) / (wanted - 1) : 0], err);
    return code;
}

/* Returns whether those that were judged from that one on have a faster one with the goal. */
static bool
is_faster(const struct qdqi_fastest *f, size_t from)
{
    double least[2] = {INFINITY, INFINITY}; /* before, and from there on */
    for (size_t i = 0; i < f->n_judged; i++) {
        const struct qdqi_grade *g = &f->judged[i].grade;
        if (g->sqnr_db >= f->candidates->goal_db && qdqi_grade_fits(g))
            least[i >= from] = fmin(least[i >= from], g->latency_ratio);
    }
    return least[1] < least[0];
}

static enum qdq_code
judge_hull(struct search *s, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (int round = 0; !code && round < ROUNDS; round++) {
        const size_t before = s->f->n_judged;
        struct qdqi_placement *corners = NULL;
        size_t n = 0;
        code = qdqi_placement_hull(&s->costs.placement, CORNERS, s->arena, &corners, &n,
                                   err);
        if (!code && round == 0 && s->f->points > 0)
            code = judge_evenly(s, corners, n, err);
        if (!code)
            code = judge_goal(s, corners, n, err);
        if (s->f->n_judged == before || (round > 0 && !is_faster(s->f, before)))
            break;
        correct(s, before);
    }
    return code;
}

/* Searches by patterns, before anything is judged. *ret_any is whether there are times. */
static enum qdq_code
search_patterns(struct search *s, bool *ret_any, struct qdq_error *err)
{
    const struct qdqi_fastest *f = s->f;
    qdqi_comparer_judging(f->candidates->comparer)->is_resting = true;
    enum qdq_code code = qdqi_by_patterns_search(f->candidates, s->most, f->is_time_up,
                                                 f->arg, f->patterns, ret_any, err);
    return code || !*ret_any ? code
                             : qdqi_by_patterns_costs(f->patterns, &s->costs, err);
}

/* Judges the best placement that the search found. */
static enum qdq_code
judge_best(struct search *s, struct qdq_error *err)
{
    const bool *is_float = qdqi_by_patterns_best(s->f->patterns);
    if (!is_float)
        return qdqi_no_memory(err);
    return is_judged(s->f, is_float) ? QDQ_OK
                                     : judge(s->f, "patterns", is_float, NAN, err);
}

/* Learns the costs by the runtime's profile. *ret_any is whether it tells them. */
static enum qdq_code
profile(struct search *s, bool *ret_any, struct qdq_error *err)
{
    struct qdq_error why = {0};
    if (!qdqi_comparer_measures(s->f->candidates->comparer) ||
        s->f->is_time_up(s->f->arg))
        return QDQ_OK;
    const enum qdq_code code = measure(s, ret_any, &why);
    *ret_any = *ret_any && !code;
    return code && code != QDQ_RUN_FAILED && code != QDQ_JUDGE_GONE
               ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
               : QDQ_OK;
}

enum qdq_code
qdqi_fastest_judge(struct qdqi_fastest *f, struct qdq_error *err)
{
    struct qdqi_candidates *c = f->candidates;
    struct search s = {.f = f,
                       .arena = c->result->arena,
                       .most = OTHERS - 1 + f->points + ROUNDS * EACH_ROUND};
    bool *none = qdqi_arena_array(s.arena, c->n + 1, sizeof *none);
    bool any = false;
    enum qdq_code code = QDQ_OK;
    f->judged = qdqi_arena_array(s.arena, s.most + OTHERS, sizeof *f->judged);
    if (!none || !f->judged)
        return qdqi_no_memory(err);
    if (f->patterns)
        code = search_patterns(&s, &any, err);
    else
        qdqi_comparer_expect_profile(c->comparer);
    if (!code)
        code = judge(f, "integers", none, NAN, err);
    if (!code)
        code = judge_rules(f, err);
    if (!code)
        code = add_float(f, err);
    if (!code)
        code =
            f->patterns ? any ? judge_best(&s, err) : QDQ_OK : profile(&s, &any, err);
    if (code || !any)
        return code;
    correct(&s, 0);
    return judge_hull(&s, err);
}

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
    if (!any || (floats && least >= worth_ratio))
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
    enum qdq_code code = try_placement(f, p->spec, &left, &trial, &why);
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
            f->judged[RULES].grade.latency_ratio == p->grade.latency_ratio);
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
    enum qdq_code code = try_placement(f, p->spec, &left, &trial, err);
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
           f->judged[0].grade.sqnr_db < goal && f->judged[RULES].grade.sqnr_db < goal;
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
    return i == UNQUANTIZED;
}

static struct qdqi_judged_placement *
find_best(const struct qdqi_fastest *f)
{
    return choose_best(f, RULES, is_unquantized);
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
