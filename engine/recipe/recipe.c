/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "recipe/recipe.h"

#include "plan/target.h"
#include "judge/candidates.h"
#include "recipe/groups.h"
#include "replan/replan.h"
#include "scale/scale.h"

#include <math.h>
#include <string.h>

/* The quality that the recipe `auto` wants, and the one that it is content with when half
   of the multiplications would stay in float otherwise. */
static const double good_db = 25, usable_db = 20;

/* The quality that goes with a goal for top-1 agreement alone. */
static const double least_db = 0;

/* A recipe that goes on may judge that many times as many candidates. */
enum { MORE = 4 };

static const char REASON[] = "recipe";

/* --- all steps ------------------------------------------------------------- */

static bool
has_integer_kernels(enum qdq_format activations)
{
    return activations == QDQ_FORMAT_INT8 || activations == QDQ_FORMAT_UINT8;
}

static bool
has_goal(const struct qdq_spec *spec)
{
    return !isnan(spec->recipe_sqnr_db) || !isnan(spec->recipe_top1_agreement);
}

/* Returns whether the recipe goes on where `auto` is content. */
static bool
goes_on(const struct qdq_spec *spec)
{
    return spec->recipe == QDQ_RECIPE_BEST;
}

/* Returns the SQNR that the recipe wants. */
static double
goal_of(const struct qdq_spec *spec)
{
    if (!isnan(spec->recipe_sqnr_db))
        return spec->recipe_sqnr_db;
    return isnan(spec->recipe_top1_agreement) ? good_db : least_db;
}

bool
qdqi_recipe_has_data(const struct qdqi_job *job)
{
    return job->work->dataset >= 0 && !job->work->spec->weight_only;
}

/* Returns whether candidates can be judged. */
static bool
is_judged(const struct qdqi_job *job)
{
    const struct qdq_spec *spec = job->work->spec;
    return job->dataset && qdqi_recipe_has_data(job) &&
           has_integer_kernels(spec->activation_format) &&
           spec->float_type == QDQ_FLOAT_KEEP && spec->target->runtime;
}

static enum qdq_code
report(const struct qdqi_candidates *r, const struct qdqi_group_search *h,
       struct qdq_error *err)
{
    struct qdqi_arena *arena = r->job->arena;
    struct qdq_recipe_report *to = qdqi_arena_alloc(arena, sizeof *to);
    struct qdq_recipe_step *steps = qdqi_arena_array(arena, h->n_steps, sizeof *steps);
    enum qdq_code code = to && steps ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; !code && i < h->n_steps; i++) {
        const struct qdqi_group_step *from = &h->steps[i];
        steps[i] = (struct qdq_recipe_step){
            .step = from->step, .sqnr_db = from->sqnr_db, .kept = from->kept};
        code = qdqi_candidates_list(r, from->is_float, arena, &steps[i].layers,
                                    &steps[i].n_layers, err);
    }
    if (code)
        return code;
    *to = (struct qdq_recipe_report){h->n_steps, steps};
    r->job->report->view.recipe = to;
    return QDQ_OK;
}

/* Carries out the choice. */
static enum qdq_code
carry_out(struct qdqi_candidates *r, const bool *is_float, struct qdqi_scales *scales,
          struct qdq_error *err)
{
    struct qdqi_job *job = r->job;
    struct qdq_plan *before = job->plan;
    const char *const *names;
    size_t n;
    enum qdq_code code = qdqi_candidates_list(r, is_float, job->arena, &names, &n, err);
    if (code || n == 0)
        return code;
    if ((code = qdqi_plan_leaving(job, names, n, REASON, err)))
        return code;
    qdq_plan_free(&before);
    return qdqi_choose_scales(job, scales, err);
}

/* Warns when the goal of the spec was not reached. */
static enum qdq_code
warn_missed(const struct qdqi_candidates *r, const struct qdqi_group_search *h,
            struct qdq_error *err)
{
    if (!has_goal(r->job->work->spec) || h->sqnr_db >= h->goal_db)
        return QDQ_OK;
    return qdqi_warn(
        &r->job->warnings, r->job->arena, err, "recipe_goal_missed", NULL,
        "the goal of the recipe was not reached on %lld samples: the worst "
        "output has %.4g dB",
        (long long)qdqi_judge_samples(r->judge), h->sqnr_db);
}

/* Returns an error if the goal is about a figure that no output has. */
static enum qdq_code
check_goal(const struct qdqi_candidates *r, struct qdq_error *err)
{
    double db;
    enum qdq_code code =
        isnan(r->min_top1) ? QDQ_OK : qdqi_judge_run(r->judge, r->scales, &db, err);
    if (code || isnan(r->min_top1) || !isnan(qdqi_judge_top1(r->judge)))
        return code;
    return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER,
                         "/recipe/min_top1_agreement",
                         "no floating output lists classes, whose largest could agree");
}

static bool
is_late(void *arg)
{
    const struct qdqi_candidates *r = arg;
    return qdqi_job_is_late(r->job, r->job->work->spec->recipe_seconds);
}

static enum qdq_code
search(struct qdqi_candidates *r, int64_t bound, struct qdqi_scales *scales,
       struct qdq_error *err)
{
    const struct qdq_spec *spec = r->job->work->spec;
    const size_t tries = QDQI_CANDIDATES * (size_t)(goes_on(spec) ? MORE : 1);
    int64_t samples = qdqi_judge_samples(r->judge);
    int64_t most = samples > 0 ? bound / samples - 1 : 0;
    struct qdqi_group_search h = {.n = r->n,
                                  .costs = r->costs,
                                  .goal_db = r->goal_db,
                                  .enough_db = goes_on(spec) ? INFINITY : usable_db,
                                  .max_scores =
                                      most > (int64_t)tries ? tries : (size_t)most,
                                  .arena = r->job->scratch,
                                  .arg = r,
                                  .score = qdqi_candidates_score,
                                  .is_late = is_late};
    if (most < 1)
        return QDQ_OK;
    enum qdq_code code = check_goal(r, err);
    if (code)
        return code;
    qdqi_judge_expect(r->judge, h.max_scores * (uint64_t)samples);
    code = qdqi_group_search(&h, err);
    if (!code)
        code = report(r, &h, err);
    if (!code)
        code = warn_missed(r, &h, err);
    if (!code && is_late(r))
        code = qdqi_job_warn_late(r->job, spec->recipe_seconds, "/recipe/max_seconds",
                                  err);
    return code ? code : carry_out(r, h.is_float, scales, err);
}

enum qdq_code
qdqi_recipe(struct qdqi_job *job, struct qdqi_scales *scales, struct qdq_error *err)
{
    struct qdqi_candidates r = {.job = job,
                                .scales = scales,
                                .reason = REASON,
                                .goal_db = goal_of(job->work->spec),
                                .min_top1 = job->work->spec->recipe_top1_agreement};
    struct qdqi_feed_options options = {.batch = qdqi_job_batch(job)};
    struct qdq_error why = {0};
    int64_t bound = 0;
    if (job->work->spec->recipe < QDQ_RECIPE_AUTO)
        return QDQ_OK;
    if (!is_judged(job)) /* of a lack of data the plan warns */
        return has_goal(job->work->spec) && qdqi_recipe_has_data(job)
                   ? qdqi_warn(&job->warnings, job->arena, err, "recipe_not_judged",
                               NULL,
                               "the recipe has a goal, and with formats that have no "
                               "integer kernels nothing is judged")
                   : QDQ_OK;
    enum qdq_code code = qdqi_candidates_find(&r, err);
    if (code || r.n == 0 ||
        (code = qdqi_candidates_samples(job, &options, &bound, err)))
        return code;
    bound *= goes_on(job->work->spec) ? MORE : 1;
    if (job->work->spec->recipe_seconds)
        bound = INT64_MAX;
    code = qdqi_judge_open(job, &options, QDQ_STAGE_RECIPE, &r.judge, &why);
    if (code == QDQ_RUNTIME_MISSING || code == QDQ_RUN_FAILED)
        return qdqi_warn(&job->warnings, job->arena, err, "recipe_not_judged", NULL,
                         "the recipe chose by the model alone: %s", why.text);
    if (code)
        return qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    code = search(&r, bound, scales, err);
    qdqi_judge_close(&r.judge);
    return code;
}
