/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/fastest.h"

#include "qdq/targets.h"
#include "plan/placement/target.h"
#include "stages/frontier/costs.h"
#include "stages/scale/scale.h"

#include <math.h>
#include <string.h>

enum {
    ROUNDS = 3, /* of judging, and of correcting the costs */
    EACH_ROUND =
        2,        /* placements that a round judges where only the fastest is wanted */
    CORNERS = 24, /* of the hull that are looked at */
    OTHERS = 5    /* placements that are judged besides: see qdqi_fastest.judged */
};

/* A placement that promises less is not judged. */
static const double gain_part = 0.01;

/* A placement that is slower than was predicted by more shows that the costs are wrong. */
static const double wrong_part = 0.1;

/* A prediction of the noise may be wrong by so much. */
static const double doubt_db = 1;

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

enum qdq_code
qdqi_fastest_try(const struct qdqi_fastest *f, const struct qdq_spec *spec,
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
    return qdqi_fastest_try(f, f->by_rules, &(struct qdqi_left){.n = 0}, ret, err);
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

enum { MOST_SEEN = QDQ_MOST_FRONTIER_POINTS + OTHERS + ROUNDS * EACH_ROUND };

/* Lists the placements that were judged, the first of which is all in integers, and those from `from` on. */
static size_t
list_seen(const struct search *s, size_t from,
          struct qdqi_seen_placement seen[MOST_SEEN])
{
    const struct qdqi_fastest *f = s->f;
    size_t n = 0;
    for (size_t i = 0; i < f->n_judged; i++) {
        const struct qdqi_judged_placement *p = &f->judged[i];
        const bool counts = p->is_float && !p->grade.is_float && (i == 0 || i >= from);
        if (counts && isfinite(p->grade.sqnr_db))
            seen[n++] = (struct qdqi_seen_placement){
                p->is_float, p->grade.latency_ratio, noise_of(p->grade.sqnr_db)};
    }
    return n;
}

/* Corrects the costs by what was judged from `from` on. */
static void
correct(struct search *s, size_t from)
{
    struct qdqi_seen_placement seen[MOST_SEEN];
    qdqi_costs_correct(&s->costs, seen, list_seen(s, from, seen));
}

/* Returns the latency of a placement, as a part of the float model's, by the costs and all that was judged. */
static double
predict(const struct search *s, const struct qdqi_placement *p)
{
    struct qdqi_seen_placement seen[MOST_SEEN];
    return qdqi_costs_predict(&s->costs, p, seen, list_seen(s, 0, seen));
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
    double least = QDQI_WORTH_RATIO;
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
    return judge(f, "cut", is_float, predict(s, p), err);
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
        if (!isnan(corners[k].ms) &&
            predict(s, &corners[k]) < least_ratio(s->f) * (1 - gain_part))
            code = judge_corner(s, &corners[k], err);
    }
    return code;
}

/* Judges corners that lie evenly on the hull; what each shows corrects the costs of the next. */
static enum qdq_code
judge_evenly(struct search *s, const struct qdqi_placement *corners, size_t n,
             struct qdq_error *err)
{
    const size_t wanted = s->f->points < n ? s->f->points : n;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; !code && i < wanted; i++) {
        const size_t before = s->f->n_judged;
        code =
            judge_corner(s, &corners[wanted > 1 ? i * (n - 1) / (wanted - 1) : 0], err);
        if (!code && s->f->n_judged > before)
            correct(s, before);
    }
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
