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

static const char REASON[] = "recipe";

/* --- all steps ------------------------------------------------------------- */

static bool
has_integer_kernels(enum qdq_format activations)
{
    return activations == QDQ_FORMAT_INT8 || activations == QDQ_FORMAT_UINT8;
}

/* Returns whether candidates can be judged. */
static bool
is_judged(const struct qdqi_job *job)
{
    const struct qdq_spec *spec = job->work->spec;
    return spec->recipe == QDQ_RECIPE_AUTO && job->dataset && job->work->dataset >= 0 &&
           !spec->weight_only && has_integer_kernels(spec->activation_format) &&
           spec->float_type == QDQ_FLOAT_KEEP && spec->target->has_kernels;
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

static enum qdq_code
search(struct qdqi_candidates *r, int64_t bound, struct qdqi_scales *scales,
       struct qdq_error *err)
{
    int64_t samples = qdqi_judge_samples(r->judge);
    int64_t most = samples > 0 ? bound / samples - 1 : 0;
    struct qdqi_group_search h = {.n = r->n,
                                  .costs = r->costs,
                                  .goal_db = good_db,
                                  .enough_db = usable_db,
                                  .max_scores = most > QDQI_CANDIDATES ? QDQI_CANDIDATES
                                                                       : (size_t)most,
                                  .arena = r->job->scratch,
                                  .arg = r,
                                  .score = qdqi_candidates_score};
    if (most < 1)
        return QDQ_OK;
    qdqi_judge_expect(r->judge, h.max_scores * (uint64_t)samples);
    enum qdq_code code = qdqi_group_search(&h, err);
    if (!code)
        code = report(r, &h, err);
    return code ? code : carry_out(r, h.is_float, scales, err);
}

enum qdq_code
qdqi_recipe(struct qdqi_job *job, struct qdqi_scales *scales, struct qdq_error *err)
{
    struct qdqi_candidates r = {.job = job,
                                .scales = scales,
                                .reason = REASON,
                                .goal_db = good_db,
                                .min_top1 = NAN};
    struct qdqi_feed_options options = {.batch = qdqi_job_batch(job)};
    struct qdq_error why = {0};
    int64_t bound = 0;
    if (!is_judged(job))
        return QDQ_OK;
    enum qdq_code code = qdqi_candidates_find(&r, err);
    if (code || r.n == 0 ||
        (code = qdqi_candidates_samples(job, &options, &bound, err)))
        return code;
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
