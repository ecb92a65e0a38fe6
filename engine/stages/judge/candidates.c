/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/judge/candidates.h"

#include "stages/evaluate/enough.h"
#include "stages/job/roundings.h"
#include "files/model/model.h"
#include "files/model/write.h"
#include "plan/placement/target.h"
#include "numbers/range/outline.h"
#include "stages/replan/replan.h"
#include "stages/scale/scale.h"

#include <math.h>
#include <string.h>

enum {
    FEWEST = 4,    /* samples that a candidate is judged by, where there are so many */
    LEAST = 2,     /* the same where the outputs are large */
    METADATA = 400 /* bytes of the result's metadata, which a candidate lacks */
};

/* --- the layers ------------------------------------------------------------ */

/* Returns whether the layer may stay in float: its plan does not only follow that of its
   neighbours, and it is selected by no entry and no case, unless those count, too. */
static bool
may_stay_float(const struct qdqi_candidates *r, const struct qdq_layer *layer)
{
    const struct qdqi_hooks *hooks = r->job->work->spec->target->hooks;
    return (layer->n_inputs > 0 || layer->weight_input >= 0) &&
           (r->selected || strncmp(layer->reason, "default", strlen("default")) == 0) &&
           !(hooks->follows && hooks->follows(layer));
}

static double
elements_of(const struct qdqi_planned_weight *w)
{
    const struct qdqi_view *view = &w->tensor->view;
    double n = 1;
    for (size_t i = 0; i < view->rank; i++)
        n *= (double)view->dims[i];
    return n;
}

/* Returns an estimate of the layer's multiplications, in proportion to those of other
   layers: the number of elements of its weights. */
static double
cost_of(const struct qdqi_job *job, const struct qdq_layer *layer)
{
    const struct qdqi_planned_weight *weights = job->plan->weights;
    if (layer->weight_input < 0)
        return 1;
    return elements_of(&weights[layer->weight_row]) +
           (weights[layer->weight_row].is_gates
                ? elements_of(&weights[layer->recurrent_row])
                : 0);
}

/* Returns the observers of the calibration by the names of their tensors; NULL when out of
   memory. */
static struct qdqi_map *
index_observers(const struct qdqi_job *job)
{
    struct qdqi_map *map = qdqi_map_new(job->scratch);
    for (size_t i = 0; map && job->observers && i < job->observers->n; i++) {
        struct qdqi_observer *row = &job->observers->rows[i];
        if (!qdqi_map_put(map, row->tensor, row))
            return NULL;
    }
    return map;
}

/* Returns the noise of some of the planned tensors by themselves, in parts of their signal. */
static double
noise_of(const struct qdqi_job *job, const struct qdqi_map *observers,
         const size_t *rows, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t leader = job->plan->activations[rows[i]].leader;
        const struct qdqi_planned_tensor *t = &job->plan->activations[leader];
        const struct qdqi_range_use use = {&job->work->spec->calibration, t->format,
                                           t->symmetric};
        const struct qdqi_observer *o =
            qdqi_map_get(observers, job->plan->view.tensors[leader]);
        sum += o ? qdqi_outline_noise(o, &use, &job->ranges[leader]) : 0;
    }
    return sum;
}

enum qdq_code
qdqi_candidates_find(struct qdqi_candidates *r, struct qdq_error *err)
{
    const struct qdq_plan_view *plan = &r->job->plan->view;
    r->names = qdqi_arena_array(r->job->arena, plan->n_layers + 1, sizeof *r->names);
    r->costs = qdqi_arena_array(r->job->scratch, plan->n_layers + 1, sizeof *r->costs);
    r->noise = qdqi_arena_array(r->job->scratch, plan->n_layers + 1, sizeof *r->noise);
    const struct qdqi_map *observers = index_observers(r->job);
    if (!r->names || !r->costs || !r->noise || !observers)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_roundings_begin(r->job, err);
    if (code)
        return code;
    for (size_t i = 0; i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        if (!may_stay_float(r, layer))
            continue;
        r->costs[r->n] = cost_of(r->job, layer);
        r->noise[r->n] =
            noise_of(r->job, observers, layer->input_rows, layer->n_inputs) +
            noise_of(r->job, observers, layer->output_rows, layer->n_outputs);
        r->names[r->n] = qdqi_arena_strdup(r->job->arena, layer->name);
        if (!r->names[r->n++])
            return qdqi_no_memory(err);
    }
    return QDQ_OK;
}

enum qdq_code
qdqi_candidates_list(const struct qdqi_candidates *r, const bool *is_float,
                     struct qdqi_arena *arena, const char *const **ret, size_t *ret_n,
                     struct qdq_error *err)
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

/* Returns the ratio of a figure to its bound; 0 where there is no bound. */
static double
excess_of(double value, double bound)
{
    if (isnan(bound))
        return 0;
    return isnan(value) ? INFINITY : value / bound;
}

enum qdq_code
qdqi_candidates_judge(struct qdqi_candidates *r, const struct qdqi_scales *scales,
                      struct qdqi_grade *ret, struct qdq_error *err)
{
    double db;
    enum qdq_code code = qdqi_judge_run(r->judge, scales, &db, err);
    if (code)
        return code;
    const struct qdqi_judged_cost cost = qdqi_judge_cost(r->judge);
    const double before = (double)qdqi_model_bytes(r->job->original);
    *ret = (struct qdqi_grade){
        .sqnr_db = db,
        .size_ratio = cost.bytes ? (double)(cost.bytes + METADATA) / before : NAN,
        .latency_ratio = cost.latency_ratio,
        .samples = cost.samples,
        .is_float = r->job->plan->view.n_quantized == 0};
    ret->excess = fmax(excess_of(ret->size_ratio, r->max_size),
                       excess_of(ret->latency_ratio, r->max_latency));
    if (qdqi_judge_top1(r->judge) < r->min_top1)
        ret->sqnr_db = fmin(ret->sqnr_db, r->goal_db - 1);
    return QDQ_OK;
}

static enum qdq_code
try_names(struct qdqi_candidates *r, const char *const *names, size_t n,
          struct qdqi_grade *ret, struct qdq_error *err)
{
    struct qdqi_scales scales = {0};
    enum qdq_code code = qdqi_plan_leaving(r->job, names, n, r->reason, err);
    if (!code)
        code = qdqi_choose_scales(r->job, &scales, err);
    return code ? code : qdqi_candidates_judge(r, &scales, ret, err);
}

struct qdqi_grade
qdqi_no_grade(const struct qdqi_candidates *r)
{
    bool bounded = !isnan(r->max_size) || !isnan(r->max_latency);
    return (struct qdqi_grade){.sqnr_db = -INFINITY,
                               .excess = bounded ? INFINITY : 0,
                               .size_ratio = NAN,
                               .latency_ratio = NAN};
}

bool
qdqi_is_of_candidate(enum qdq_code code)
{
    return code == QDQ_INTERNAL || code == QDQ_CASE_FAILED || code == QDQ_UNSUPPORTED ||
           code == QDQ_INVALID_SPEC;
}

/* The job is as before when this returns: a trial makes everything in an arena of its
   own. */
enum qdq_code
qdqi_candidates_score(void *arg, const bool *is_float, struct qdqi_grade *ret,
                      struct qdq_error *err)
{
    struct qdqi_candidates *r = arg;
    struct qdqi_job *job = r->job;
    const struct qdqi_job before = *job;
    const struct qdq_report view = job->report->view;
    const char *const *names = NULL;
    struct qdq_error why = {0};
    size_t n = 0;
    job->arena = job->scratch = qdqi_arena_new();
    /* The trial's warnings are its own: the choice of scales changes the list in place. */
    job->warnings = (struct qdqi_warnings){0};
    job->first_scale_warning = job->n_scale_warnings = 0;
    enum qdq_code code =
        job->arena ? qdqi_candidates_list(r, is_float, job->arena, &names, &n, &why)
                   : qdqi_no_memory(&why);
    if (!code)
        code = n > 0 ? try_names(r, names, n, ret, &why)
                     : qdqi_candidates_judge(r, r->scales, ret, &why);
    if (job->plan != before.plan)
        qdq_plan_free(&job->plan);
    qdqi_arena_free(&job->scratch);
    *job = before;
    job->report->plan = before.plan;
    job->report->view = view;
    if (qdqi_is_of_candidate(code)) {
        *ret = qdqi_no_grade(r);
        return QDQ_OK;
    }
    return code ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
                : QDQ_OK;
}

/* --- samples --------------------------------------------------------------- */

enum qdq_code
qdqi_candidates_samples(const struct qdqi_job *job, int64_t times,
                        struct qdqi_feed_options *options, int64_t *ret_bound,
                        struct qdq_error *err)
{
    struct qdqi_feed *feed = NULL;
    enum qdq_code code = qdqi_feed_open(&job->fixed, job->dataset, options, &feed, err);
    if (code)
        return code;
    int64_t all = qdqi_feed_available(feed), first = job->calibrated_samples;
    int64_t fresh = all - first;
    qdqi_feed_close(&feed);
    *ret_bound = 2 * times * (first + (int64_t)job->to_evaluate);
    int64_t wanted = *ret_bound / QDQI_CANDIDATES;
    wanted = wanted < FEWEST ? FEWEST : wanted;
    /* Fewer samples of large outputs leave as many candidates. */
    const int64_t few = qdqi_enough_samples(job, wanted, LEAST);
    *ret_bound = few < wanted ? *ret_bound * few / wanted : *ret_bound;
    wanted = few > all ? all : few;
    const bool enough = fresh >= FEWEST || fresh >= wanted;
    wanted = enough && wanted > fresh ? fresh : wanted;
    options->first = enough ? first : all - wanted;
    options->max_samples = wanted;
    return QDQ_OK;
}
