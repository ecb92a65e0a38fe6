/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/recipe.h"

#include "files/data/file.h"
#include "stages/evaluate/last_candidate.h"
#include "stages/attempt/observations_file.h"
#include "stages/calibrate/calibrate.h"
#include "stages/candidates/candidates.h"
#include "plan/placement/formats.h"
#include "plan/placement/target.h"
#include "stages/evaluate/deployed.h"
#include "stages/recipe/allocate.h"
#include "stages/recipe/estimate.h"
#include "stages/recipe/fastest.h"
#include "stages/recipe/frontier.h"
#include "stages/recipe/goals.h"
#include "stages/recipe/groups.h"
#include "stages/recipe/variants.h"
#include "stages/recipe/widths.h"
#include "stages/attempt/leave.h"
#include "stages/scale/scale.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Enough for the recipe `auto` when half of the multiplications would stay in float otherwise. */
static const double usable_db = 20;

/* The recipe `best` may run that many times as many samples as `auto`. */
enum { BEST_FACTOR = 4 };

/* One in ASIDE of the calibration's samples is kept aside to judge by, at most MOST_ASIDE,
   where there are LEAST_SAMPLES. */
enum { ASIDE = 4, MOST_ASIDE = 64, LEAST_SAMPLES = 8 };

static const char REASON[] = "recipe";

struct recipe {
    struct qdqi_candidates candidates;
    struct qdqi_variants variants;
    struct qdqi_group_search groups;
    struct qdqi_estimate estimate;
    struct qdqi_fastest fastest;
    struct qdqi_by_patterns patterns;           /* of `fastest` */
    const struct qdqi_judged_placement *chosen; /* NULL: no placement was */
    bool has_times;  /* placements were judged by what they take */
    double above_db; /* of estimates over single samples; NAN: not known */
    const struct qdqi_feed_options *samples; /* that candidates are judged by */
    int64_t bound;                           /* samples that may be run */
};

/* --- before the calibration -------------------------------------------------- */

/* Returns whether the recipe is `best` or has goals: it searches on where `auto` stops. */
static bool
is_best(const struct qdq_spec *spec)
{
    return spec->recipe == QDQ_RECIPE_BEST;
}

/* Returns whether candidates can be judged. */
static bool
is_comparable(const struct qdqi_attempt *a)
{
    const struct qdq_spec *spec = a->spec;
    if (spec->recipe_formats)
        return a->context->dataset && qdqi_context_can_judge(a->context) &&
               spec->float_type == QDQ_FLOAT_KEEP;
    return a->context->dataset && qdqi_context_can_judge(a->context) &&
           (!spec->target->searches_patterns || qdqi_by_patterns_is_asked(a)) &&
           (spec->dynamic || qdqi_is_8_bit_integer(spec->activations.format)) &&
           spec->float_type == QDQ_FLOAT_KEEP && spec->target->runtime;
}

bool
qdqi_recipe_chooses(const struct qdqi_attempt *a)
{
    return a->spec->recipe >= QDQ_RECIPE_AUTO && is_comparable(a);
}

/* Keeps samples aside, unless the spec says how many to calibrate with. */
static void
keep_aside(const struct qdqi_context *c, struct qdq_spec *spec)
{
    const int64_t all = qdq_dataset_info(c->dataset)->samples;
    const int64_t aside = all / ASIDE < MOST_ASIDE ? all / ASIDE : MOST_ASIDE;
    if ((spec->open & QDQ_CHOICE_SAMPLES) && spec->calibration.max_samples == 0 &&
        all >= LEAST_SAMPLES)
        spec->calibration.max_samples = all - aside;
}

enum qdq_code
qdqi_recipe_begin(struct qdqi_attempt *a, struct qdq_spec *spec, struct qdq_error *err)
{
    if (spec->recipe < QDQ_RECIPE_AUTO || !is_comparable(a))
        return QDQ_OK;
    keep_aside(a->context, spec);
    /* All layers in integers are one end of the frontier; the other placements are made from it. */
    if (qdq_spec_measures(spec) && spec->target->hooks->set_weighing &&
        qdqi_deployed_runs(a->context))
        spec->target->hooks->set_weighing(spec, NULL);
    if (!is_best(spec) || qdqi_keeps_observations(a->context->work))
        return QDQ_OK;
    a->observations = qdqi_file_open_temporary();
    return a->observations >= 0
               ? QDQ_OK
               : qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                               "opening a temporary file: %s", strerror(errno));
}

enum qdq_code
qdqi_recipe_plan(struct qdqi_attempt *a, struct qdq_spec *spec, struct qdq_error *err)
{
    const struct qdqi_hooks *hooks = spec->target->hooks;
    struct qdq_plan *plans[2] = {NULL, NULL};
    if (!hooks->set_weighing || !qdqi_fastest_is_asked(a))
        return QDQ_OK;
    struct qdqi_map *known = qdqi_map_new(a->scratch);
    enum qdq_code code = known ? QDQ_OK : qdqi_no_memory(err);
    for (int weighed = 0; weighed < 2 && !code; weighed++) {
        hooks->set_weighing(spec, weighed ? a->context->asked : NULL);
        code = qdq_plan_make(a->context->engine->catalog, a->model, spec,
                             &plans[weighed], err);
    }
    if (!code && qdqi_plan_has_ranges(&plans[0]->view, &plans[1]->view, known))
        hooks->set_weighing(spec, NULL);
    qdq_plan_free(&plans[0]);
    qdq_plan_free(&plans[1]);
    return code;
}

/* --- the report -------------------------------------------------------------- */

static struct qdq_recipe_step
make_step(const char *name, const struct qdqi_grade *score, bool kept)
{
    return (struct qdq_recipe_step){.step = name,
                                    .sqnr_db = score->output_db,
                                    .task_drop = score->task_drop,
                                    .size_ratio = score->size_ratio,
                                    .latency_ratio = score->latency_ratio,
                                    .predicted_ratio = NAN,
                                    .samples = score->samples,
                                    .kept = kept};
}

static void
add_placements(const struct recipe *r, struct qdq_recipe_step *to)
{
    for (size_t i = 0; i < r->fastest.n_judged; i++) {
        const struct qdqi_judged_placement *from = &r->fastest.judged[i];
        to[i] = make_step(from->step, &from->grade, from == r->chosen);
        to[i].layers = from->layers;
        to[i].n_layers = from->n_layers;
        to[i].predicted_ratio = from->predicted;
    }
}

static void
add_variants(const struct qdqi_variants *v, struct qdq_recipe_step *to, size_t first,
             size_t end)
{
    for (size_t i = first; i < end; i++, to++) {
        const struct qdqi_variant_step *from = &v->steps[i];
        *to = make_step(from->step, &from->score, from->kept);
        to->changed = from->changed;
        to->spec = from->spec;
    }
}

/* Reports the placements that were measured, `n_first` steps of the variants, then those of the groups on top of `changed`,
   then the other variants. */
static enum qdq_code
report(const struct recipe *r, size_t n_first, unsigned changed,
       const struct qdq_spec *spec, struct qdq_error *err)
{
    const struct qdqi_group_search *h = &r->groups;
    const struct qdqi_variants *v = &r->variants;
    struct qdqi_arena *arena = r->candidates.result->arena;
    const size_t measured = r->fastest.n_judged;
    size_t n = measured + v->n_steps + h->n_steps;
    struct qdq_recipe_report *to = qdqi_arena_alloc(arena, sizeof *to);
    struct qdq_recipe_step *all = qdqi_arena_array(arena, n, sizeof *all);
    struct qdq_recipe_step *steps = all ? all + measured : NULL;
    enum qdq_code code = to && all ? QDQ_OK : qdqi_no_memory(err);
    if (!code) {
        add_placements(r, all);
        add_variants(v, steps, 0, n_first);
    }
    for (size_t i = 0; !code && i < h->n_steps; i++) {
        const struct qdqi_group_step *from = &h->steps[i];
        struct qdq_recipe_step *step = &steps[n_first + i];
        *step = make_step(from->step, &from->score, from->kept);
        step->estimated = from->estimated;
        step->changed = changed;
        step->spec = spec;
        code = qdqi_candidates_list(&r->candidates, from->is_float, arena,
                                    &step->layers, &step->n_layers, err);
    }
    if (code)
        return code;
    add_variants(v, steps + n_first + h->n_steps, n_first, v->n_steps);
    *to = (struct qdq_recipe_report){n, all};
    r->candidates.result->report->recipe = to;
    return QDQ_OK;
}

/* --- the steps ---------------------------------------------------------------- */

/* Carries out the choice of layers. */
static enum qdq_code
carry_out(struct recipe *r, struct qdq_error *err)
{
    struct qdqi_attempt *a = r->candidates.attempt;
    struct qdqi_left left = {.reason = REASON};
    enum qdq_code code = qdqi_candidates_list(&r->candidates, r->groups.is_float,
                                              a->arena, &left.names, &left.n, err);
    if (code || left.n == 0 || (code = qdqi_attempt_leave(a, &left, err)))
        return code;
    return qdqi_choose_scales(a, err);
}

static bool
is_time_up(void *arg)
{
    const struct qdqi_candidates *r = arg;
    return qdqi_time_is_up(r->attempt->context, r->attempt->spec->recipe_seconds);
}

static enum qdq_code
score(void *arg, const bool *is_float, struct qdqi_grade *ret, struct qdq_error *err)
{
    struct recipe *r = arg;
    /* The search is through with estimates when it judges again, and the runtime needs memory. */
    qdqi_estimate_close(&r->estimate);
    return qdqi_candidates_score(&r->candidates, is_float, ret, err);
}

static enum qdq_code
estimate(void *arg, const bool *is_float, struct qdqi_grade *ret, struct qdq_error *err)
{
    struct recipe *r = arg;
    enum qdq_code code = QDQ_OK;
    if (!r->estimate.candidates) {
        /* Another choice follows, and the memory is for the sessions of the estimates. */
        qdqi_last_candidate_drop(r->candidates.attempt->context);
        code = qdqi_estimate_open(&r->estimate, &r->candidates, r->samples, err);
    }
    if (!code)
        code = qdqi_estimate_grade(&r->estimate, is_float, ret, err);
    if (!code && isnan(r->above_db)) { /* the first one is that of the start */
        const double start_db = r->groups.start->sqnr_db;
        r->above_db = isfinite(start_db) ? fmax(ret->sqnr_db - start_db, 0) : 0;
    }
    if (!code)
        ret->sqnr_db -= r->above_db;
    if (code != QDQ_RUN_FAILED && code != QDQ_INVALID_SPEC)
        return code;
    /* A choice without an estimate is judged. */
    *ret = qdqi_no_grade(&r->candidates);
    return QDQ_OK;
}

static bool
is_search_over(void *arg)
{
    struct recipe *r = arg;
    return is_time_up(&r->candidates);
}

/* Finds the layers that stay in float. */
static enum qdq_code
search_layers(struct recipe *r, const struct qdqi_grade *start, struct qdq_error *err)
{
    struct qdqi_candidates *c = &r->candidates;
    const bool more = is_best(c->attempt->spec);
    const size_t tries = QDQI_CANDIDATES * (size_t)(more ? BEST_FACTOR : 1);
    const int64_t samples = qdqi_comparer_samples(c->comparer);
    const int64_t most = samples > 0 ? r->bound / samples - 1 : 0;
    r->groups = (struct qdqi_group_search){
        .n = c->n,
        .costs = c->costs,
        .noise = c->noise,
        .goal_db = c->goal_db,
        .enough_db = more ? INFINITY : usable_db,
        .max_scores = most > (int64_t)tries ? tries : (size_t)(most < 0 ? 0 : most),
        .start = start,
        .arena = c->result->scratch,
        .arg = r,
        .score = score,
        .estimate = qdqi_estimate_helps(c) ? estimate : NULL,
        .is_time_up = is_search_over};
    if (start)
        r->groups.best = *start;
    if (most < 1)
        return QDQ_OK;
    qdqi_comparer_expect(c->comparer, r->groups.max_scores * (uint64_t)samples);
    enum qdq_code code = qdqi_group_search(&r->groups, err);
    qdqi_estimate_close(&r->estimate);
    return code;
}

/* Returns whether the best so far has what the spec asks for. */
static bool
is_reached(const struct recipe *r, const struct qdqi_grade *best)
{
    return qdqi_grade_fits(best) && best->sqnr_db >= r->candidates.goal_db;
}

/* Tries what costs nothing when the model runs, within half of the bound. */
static enum qdq_code
try_variants(struct recipe *r, struct qdq_error *err)
{
    struct qdqi_candidates *c = &r->candidates;
    r->variants = (struct qdqi_variants){.candidates = c,
                                         .bound = r->bound / 2,
                                         .is_time_up = is_time_up,
                                         .arg = c,
                                         .spec = c->attempt->spec};
    enum qdq_code code = qdqi_variants_try(&r->variants, err);
    if (code)
        return code;
    for (size_t i = 0; i < r->variants.n_steps; i++)
        r->bound -= r->variants.steps[i].score.samples;
    c->n = 0; /* the plan may be another one */
    return qdqi_candidates_find(c, err);
}

/* Tries wider activations where layers in float do not reach the goal. They take the place
   of these layers. */
static enum qdq_code
try_wider(struct recipe *r, bool *ret_wider, struct qdq_error *err)
{
    struct qdqi_variants *v = &r->variants;
    const unsigned before = v->changed;
    v->best = r->groups.best;
    v->bound = r->bound;
    enum qdq_code code = qdqi_variants_widen(v, err);
    *ret_wider = v->changed != before;
    return code;
}

/* The recipe `best`: tries other members of the spec, then layers in float, then formats. */
static enum qdq_code
run_best(struct recipe *r, struct qdq_error *err)
{
    struct qdqi_variants *v = &r->variants;
    bool is_wider = false;
    enum qdq_code code = try_variants(r, err);
    if (code)
        return code;
    const struct qdqi_grade start = v->best;
    const struct qdq_spec *spec = v->spec;
    const unsigned changed = v->changed;
    const size_t n = v->n_steps;
    r->groups.best = start;
    if (!is_reached(r, &start) && r->candidates.n > 0)
        code = search_layers(r, &start, err);
    const struct qdqi_grade best = r->groups.best;
    if (!code && !is_reached(r, &best) && qdqi_goals_have_bounds(spec))
        code = try_wider(r, &is_wider, err);
    if (!code)
        code = report(r, n, changed, spec, err);
    if (!code)
        code = qdqi_warn_goal_missed(&r->candidates, is_wider ? &v->best : &best, err);
    if (!code)
        code = qdqi_warn_not_judged(&r->candidates, is_wider ? &v->best : &best, err);
    return code || is_wider || !r->groups.is_float ? code : carry_out(r, err);
}

static enum qdq_code
choose_layers(struct recipe *r, struct qdq_error *err)
{
    enum qdq_code code = search_layers(r, NULL, err);
    if (code || r->groups.n_steps == 0)
        return code;
    code = report(r, 0, 0, NULL, err);
    if (!code)
        code = qdqi_warn_not_judged(&r->candidates, &r->groups.best, err);
    return code ? code : carry_out(r, err);
}

/* --- by measured costs ---------------------------------------------------------- */

/* Plans the attempt by the rules, with its candidates. */
static enum qdq_code
go_by_rules(struct recipe *r, struct qdq_error *err)
{
    struct qdqi_candidates *c = &r->candidates;
    const struct qdq_spec *spec = qdqi_fastest_spec_by_rules(&r->candidates);
    if (!spec)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_attempt_replan(c->attempt, spec, err);
    if (!code)
        code = qdqi_choose_scales(c->attempt, err);
    c->n = 0;
    return code ? code : qdqi_candidates_find(c, err);
}

/* Carries out a placement that was measured. */
static enum qdq_code
settle(const struct recipe *r, const struct qdqi_judged_placement *p,
       struct qdq_error *err)
{
    struct qdqi_attempt *a = r->candidates.attempt;
    const struct qdqi_left left = {
        .names = p->layers, .n = p->n_layers, .reason = REASON};
    if (p->spec == a->planned_by && p->n_layers == 0)
        return QDQ_OK;
    enum qdq_code code =
        p->spec == a->planned_by ? QDQ_OK : qdqi_attempt_replan(a, p->spec, err);
    if (!code && p->n_layers > 0)
        code = qdqi_attempt_leave(a, &left, err);
    return code ? code : qdqi_choose_scales(a, err);
}

static enum qdq_code
judge_placements(struct recipe *r, struct qdq_error *err)
{
    struct qdqi_fastest *f = &r->fastest;
    *f = (struct qdqi_fastest){
        .candidates = &r->candidates,
        .by_rules = qdqi_fastest_spec_by_rules(&r->candidates),
        .points = (size_t)r->candidates.attempt->context->asked->frontier_points,
        .is_time_up = is_time_up,
        .arg = &r->candidates,
        .patterns =
            qdqi_by_patterns_is_asked(r->candidates.attempt) ? &r->patterns : NULL};
    if (!f->by_rules)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_fastest_judge(f, err);
    r->has_times =
        qdqi_comparer_measures(r->candidates.comparer) && qdqi_fastest_has_times(f);
    r->bound -= f->samples;
    qdqi_comparer_judging(r->candidates.comparer)->is_resting =
        isnan(r->candidates.max_latency);
    return code;
}

/* Searches for layers to leave in float, from what the rules place, and measures what it finds. */
static enum qdq_code
search_from_rules(struct recipe *r, struct qdq_error *err)
{
    struct qdqi_candidates *c = &r->candidates;
    struct qdqi_attempt *own = c->attempt, *trial = NULL;
    const struct qdqi_grade start = r->fastest.judged[1].grade;
    struct qdqi_judged_placement p = {
        .step = "search", .spec = r->fastest.by_rules, .predicted = NAN};
    struct qdq_error why = {0};
    enum qdq_code code = qdqi_fastest_try_rules(&r->fastest, &trial, &why);
    if (code || start.is_float) {
        qdqi_attempt_free(&trial);
        return qdqi_candidates_outcome(c, code, &why, &p.grade, err);
    }
    c->attempt = trial;
    c->n = 0;
    r->above_db = NAN;
    qdqi_comparer_judging(c->comparer)->is_resting = true;
    if (!(code = qdqi_candidates_find(c, err)))
        code = search_layers(r, &start, err);
    const bool found = !code && r->groups.is_float;
    qdqi_comparer_judging(c->comparer)->is_resting = false;
    if (found && !(code = qdqi_candidates_score(c, r->groups.is_float, &p.grade, err)))
        code = qdqi_candidates_list(c, r->groups.is_float, c->result->arena, &p.layers,
                                    &p.n_layers, err);
    if (found && !code)
        qdqi_fastest_add(&r->fastest, &p);
    c->attempt = own;
    qdqi_attempt_free(&trial);
    return code;
}

/* The recipe `auto` by measured costs: the fastest placement that is good, or usable. */
static enum qdq_code
choose_fastest(struct recipe *r, struct qdq_error *err)
{
    struct qdqi_fastest *f = &r->fastest;
    const double goal = r->candidates.goal_db;
    enum qdq_code code = judge_placements(r, err);
    if (code)
        return code;
    code = qdqi_fastest_choose(f, goal, &r->chosen, err);
    if (!code && !f->patterns &&
        (!r->chosen || (qdqi_estimate_helps(&r->candidates) &&
                        qdqi_fastest_is_ample(f, r->chosen))) &&
        !(code = search_from_rules(r, err)))
        code = qdqi_fastest_choose(f, goal, &r->chosen, err);
    if (!code && !r->chosen)
        code = qdqi_fastest_choose(f, fmin(goal, usable_db), &r->chosen, err);
    if (!code && !r->chosen)
        code = qdqi_fastest_best(f, &r->chosen, err);
    if (code)
        return code;
    code = report(r, 0, 0, NULL, err);
    if (!code)
        code = qdqi_warn_not_judged(&r->candidates, &r->chosen->grade, err);
    return code ? code : settle(r, r->chosen, err);
}

/* A recipe with goals by measured costs: the fastest placement that reaches them, or else a search
   that begins with the one that comes nearest to them; by patterns, that one. */
static enum qdq_code
run_goals(struct recipe *r, struct qdq_error *err)
{
    struct qdqi_fastest *f = &r->fastest;
    enum qdq_code code = judge_placements(r, err);
    if (!code)
        code = qdqi_fastest_choose(f, r->candidates.goal_db, &r->chosen, err);
    if (code)
        return code;
    qdqi_comparer_judging(r->candidates.comparer)->is_resting =
        isnan(r->candidates.max_latency);
    const bool is_found = r->chosen;
    if (f->patterns && !r->chosen)
        r->chosen = qdqi_fastest_start(f);
    if (r->chosen) {
        code = report(r, 0, 0, NULL, err);
        if (!code && !is_found)
            code = qdqi_warn_goal_missed(&r->candidates, &r->chosen->grade, err);
        return code ? code : settle(r, r->chosen, err);
    }
    r->candidates.n = 0;
    if (!(code = settle(r, qdqi_fastest_start(f), err)))
        code = qdqi_candidates_find(&r->candidates, err);
    return code ? code : run_best(r, err);
}

/* A recipe with formats: each weight has the one that makes the best use of its bytes. */
static enum qdq_code
run_formats(struct recipe *r, struct qdq_error *err)
{
    struct qdqi_candidates *c = &r->candidates;
    r->variants = (struct qdqi_variants){.candidates = c,
                                         .bound = INT64_MAX,
                                         .is_time_up = is_time_up,
                                         .arg = c,
                                         .spec = c->attempt->spec};
    enum qdq_code code = qdqi_allocate_formats(&r->variants, err);
    if (!code)
        code = report(r, r->variants.n_steps, 0, NULL, err);
    if (!code)
        code = qdqi_warn_goal_missed(&r->candidates, &r->variants.best, err);
    return code ? code : qdqi_warn_not_judged(&r->candidates, &r->variants.best, err);
}

/* The recipe `auto` of a target that widens: 16 bits where 8 do not reach the goal, for as few layers
   as that takes. */
static enum qdq_code
choose_width(struct recipe *r, struct qdq_error *err)
{
    struct qdqi_variants *v = &r->variants;
    *v = (struct qdqi_variants){.candidates = &r->candidates,
                                .bound = INT64_MAX / BEST_FACTOR,
                                .is_time_up = is_time_up,
                                .arg = &r->candidates,
                                .spec = r->candidates.attempt->spec};
    enum qdq_code code = qdqi_choose_widths(v, err);
    code = code ? code : report(r, v->n_steps, 0, NULL, err);
    return code ? code : qdqi_warn_not_judged(&r->candidates, &v->best, err);
}

static enum qdq_code
choose(struct recipe *r, struct qdq_error *err)
{
    const struct qdq_spec *asked = r->candidates.attempt->context->asked;
    const bool best = is_best(asked);
    if (asked->recipe_formats)
        return run_formats(r, err);
    if (!best && asked->target->widens)
        return choose_width(r, err);
    if (!qdqi_fastest_is_asked(r->candidates.attempt))
        return best ? run_best(r, err) : choose_layers(r, err);
    /* Another attempt may take the place of the first one. */
    enum qdq_code code = best ? run_goals(r, err) : choose_fastest(r, err);
    return code || asked->frontier_points == 0 ? code
                                               : qdqi_frontier_report(&r->fastest, err);
}

static enum qdq_code
run(struct recipe *r, struct qdq_error *err)
{
    const struct qdq_spec *asked = r->candidates.attempt->context->asked;
    enum qdq_code code = qdqi_goals_check(&r->candidates, err);
    if (!code)
        code = choose(r, err);
    if (!code)
        code =
            qdqi_comparer_conclude(r->candidates.comparer, r->candidates.attempt, err);
    return code || !is_time_up(&r->candidates)
               ? code
               : qdqi_warn_time_is_up(r->candidates.attempt, asked->recipe_seconds,
                                      "/recipe/max_seconds", err);
}

static enum qdq_code
open_comparer(struct recipe *r, const struct qdqi_feed_options *options,
              struct qdq_error *err)
{
    struct qdqi_attempt *a = r->candidates.attempt;
    struct qdqi_comparer **comparer = &r->candidates.comparer;
    enum qdq_code code =
        qdqi_comparer_open(a, options, QDQ_STAGE_RECIPE, comparer, err);
    if (!code && qdqi_fastest_is_asked(a) && !is_best(a->spec))
        qdqi_comparer_judge_samples(*comparer);
    return code || (isnan(r->candidates.max_latency) && !qdqi_fastest_is_asked(a))
               ? code
               : qdqi_comparer_measure_latency(*comparer, a, err);
}

/* Returns whether there is anything to choose. */
static bool
has_choice(const struct recipe *r)
{
    const struct qdqi_attempt *a = r->candidates.attempt;
    return r->candidates.n > 0 || ((is_best(a->spec) || a->spec->target->widens) &&
                                   a->plan->view.n_quantized > 0);
}

/* Opens the comparer and chooses. */
static enum qdq_code
compare_and_choose(struct recipe *r, const struct qdqi_feed_options *options,
                   struct qdq_error *err)
{
    struct qdq_error why = {0};
    enum qdq_code code = open_comparer(r, options, &why);
    if (code == QDQ_RUNTIME_MISSING || code == QDQ_RUN_FAILED || code == QDQ_JUDGE_GONE)
        code = qdqi_attempt_warn(r->candidates.attempt, err, "recipe_not_judged", NULL,
                                 "the recipe chose by the model alone: %s", why.text);
    else if (code)
        qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    else
        code = run(r, err);
    if (why.code && !code && qdqi_fastest_is_asked(r->candidates.attempt))
        code = go_by_rules(r, err);
    if (r->has_times)
        r->candidates.result->report->costs =
            qdqi_comparer_has_measured(r->candidates.comparer) ? "measured" : "kept";
    qdqi_comparer_close(&r->candidates.comparer);
    return code;
}

static enum qdq_code
run_recipe(struct qdqi_attempt **attempt, struct qdqi_result *result,
           struct qdq_error *err)
{
    const struct qdqi_attempt *a = *attempt;
    const struct qdq_spec *spec = a->spec;
    struct recipe r = {
        .candidates = {.attempt = *attempt,
                       .result = result,
                       .reason = REASON,
                       .goal_db = qdqi_goals_sqnr_db(spec),
                       .min_top1 = spec->recipe_top1_agreement,
                       .max_drop = spec->recipe_task_drop,
                       .task = isnan(spec->recipe_task_drop) ? NULL : result->task,
                       .max_size = qdqi_goals_max_size((*attempt)->context),
                       .max_latency = spec->recipe_latency_ratio}};
    struct qdqi_feed_options options = {.batch = qdqi_attempt_batch(a)};
    r.samples = &options;
    if (spec->recipe < QDQ_RECIPE_AUTO)
        return QDQ_OK;
    if (!is_comparable(a)) /* of a lack of data the plan warns */
        return qdqi_goals_ask_for_accuracy(spec) && qdqi_context_can_judge(a->context)
                   ? qdqi_attempt_warn(a, err, "recipe_not_judged", NULL,
                                       spec->target->searches_patterns
                                           ? "the recipe has a goal, and no runner "
                                             "measures the target"
                                           : "the recipe has a goal, and with formats "
                                             "that have no integer kernels nothing is "
                                             "judged")
                   : QDQ_OK;
    enum qdq_code code = qdqi_candidates_find(&r.candidates, err);
    if (code || !has_choice(&r) ||
        (code = qdqi_candidates_samples(a, is_best(spec) ? BEST_FACTOR : 1, &options,
                                        &r.bound, err)))
        return code;
    if (spec->recipe_seconds)
        r.bound = INT64_MAX / BEST_FACTOR;
    code = compare_and_choose(&r, &options, err);
    *attempt = r.candidates.attempt; /* also after a failure: the old one is gone */
    return code;
}

enum qdq_code
qdqi_recipe(struct qdqi_attempt **attempt, struct qdqi_result *result,
            struct qdq_error *err)
{
    bool again = false;
    enum qdq_code code = run_recipe(attempt, result, err);
    if (!code && !(code = qdqi_calibrate_moments(*attempt, &again, err)) && again)
        code = qdqi_choose_scales(*attempt, err);
    const struct qdq_spec *spec = (*attempt)->spec;
    if (!result->report->costs && spec->recipe >= QDQ_RECIPE_AUTO &&
        spec->target->hooks->weighs && spec->target->hooks->weighs(spec))
        result->report->costs = "estimated";
    return code ? code : qdqi_frontier_warn_missing(*attempt, result, err);
}
