/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/candidates/candidates.h"

#include "stages/evaluate/sample_choice.h"
#include "stages/attempt/roundings.h"
#include "files/model/model.h"
#include "plan/placement/target.h"
#include "numbers/range/outline.h"
#include "stages/attempt/leave.h"
#include "stages/scale/scale.h"

#include <math.h>
#include <string.h>

enum {
    USUAL_SAMPLES =
        4, /* samples that a candidate is judged by, where there are so many */
    SLOW_PART =
        2, /* of the samples of a slow runtime, of which few do not tell enough */
    LARGE_OUTPUT_SAMPLES = 2, /* the same where the outputs are large */
    METADATA_BYTES = 400 /* bytes of the result's metadata, which a candidate lacks */
};

/* --- the layers ------------------------------------------------------------ */

/* Returns whether the layer may stay in float: its plan does not only follow that of its
   neighbours, and it is selected by no entry and no case, unless those count, too. */
static bool
may_stay_float(const struct qdqi_candidates *r, const struct qdq_layer *layer)
{
    const struct qdqi_hooks *hooks = r->attempt->spec->target->hooks;
    return (layer->n_inputs > 0 || layer->weight_input >= 0) &&
           (r->selected || layer->reason_kind == QDQ_REASON_DEFAULT) &&
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
cost_of(const struct qdqi_attempt *a, const struct qdq_layer *layer)
{
    const struct qdqi_planned_weight *weights = a->plan->weights;
    if (layer->weight_input < 0)
        return 1;
    return elements_of(&weights[layer->weight_row]) +
           (weights[layer->weight_row].is_gates
                ? elements_of(&weights[layer->recurrent_row])
                : 0);
}

/* Returns the noise of some of the planned tensors by themselves, in parts of their signal. */
static double
noise_of(const struct qdqi_attempt *a, const struct qdqi_map *observers,
         const size_t *rows, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t leader = a->plan->activations[rows[i]].leader;
        const struct qdqi_planned_tensor *t = &a->plan->activations[leader];
        const struct qdqi_range_use use = {&a->spec->calibration, t->format,
                                           t->symmetric};
        const struct qdqi_observer *o =
            qdqi_map_get(observers, a->plan->view.tensors[leader]);
        sum += o ? qdqi_outline_noise(o, &use, &a->ranges[leader]) : 0;
    }
    return sum;
}

enum qdq_code
qdqi_candidates_find(struct qdqi_candidates *r, struct qdq_error *err)
{
    const struct qdq_plan_view *plan = &r->attempt->plan->view;
    r->names = qdqi_arena_array(r->result->arena, plan->n_layers + 1, sizeof *r->names);
    r->costs =
        qdqi_arena_array(r->result->scratch, plan->n_layers + 1, sizeof *r->costs);
    r->noise =
        qdqi_arena_array(r->result->scratch, plan->n_layers + 1, sizeof *r->noise);
    r->only_stored = qdqi_arena_array(r->result->scratch, plan->n_layers + 1,
                                      sizeof *r->only_stored);
    const struct qdqi_map *observers = qdqi_attempt_index_observers(r->attempt);
    if (!r->names || !r->costs || !r->noise || !r->only_stored || !observers)
        return qdqi_no_memory(err);
    qdqi_roundings_begin(r->attempt);
    for (size_t i = 0; i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        if (!may_stay_float(r, layer))
            continue;
        r->only_stored[r->n] = layer->n_inputs == 0;
        r->costs[r->n] = cost_of(r->attempt, layer);
        r->noise[r->n] =
            noise_of(r->attempt, observers, layer->input_rows, layer->n_inputs) +
            noise_of(r->attempt, observers, layer->output_rows, layer->n_outputs);
        r->names[r->n] = qdqi_arena_strdup(r->result->arena, layer->name);
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

/* Judges the candidate that the comparer judged last by the task. One that falls too much is as far
   below the goal as hundredths of the figure are too much. */
static enum qdq_code
try_task(const struct qdqi_candidates *r, const struct qdqi_attempt *a,
         struct qdqi_grade *ret, struct qdq_error *err)
{
    struct qdq_model *model = NULL;
    enum qdq_code code = qdqi_comparer_open_last(r->comparer, &model, err);
    if (!code)
        code = qdqi_task_try(r->task, a, model, &ret->task_drop, err);
    qdq_model_free(&model);
    if (!code && !(ret->task_drop <= r->max_drop))
        ret->sqnr_db = r->goal_db - 100 * (ret->task_drop - r->max_drop);
    return code;
}

void
qdqi_candidates_set_time(const struct qdqi_candidates *r, double latency_ratio,
                         struct qdqi_grade *grade)
{
    grade->latency_ratio = latency_ratio;
    grade->excess = fmax(excess_of(grade->size_ratio, r->max_size),
                         excess_of(latency_ratio, r->max_latency));
}

enum qdq_code
qdqi_candidates_grade(struct qdqi_candidates *r, const struct qdqi_attempt *a,
                      struct qdqi_grade *ret, struct qdq_error *err)
{
    double db;
    enum qdq_code code = qdqi_comparer_run(r->comparer, a, &db, err);
    if (code)
        return code;
    const struct qdqi_candidate_cost cost = qdqi_comparer_cost(r->comparer);
    const double before = (double)qdqi_model_bytes(a->context->original);
    *ret = (struct qdqi_grade){
        .sqnr_db = db,
        .output_db = db,
        .size_ratio = cost.bytes ? (double)(cost.bytes + METADATA_BYTES) / before : NAN,
        .task_drop = NAN,
        .samples = cost.samples,
        .is_float = a->plan->view.n_quantized == 0};
    qdqi_candidates_set_time(r, cost.latency_ratio, ret);
    if (qdqi_comparer_top1(r->comparer) < r->min_top1)
        ret->sqnr_db = fmin(ret->sqnr_db, r->goal_db - 1);
    return !r->task || ret->sqnr_db < r->goal_db ? QDQ_OK : try_task(r, a, ret, err);
}

struct qdqi_grade
qdqi_no_grade(const struct qdqi_candidates *r)
{
    bool bounded = !isnan(r->max_size) || !isnan(r->max_latency);
    return (struct qdqi_grade){.sqnr_db = -INFINITY,
                               .output_db = -INFINITY,
                               .excess = bounded ? INFINITY : 0,
                               .size_ratio = NAN,
                               .latency_ratio = NAN,
                               .task_drop = NAN};
}

/* Returns whether an error says only that a candidate cannot be made. */
static bool
is_of_candidate(enum qdq_code code)
{
    return code == QDQ_CASE_FAILED || code == QDQ_NOT_OBSERVED ||
           code == QDQ_UNSUPPORTED || code == QDQ_INVALID_SPEC ||
           code == QDQ_LIMIT_EXCEEDED;
}

/* Returns whether an error says only that a candidate does not run, or that the program did not that runs it. */
static bool
is_of_program(enum qdq_code code)
{
    return code == QDQ_RUN_FAILED || code == QDQ_RUNNER_FAILED ||
           code == QDQ_JUDGE_GONE || code == QDQ_RUNTIME_MISSING;
}

enum qdq_code
qdqi_candidates_outcome(const struct qdqi_candidates *r, enum qdq_code code,
                        const struct qdq_error *why, struct qdqi_grade *ret,
                        struct qdq_error *err)
{
    if (!is_of_candidate(code))
        return code ? qdq_error_set(err, code, why->kind, why->where, "%s", why->text)
                    : QDQ_OK;
    *ret = qdqi_no_grade(r);
    return QDQ_OK;
}

/* Makes a trial with some layers in float beside the attempt. *ret_any is whether there are any: the trial has no scales
   without, because it is the attempt. */
static enum qdq_code
make_trial(const struct qdqi_candidates *r, const bool *is_float,
           struct qdqi_attempt **ret, bool *ret_any, struct qdq_error *err)
{
    struct qdqi_left left = {.reason = r->reason};
    enum qdq_code code = qdqi_attempt_derive(r->attempt, ret, err);
    if (!code)
        code =
            qdqi_candidates_list(r, is_float, (*ret)->arena, &left.names, &left.n, err);
    if (!code && left.n > 0 && !(code = qdqi_attempt_leave(*ret, &left, err)))
        code = qdqi_choose_scales(*ret, err);
    *ret_any = left.n > 0;
    return code;
}

/* Makes such a trial, and judges it. */
static enum qdq_code
try_leaving(struct qdqi_candidates *r, const bool *is_float, struct qdqi_grade *ret,
            struct qdq_error *err)
{
    struct qdqi_attempt *trial = NULL;
    bool any = false;
    enum qdq_code code = make_trial(r, is_float, &trial, &any, err);
    if (!code)
        code = qdqi_candidates_grade(r, any ? trial : r->attempt, ret, err);
    qdqi_attempt_free(&trial);
    return code;
}

enum qdq_code
qdqi_candidates_time(const struct qdqi_candidates *r, const bool *is_float, double *ret,
                     struct qdq_error *err)
{
    struct qdqi_attempt *trial = NULL;
    struct qdq_error why = {0};
    struct qdqi_grade none;
    bool any = false;
    *ret = NAN;
    enum qdq_code code = qdqi_context_still_wanted(r->attempt->context, err);
    if (code || !qdqi_comparer_measures(r->comparer))
        return code;
    if (!(code = make_trial(r, is_float, &trial, &any, &why)))
        code =
            qdqi_comparer_time_again(r->comparer, any ? trial : r->attempt, ret, &why);
    qdqi_attempt_free(&trial);
    if (is_of_program(code))
        code = QDQ_OK;
    return qdqi_candidates_outcome(r, code, &why, &none, err);
}

enum qdq_code
qdqi_candidates_score(void *arg, const bool *is_float, struct qdqi_grade *ret,
                      struct qdq_error *err)
{
    struct qdq_error why = {0};
    const enum qdq_code code = try_leaving(arg, is_float, ret, &why);
    return qdqi_candidates_outcome(arg, code, &why, ret, err);
}

/* --- samples --------------------------------------------------------------- */

enum qdq_code
qdqi_candidates_samples(const struct qdqi_attempt *a, int64_t times,
                        struct qdqi_feed_options *options, int64_t *ret_bound,
                        struct qdq_error *err)
{
    struct qdqi_feed *feed = NULL;
    enum qdq_code code =
        qdqi_feed_open(&a->fixed, a->context->dataset, options, &feed, err);
    if (code)
        return code;
    int64_t all = qdqi_feed_available(feed), first = a->calibrated.samples;
    int64_t fresh = all - first;
    qdqi_feed_close(&feed);
    *ret_bound = 2 * times * (first + (int64_t)a->context->account->to_evaluate);
    int64_t wanted = *ret_bound / QDQI_CANDIDATES;
    wanted = wanted < USUAL_SAMPLES ? USUAL_SAMPLES : wanted;
    const int64_t most = a->spec->target->judged_samples / SLOW_PART;
    if (most > 0) {
        *ret_bound = *ret_bound * most / wanted;
        wanted = most;
    }
    /* Fewer samples of large outputs leave as many candidates. */
    const int64_t few = qdqi_enough_samples(a, wanted, LARGE_OUTPUT_SAMPLES);
    *ret_bound = few < wanted ? *ret_bound * few / wanted : *ret_bound;
    wanted = few > all ? all : few;
    const bool enough = fresh >= USUAL_SAMPLES || fresh >= wanted;
    wanted = enough && wanted > fresh ? fresh : wanted;
    options->first = enough ? first : all - wanted;
    options->max_samples = wanted;
    return QDQ_OK;
}
