/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/goals.h"

#include "plan/gates/gates.h"
#include "plan/gates/judged.h"

#include <math.h>

/* The quality that a recipe wants whose spec has no goal for the outputs. */
static const double good_db = 25;

/* The quality that goes with a goal for top-1 agreement or the task alone. */
static const double least_db = 0;

bool
qdqi_goals_ask_for_accuracy(const struct qdq_spec *spec)
{
    return !isnan(spec->recipe_sqnr_db) || !isnan(spec->recipe_top1_agreement) ||
           !isnan(spec->recipe_task_drop);
}

bool
qdqi_goals_have_bounds(const struct qdq_spec *spec)
{
    return !isnan(spec->recipe_size_ratio) || !isnan(spec->recipe_bytes) ||
           !isnan(spec->recipe_latency_ratio);
}

double
qdqi_goals_max_size(const struct qdqi_context *c)
{
    const double before = (double)qdqi_model_bytes(c->original);
    return fmin(c->asked->recipe_size_ratio, c->asked->recipe_bytes / before);
}

double
qdqi_goals_sqnr_db(const struct qdq_spec *spec)
{
    if (!isnan(spec->recipe_sqnr_db))
        return spec->recipe_sqnr_db;
    return isnan(spec->recipe_top1_agreement) && isnan(spec->recipe_task_drop)
               ? good_db
               : least_db;
}

bool
qdqi_goals_cost_time(const struct qdq_spec *asked,
                     const struct qdq_recipe_report *recipe)
{
    const double goal = qdqi_goals_sqnr_db(asked);
    for (size_t i = 0; recipe && i < recipe->n_steps; i++) {
        const struct qdq_recipe_step *step = &recipe->steps[i];
        if (step->samples > 0 && step->sqnr_db >= goal && step->latency_ratio >= 1)
            return true;
    }
    return false;
}

static enum qdq_code
warn_size(const struct qdqi_attempt *a, struct qdqi_result *result, double bound,
          struct qdq_error *err)
{
    struct qdq_report *r = result->report;
    const double before = (double)qdqi_model_bytes(a->context->original);
    const double ratio = before > 0 ? (double)r->size_after / before : NAN;
    if (isnan(bound) || ratio <= bound)
        return QDQ_OK;
    r->recipe_missed = true;
    return qdqi_attempt_warn(
        a, err, "recipe_goal_missed", NULL,
        "the bound for the size, %.4g of the model's, is missed: the best that was "
        "found has %.4g of the size",
        bound, ratio);
}

static enum qdq_code
warn_latency(const struct qdqi_attempt *a, struct qdqi_result *result, double bound,
             struct qdq_error *err)
{
    struct qdq_report *r = result->report;
    if (isnan(bound) || (r->profile && r->profile->ratio <= bound))
        return QDQ_OK;
    r->recipe_missed = true;
    if (!r->profile)
        return qdqi_attempt_warn(a, err, "recipe_goal_missed", NULL,
                                 "max_latency_ratio %.4g: the latency was not measured",
                                 bound);
    return qdqi_attempt_warn(
        a, err, "recipe_goal_missed", NULL,
        "max_latency_ratio %.4g is missed: the best that was found takes "
        "%.4g of the time of the float model",
        bound, r->profile->ratio);
}

/* Warns where the goal was reached on the samples of the recipe, and the evaluation has
   less. */
static enum qdq_code
warn_accuracy(const struct qdqi_attempt *a, struct qdqi_result *result,
              const struct qdq_spec *spec, struct qdq_error *err)
{
    struct qdq_report *r = result->report;
    size_t n;
    const struct qdq_output_report *outputs = qdqi_deciding_outputs(r, &n);
    for (size_t i = 0; i < n && !r->recipe_missed; i++) {
        const struct qdq_output_report *o = &outputs[i];
        const double db = qdqi_judged_sqnr(o);
        const bool noisy = db < spec->recipe_sqnr_db;
        if (!noisy &&
            (o->lacks_classes || !(o->top1_agreement < spec->recipe_top1_agreement)))
            continue;
        r->recipe_missed = true;
        return qdqi_attempt_warn(
            a, err, "recipe_goal_missed", NULL,
            "the goal of the recipe is missed on the %lld samples of the "
            "evaluation: the output '%.60s' has %.4g%s",
            (long long)r->evaluated_samples, o->name, noisy ? db : o->top1_agreement,
            noisy ? " dB" : " of top-1 agreement");
    }
    return QDQ_OK;
}

static enum qdq_code
warn_task(const struct qdqi_attempt *a, struct qdqi_result *result, double bound,
          struct qdq_error *err)
{
    struct qdq_report *r = result->report;
    if (isnan(bound) || !r->task || r->task->drop <= bound)
        return QDQ_OK;
    r->recipe_missed = true;
    return qdqi_attempt_warn(
        a, err, "recipe_goal_missed", NULL,
        "max_task_drop %.4g is missed: the figure of the best that "
        "was found falls by %.4g",
        bound, r->task->drop);
}

enum qdq_code
qdqi_goals_conclude(const struct qdqi_attempt *a, struct qdqi_result *result,
                    struct qdq_error *err)
{
    const struct qdq_spec *spec = a->context->asked;
    if (spec->recipe < QDQ_RECIPE_AUTO)
        return QDQ_OK;
    enum qdq_code code = warn_accuracy(a, result, spec, err);
    if (!code)
        code = warn_task(a, result, spec->recipe_task_drop, err);
    if (!code)
        code = warn_size(a, result, qdqi_goals_max_size(a->context), err);
    return code ? code : warn_latency(a, result, spec->recipe_latency_ratio, err);
}

enum qdq_code
qdqi_warn_goal_missed(const struct qdqi_candidates *c, const struct qdqi_grade *best,
                      struct qdq_error *err)
{
    if (!qdqi_goals_ask_for_accuracy(c->attempt->context->asked) ||
        best->sqnr_db >= c->goal_db)
        return QDQ_OK;
    c->result->report->recipe_missed = true;
    if (!isnan(best->task_drop)) /* the conclusion warns of the result's own figure */
        return QDQ_OK;
    return qdqi_attempt_warn(
        c->attempt, err, "recipe_goal_missed", NULL,
        "the goal of the recipe was not reached on %lld samples: the worst "
        "output has %.4g dB",
        (long long)qdqi_comparer_samples(c->comparer), best->output_db);
}

enum qdq_code
qdqi_warn_not_judged(const struct qdqi_candidates *c, const struct qdqi_grade *best,
                     struct qdq_error *err)
{
    struct qdqi_attempt *a = c->attempt;
    if (best->sqnr_db != -INFINITY)
        return QDQ_OK;
    return qdqi_attempt_warn(
        a, err, "recipe_not_judged", NULL,
        "the recipe chose by the model alone: no result that it tried runs "
        "and has an output that is finite and has as many elements as the "
        "float model's");
}

enum qdq_code
qdqi_goals_check(const struct qdqi_candidates *r, struct qdq_error *err)
{
    double db;
    enum qdq_code code = isnan(r->min_top1)
                             ? QDQ_OK
                             : qdqi_comparer_run(r->comparer, r->attempt, &db, err);
    if (code || isnan(r->min_top1) || !isnan(qdqi_comparer_top1(r->comparer)))
        return code;
    return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER,
                         "/recipe/min_top1_agreement",
                         "no floating output lists classes, whose largest could agree");
}
