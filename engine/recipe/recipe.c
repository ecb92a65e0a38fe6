/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "recipe/recipe.h"

#include "evaluate/evaluate.h"
#include "model/view.h"
#include "plan/target.h"
#include "recipe/groups.h"
#include "recipe/judge.h"
#include "replan/replan.h"
#include "scale/scale.h"

#include <math.h>
#include <string.h>

enum {
    FEWEST = 4, /* samples that a candidate is judged by, where there are so many */
    TRIES = 48, /* candidates for which the bound should be enough */
};

/* The quality that the recipe `auto` wants, and the one that it is content with when half
   of the multiplications would stay in float otherwise. */
static const double good_db = 25, usable_db = 20;

static const char REASON[] = "recipe";

struct recipe {
    struct qdqi_job *job;
    struct qdqi_judge *judge;
    const struct qdqi_scales *scales; /* of the job's plan */
    const char **names;               /* by layer that may stay in float */
    double *costs;
    size_t n;
};

/* --- the layers ------------------------------------------------------------ */

/* Returns whether the recipe may leave the layer in float: no entry and no case selects
   it, and its plan does not only follow that of its neighbours. */
static bool
may_stay_float(const struct qdqi_job *job, const struct qdq_layer *layer)
{
    const struct qdqi_hooks *hooks = job->work->spec->target->hooks;
    return (layer->n_inputs > 0 || layer->weight_input >= 0) &&
           strncmp(layer->reason, "default", strlen("default")) == 0 &&
           !(hooks->follows && hooks->follows(layer));
}

/* Returns an estimate of the layer's multiplications, in proportion to those of other
   layers: the number of elements of its weight. */
static double
cost_of(const struct qdqi_job *job, const struct qdq_layer *layer)
{
    double n = 1;
    if (layer->weight_input < 0)
        return n;
    const struct qdqi_view *view = &job->plan->weights[layer->weight_row].tensor->view;
    for (size_t i = 0; i < view->rank; i++)
        n *= (double)view->dims[i];
    return n;
}

static enum qdq_code
find_layers(struct recipe *r, struct qdq_error *err)
{
    const struct qdq_plan_view *plan = &r->job->plan->view;
    r->names = qdqi_arena_array(r->job->arena, plan->n_layers + 1, sizeof *r->names);
    r->costs = qdqi_arena_array(r->job->scratch, plan->n_layers + 1, sizeof *r->costs);
    if (!r->names || !r->costs)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        if (!may_stay_float(r->job, layer))
            continue;
        r->costs[r->n] = cost_of(r->job, layer);
        r->names[r->n] = qdqi_arena_strdup(r->job->arena, layer->name);
        if (!r->names[r->n++])
            return qdqi_no_memory(err);
    }
    return QDQ_OK;
}

/* Lists the names of the layers that a choice leaves in float. */
static enum qdq_code
list_names(const struct recipe *r, const bool *is_float, struct qdqi_arena *arena,
           const char *const **ret, size_t *ret_n, struct qdq_error *err)
{
    const char **names = qdqi_arena_array(arena, r->n + 1, sizeof *names);
    if (!names)
        return qdqi_no_memory(err);
    *ret_n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (is_float[i])
            names[(*ret_n)++] = r->names[i];
    *ret = names;
    return QDQ_OK;
}

/* --- a trial --------------------------------------------------------------- */

static enum qdq_code
try_names(struct recipe *r, const char *const *names, size_t n, double *ret_db,
          struct qdq_error *err)
{
    struct qdqi_scales scales = {0};
    enum qdq_code code = qdqi_plan_leaving(r->job, names, n, REASON, err);
    if (!code)
        code = qdqi_choose_scales(r->job, &scales, err);
    return code ? code : qdqi_judge_run(r->judge, &scales, ret_db, err);
}

/* Returns whether an error says only that this candidate cannot be made. */
static bool
is_of_candidate(enum qdq_code code)
{
    return code == QDQ_INTERNAL || code == QDQ_CASE_FAILED || code == QDQ_UNSUPPORTED ||
           code == QDQ_INVALID_SPEC;
}

/* Judges a choice. The job is as before when this returns: a trial makes everything in an
   arena of its own. */
static enum qdq_code
score(void *arg, const bool *is_float, double *ret_db, struct qdq_error *err)
{
    struct recipe *r = arg;
    struct qdqi_job *job = r->job;
    const struct qdqi_job before = *job;
    const struct qdq_report view = job->report->view;
    const char *const *names = NULL;
    struct qdq_error why = {0};
    size_t n = 0;
    job->arena = job->scratch = qdqi_arena_new();
    enum qdq_code code = job->arena
                             ? list_names(r, is_float, job->arena, &names, &n, &why)
                             : qdqi_no_memory(&why);
    if (!code)
        code = n > 0 ? try_names(r, names, n, ret_db, &why)
                     : qdqi_judge_run(r->judge, r->scales, ret_db, &why);
    if (job->plan != before.plan)
        qdq_plan_free(&job->plan);
    qdqi_arena_free(&job->scratch);
    *job = before;
    job->report->plan = before.plan;
    job->report->view = view;
    if (is_of_candidate(code)) {
        *ret_db = -INFINITY;
        return QDQ_OK;
    }
    return code ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
                : QDQ_OK;
}

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

/* Chooses the samples, and sets *ret_scores to the number of candidates that they may
   judge. The bound is counted in inferences, so that it does not depend on the time. */
static enum qdq_code
choose_samples(const struct qdqi_job *job, struct qdqi_feed_options *options,
               int64_t *ret_bound, struct qdq_error *err)
{
    struct qdqi_feed *feed = NULL;
    enum qdq_code code = qdqi_feed_open(&job->fixed, job->dataset, options, &feed, err);
    if (code)
        return code;
    int64_t all = qdqi_feed_available(feed), first = job->calibrated_samples;
    int64_t fresh = all - first;
    qdqi_feed_close(&feed);
    *ret_bound = 2 * (first + (int64_t)job->to_evaluate);
    int64_t wanted = *ret_bound / TRIES;
    wanted = wanted < FEWEST ? FEWEST : wanted;
    wanted = wanted > all ? all : wanted;
    wanted = fresh > 0 && wanted > fresh ? fresh : wanted;
    options->first = fresh > 0 ? first : all - wanted;
    options->max_samples = wanted;
    return QDQ_OK;
}

static enum qdq_code
report(const struct recipe *r, const struct qdqi_group_search *h, struct qdq_error *err)
{
    struct qdqi_arena *arena = r->job->arena;
    struct qdq_recipe_report *to = qdqi_arena_alloc(arena, sizeof *to);
    struct qdq_recipe_step *steps = qdqi_arena_array(arena, h->n_steps, sizeof *steps);
    enum qdq_code code = to && steps ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; !code && i < h->n_steps; i++) {
        const struct qdqi_group_step *from = &h->steps[i];
        steps[i] = (struct qdq_recipe_step){
            .step = from->step, .sqnr_db = from->sqnr_db, .kept = from->kept};
        code = list_names(r, from->is_float, arena, &steps[i].layers,
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
carry_out(struct recipe *r, const bool *is_float, struct qdqi_scales *scales,
          struct qdq_error *err)
{
    struct qdqi_job *job = r->job;
    struct qdq_plan *before = job->plan;
    const char *const *names;
    size_t n;
    enum qdq_code code = list_names(r, is_float, job->arena, &names, &n, err);
    if (code || n == 0)
        return code;
    if ((code = qdqi_plan_leaving(job, names, n, REASON, err)))
        return code;
    qdq_plan_free(&before);
    return qdqi_choose_scales(job, scales, err);
}

static enum qdq_code
search(struct recipe *r, int64_t bound, struct qdqi_scales *scales,
       struct qdq_error *err)
{
    int64_t samples = qdqi_judge_samples(r->judge);
    int64_t most = samples > 0 ? bound / samples - 1 : 0;
    struct qdqi_group_search h = {.n = r->n,
                                  .costs = r->costs,
                                  .goal_db = good_db,
                                  .enough_db = usable_db,
                                  .max_scores = most > TRIES ? TRIES : (size_t)most,
                                  .arena = r->job->scratch,
                                  .arg = r,
                                  .score = score};
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
    struct recipe r = {.job = job, .scales = scales};
    struct qdqi_feed_options options = {.batch = qdqi_job_batch(job)};
    struct qdq_error why = {0};
    int64_t bound = 0;
    if (!is_judged(job))
        return QDQ_OK;
    enum qdq_code code = find_layers(&r, err);
    if (code || r.n == 0 || (code = choose_samples(job, &options, &bound, err)))
        return code;
    code = qdqi_judge_open(job, &options, &r.judge, &why);
    if (code == QDQ_RUNTIME_MISSING || code == QDQ_RUN_FAILED)
        return qdqi_warn(&job->warnings, job->arena, err, "recipe_not_judged", NULL,
                         "the recipe chose by the model alone: %s", why.text);
    if (code)
        return qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    code = search(&r, bound, scales, err);
    qdqi_judge_close(&r.judge);
    return code;
}
