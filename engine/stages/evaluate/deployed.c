/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/deployed.h"

#include "ground/base/host.h"
#include "stages/evaluate/last_candidate.h"
#include "stages/evaluate/kernels/counted_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum qdq_code
qdqi_deployed_warn(const struct qdqi_attempt *a, const char *why, struct qdq_error *err)
{
    return qdqi_attempt_warn(
        a, err, "deployed_not_measured", NULL,
        "the result was not run with the target's kernels, and the "
        "figures are those of the literal arithmetic: %s",
        why);
}

/* Returns whether the model is made for other processors than this one. A runtime that programs
   of the operator's alone have does not run on this processor. */
static bool
is_for_others(const struct qdq_spec *spec)
{
    return spec->host >= 0 && spec->host != qdqi_host_here() &&
           !qdq_host_is_accelerator(spec->host) &&
           qdq_runtime_find(spec->target->runtime);
}

/* Returns the words of the target's runtime about itself; NULL: it is not there, or says
   nothing. */
static const struct qdq_runtime_about *
about_runtime(const struct qdqi_context *c)
{
    struct qdqi_deploy deploy;
    struct qdq_error missing = {0};
    const char *name = c->asked->target->runtime;
    return qdqi_engine_ops(c->engine, name) &&
                   !qdqi_engine_deploy(c->engine, name, &deploy, &missing)
               ? qdqi_deploy_about(&deploy)
               : NULL;
}

bool
qdqi_deployed_only_plans(const struct qdqi_context *c)
{
    const struct qdq_runtime_about *about = about_runtime(c);
    return about && about->only_plans;
}

const struct qdqi_deploy_ops *
qdqi_judging_ops(const struct qdqi_context *c)
{
    return qdqi_deployed_only_plans(c)
               ? NULL
               : qdqi_engine_ops(c->engine, c->asked->target->runtime);
}

enum qdq_code
qdqi_deployed_runtime(const struct qdqi_context *c, struct qdqi_deploy *ret,
                      struct qdq_error *err)
{
    enum qdq_code code =
        qdqi_engine_deploy(c->engine, c->asked->target->runtime, ret, err);
    const struct qdq_runtime_about *about = code ? NULL : qdqi_deploy_about(ret);
    return about && about->only_plans
               ? qdq_error_set(err, QDQ_RUNTIME_MISSING, QDQ_AT_NOTHING, NULL,
                               "the runner '%.32s' plans kernels and runs nothing: it "
                               "has no device (%.64s)",
                               about->runner, about->device)
               : code;
}

bool
qdqi_deployed_runs(const struct qdqi_context *c)
{
    struct qdqi_deploy deploy;
    struct qdq_error missing = {0};
    return c->asked->target->runtime && !is_for_others(c->asked) &&
           qdqi_deployed_runtime(c, &deploy, &missing) == QDQ_OK;
}

/*
 * Opens a model in the target's runtime, once more where the process that judges has ended.
 * RUN_FAILED where the runtime crashed both times. Where the model is the result, its kernels
 * may be counted; NULL: it is not.
 */
static enum qdq_code
open_model(const struct qdqi_context *c, struct qdqi_result *result,
           const struct qdq_model *model, const struct qdqi_deploy_options *options,
           struct qdqi_deployed_model *ret, struct qdq_error *err)
{
    enum qdq_code code = QDQ_JUDGE_GONE;
    struct qdq_error why = {0};
    for (int i = 0; code == QDQ_JUDGE_GONE && i < 2; i++) {
        struct qdqi_deploy deploy;
        why = (struct qdq_error){0};
        code = qdqi_engine_deploy(c->engine, c->asked->target->runtime, &deploy, &why);
        if (!code)
            code = result ? qdqi_deploy_counted(c, result, &deploy, model, options, ret,
                                                &why)
                          : qdqi_deploy_model(&deploy, model, options, ret, &why);
    }
    const char *crash = qdqi_engine_crash(c->engine, c->asked->target->runtime);
    if (code == QDQ_JUDGE_GONE && *crash)
        return qdq_error_set(err, QDQ_RUN_FAILED, QDQ_AT_NOTHING, NULL,
                             "it crashed twice: its process %s", crash);
    return code ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
                : QDQ_OK;
}

bool
qdqi_costs_figures(enum qdq_code code)
{
    return code == QDQ_RUNTIME_MISSING || code == QDQ_JUDGE_GONE ||
           code == QDQ_UNSUPPORTED;
}

/* Returns whether the job runs a model in the target's runtime. */
static bool
runs_models(const struct qdq_spec *spec)
{
    return spec->evaluate != QDQ_NO || spec->recipe >= QDQ_RECIPE_AUTO ||
           spec->profile.runs > 0 || qdq_spec_searches(spec);
}

/* Opens the model that was given. */
static enum qdq_code
try_given(const struct qdqi_context *c, bool reads_only, struct qdq_error *err)
{
    const struct qdqi_deploy_ops *ops =
        qdqi_engine_ops(c->engine, c->asked->target->runtime);
    const struct qdqi_deploy_options options = {.reads_only = reads_only};
    struct qdqi_deployed_model model = {0};
    struct qdq_error why = {0};
    if (!ops || ops->calibrates || !runs_models(c->asked))
        return QDQ_OK;
    enum qdq_code code = open_model(c, NULL, c->original, &options, &model, &why);
    qdqi_deployed_model_close(&model);
    if (!code || qdqi_costs_figures(code))
        return QDQ_OK;
    return code != QDQ_RUN_FAILED
               ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
               : qdq_error_set(err, QDQ_CANNOT_LOAD, QDQ_AT_NOTHING, NULL,
                               "%s cannot load the model that was given: %s",
                               ops->row->title, why.text);
}

enum qdq_code
qdqi_deployed_check(const struct qdqi_context *c, struct qdq_error *err)
{
    const bool judges = c->work->dataset >= 0 && c->asked->evaluate != QDQ_NO;
    return try_given(c, judges, err);
}

enum qdq_code
qdqi_deployed_check_given(const struct qdqi_context *c, struct qdq_error *err)
{
    if (c->last_candidate->is_given_loaded)
        return QDQ_OK;
    enum qdq_code code = try_given(c, false, err);
    c->last_candidate->is_given_loaded = !code;
    return code;
}

static enum qdq_code
warn_other_host(const struct qdqi_attempt *a, struct qdq_error *err)
{
    char text[160];
    snprintf(text, sizeof text, "the model is made for %s, and this processor is %s",
             qdqi_host_row(a->spec->host)->name, qdqi_host_row(qdqi_host_here())->name);
    return qdqi_deployed_warn(a, text, err);
}

enum qdq_code
qdqi_deployed_load(const struct qdqi_attempt *a, struct qdqi_result *result,
                   const struct qdq_model *quantized, struct qdqi_deployed_model *ret,
                   struct qdq_error *err)
{
    const struct qdqi_deploy_options options = {.traced = true};
    struct qdq_error why = {0};
    enum qdq_code code = open_model(a->context, result, quantized, &options, ret, &why);
    if (code && code != QDQ_RUN_FAILED)
        return qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    enum qdq_code given = code ? qdqi_deployed_check_given(a->context, err) : QDQ_OK;
    if (given)
        return given;
    return code ? qdq_error_set(err, QDQ_CANNOT_LOAD, QDQ_AT_NOTHING, NULL,
                                "the result is valid, and the runtime of target %s "
                                "cannot load it: %s",
                                a->spec->target->name, why.text)
                : QDQ_OK;
}

enum qdq_code
qdqi_deployed_open(const struct qdqi_attempt *a, struct qdqi_result *result,
                   const struct qdq_model *quantized, struct qdqi_deployed_model *ret,
                   struct qdq_error *err)
{
    struct qdqi_deploy deploy;
    struct qdq_error why = {0};
    *ret = (struct qdqi_deployed_model){0};
    if (!qdqi_engine_ops(a->context->engine, a->spec->target->runtime))
        return QDQ_OK;
    if (is_for_others(a->spec))
        return warn_other_host(a, err);
    if (a->float16.dtype == QDQI_BFLOAT16)
        return qdqi_deployed_warn(a, "bfloat16 does not run here", err);
    if (qdqi_last_candidate_take(a->context, quantized, ret))
        return QDQ_OK;
    enum qdq_code code = qdqi_deployed_only_plans(a->context)
                             ? qdqi_deployed_runtime(a->context, &deploy, &why)
                             : qdqi_deployed_load(a, result, quantized, ret, &why);
    if (qdqi_costs_figures(code))
        return qdqi_deployed_warn(a, why.text, err);
    return code ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
                : QDQ_OK;
}

enum qdq_code
qdqi_deployed_report(const struct qdqi_attempt *a, struct qdqi_result *result,
                     const struct qdq_output_report *outputs, size_t n,
                     struct qdq_error *err)
{
    struct qdqi_deploy deploy;
    enum qdq_code code = qdqi_deployed_runtime(a->context, &deploy, err);
    if (code)
        return code;
    struct qdq_deployed *r = qdqi_arena_alloc(a->arena, sizeof *r);
    const struct qdq_runtime_about *about = qdqi_deploy_about(&deploy);
    char processor[64];
    qdqi_host_processor(processor, sizeof processor);
    if (!r)
        return qdqi_no_memory(err);
    *r = (struct qdq_deployed){
        .processor = qdqi_arena_strdup(a->arena, processor),
        .runtime = qdqi_arena_strdup(a->arena, qdqi_deploy_name(&deploy)),
        .version = qdqi_arena_strdup(a->arena, deploy.ops->version(deploy.place)),
        .device = about ? qdqi_arena_strdup(a->arena, about->device) : NULL,
        .n_outputs = n,
        .outputs = outputs,
    };
    if ((about && !r->device) || !r->processor || !r->runtime || !r->version)
        return qdqi_no_memory(err);
    result->report->deployed = r;
    return QDQ_OK;
}

/* --- float16 ---------------------------------------------------------------- */

/* A session that has so much less than the literal arithmetic, and less than what rounding to
   float16 leaves, computes something else. */
static const double broken_by_db = 6, sound_db = 30;

/* Returns whether an activation with a pair has this type. */
static bool
has_pairs_of(const struct qdqi_attempt *a, enum qdqi_dtype dtype)
{
    for (size_t i = 0; i < a->plan->view.n_tensors; i++)
        if (a->plan->activations[i].dtype == dtype)
            return true;
    return false;
}

/* Returns whether the runtime runs 8-bit integers, and not float16 as well: it breaks floats of
   8 bits by itself. */
static bool
has_integer_pairs_alone(const struct qdqi_attempt *a)
{
    for (size_t i = 0; i < a->plan->view.n_tensors; i++)
        if (qdqi_format_row((int)a->plan->activations[i].format)->fraction_bits > 0)
            return false;
    return true;
}

/* Returns whether a difference to the literal arithmetic is that of float16: where sums of
   8 bits saturate, layers that stay float32 may differ, too. */
bool
qdqi_halves_matter(const struct qdqi_attempt *a)
{
    const bool saturates = qdqi_host_row(qdqi_host_here())->adds_in_16_bits;
    const bool halves =
        a->float16.dtype == QDQI_FLOAT16 || has_pairs_of(a, QDQI_FLOAT16);
    return halves && !a->context->dev && a->float16.dtype != QDQI_BFLOAT16 &&
           has_integer_pairs_alone(a) && !(saturates && has_pairs_of(a, QDQI_FLOAT32));
}

enum qdq_code
qdqi_halves_open(const struct qdqi_attempt *a, const struct qdq_model *quantized,
                 const struct qdqi_deployed_model *deployed,
                 struct qdqi_deployed_model *ret, struct qdq_error *err)
{
    const struct qdqi_deploy_options options = {0};
    struct qdqi_deploy deploy;
    *ret = (struct qdqi_deployed_model){0};
    if (!qdqi_halves_matter(a) || (deployed->ops && deployed->ops->checks_float16))
        return QDQ_OK;
    struct qdq_error why = {0};
    enum qdq_code code = qdqi_engine_deploy_literal(a->context->engine, &deploy, &why);
    if (!code)
        code = qdqi_deploy_model(&deploy, quantized, &options, ret, &why);
    if (code == QDQ_RUN_FAILED)
        return qdq_error_set(
            err, QDQ_UNSUPPORTED, QDQ_AT_NOTHING, NULL,
            "ONNX Runtime cannot load this result with float16 with its "
            "optimizations: %s",
            why.text);
    return code ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
                : QDQ_OK;
}

static const struct qdq_output_report *
find_output(const struct qdq_output_report *outputs, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(outputs[i].name, name) == 0)
            return &outputs[i];
    return NULL;
}

enum qdq_code
qdqi_halves_check(const struct qdqi_attempt *a, const struct qdq_output_report *literal,
                  size_t n, const struct qdq_output_report *ran, size_t n_ran,
                  struct qdq_error *err)
{
    const bool asked = a->spec->float_type == QDQ_FLOAT_FLOAT16;
    for (size_t i = 0; i < n && qdqi_halves_matter(a); i++) {
        const struct qdq_output_report *o = find_output(ran, n_ran, literal[i].name);
        if (!o || !(literal[i].sqnr_db > -INFINITY) || o->sqnr_db >= sound_db ||
            o->sqnr_db >= literal[i].sqnr_db - broken_by_db)
            continue;
        return qdq_error_set(
            err, QDQ_UNSUPPORTED, asked ? QDQ_AT_POINTER : QDQ_AT_NOTHING,
            asked ? "/float" : NULL,
            "ONNX Runtime's optimizations break this result with float16: the output "
            "'%.60s' has %.1f dB in a plain session, and %.1f dB as the operators are "
            "defined; %s",
            o->name, o->sqnr_db, literal[i].sqnr_db,
            asked ? "with \"float\": \"keep\" it runs"
                  : "quantize the model of float32 instead");
    }
    return QDQ_OK;
}
