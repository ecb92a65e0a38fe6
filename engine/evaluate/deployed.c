/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "evaluate/deployed.h"

#include "base/host.h"
#include "evaluate/kernels.h"
#include "qdq/targets.h"

#include <math.h>
#include <stdio.h>

enum qdq_code
qdqi_deployed_warn(struct qdqi_job *job, const char *why, struct qdq_error *err)
{
    return qdqi_warn(&job->warnings, job->arena, err, "deployed_not_measured", NULL,
                     "the result was not run with the target's kernels, and the "
                     "figures are those of the literal arithmetic: %s",
                     why);
}

/* Writes the reason why the result does not run here as deployed. Returns false if
   there is none. */
static bool
is_hindered(const struct qdqi_job *job, char *why, size_t size)
{
    const enum qdq_host host = job->work->spec->host, here = qdqi_host_here();
    if (host >= 0 && host != here)
        snprintf(why, size, "the model is made for %s, and this processor is %s",
                 qdqi_host_row(host)->name, qdqi_host_row(here)->name);
    else if (job->unconverted.proto)
        snprintf(why, size, "bfloat16 does not run here");
    else
        return false;
    return true;
}

enum qdq_code
qdqi_deployed_runtime(const struct qdqi_job *job, struct qdqi_deploy *ret,
                      struct qdq_error *err)
{
    return qdqi_engine_deploy(job->engine, job->work->spec->target->runtime, ret, err);
}

bool
qdqi_deployed_runs(const struct qdqi_job *job)
{
    char why[160];
    struct qdqi_deploy deploy;
    struct qdq_error missing = {0};
    return job->work->spec->target->runtime && !is_hindered(job, why, sizeof why) &&
           qdqi_deployed_runtime(job, &deploy, &missing) == QDQ_OK;
}

/* Opens a model in the target's runtime, once more where the process that judges has ended. */
static enum qdq_code
open_model(struct qdqi_job *job, const struct qdq_model *model,
           struct qdqi_deployed_model *ret, struct qdq_error *err)
{
    const struct qdqi_deploy_options options = {0};
    enum qdq_code code = QDQ_JUDGE_GONE;
    struct qdq_error why = {0};
    for (int i = 0; code == QDQ_JUDGE_GONE && i < 2; i++) {
        struct qdqi_deploy deploy;
        why = (struct qdq_error){0};
        code = qdqi_deployed_runtime(job, &deploy, &why);
        if (!code)
            code = qdqi_deploy_counted(job, &deploy, model, &options, ret, &why);
    }
    return code ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
                : QDQ_OK;
}

/* Returns whether an error costs the figures as deployed alone: it says nothing about the
   model. */
static bool
costs_figures(enum qdq_code code)
{
    return code == QDQ_RUNTIME_MISSING || code == QDQ_JUDGE_GONE ||
           code == QDQ_UNSUPPORTED;
}

/* Returns whether the job runs a model in the target's runtime. */
static bool
runs_models(const struct qdq_spec *spec)
{
    return spec->evaluate != QDQ_NO || spec->recipe >= QDQ_RECIPE_AUTO ||
           spec->profile.runs > 0 || !isnan(spec->search.min_sqnr_db) ||
           !isnan(spec->search.min_top1_agreement);
}

enum qdq_code
qdqi_deployed_check(struct qdqi_job *job, struct qdq_error *err)
{
    const struct qdqi_deploy_ops *ops =
        qdqi_deploy_ops_find(job->work->spec->target->runtime);
    struct qdqi_deployed_model model = {0};
    struct qdq_error why = {0};
    if (!ops || ops->calibrates || !runs_models(job->work->spec))
        return QDQ_OK;
    enum qdq_code code = open_model(job, job->original, &model, &why);
    qdqi_deployed_model_close(&model);
    if (!code || costs_figures(code))
        return QDQ_OK;
    return code != QDQ_RUN_FAILED
               ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
               : qdq_error_set(err, QDQ_CANNOT_LOAD, QDQ_AT_NOTHING, NULL,
                               "%s cannot load the model that was given: %s",
                               ops->title, why.text);
}

enum qdq_code
qdqi_deployed_open(struct qdqi_job *job, const struct qdq_model *quantized,
                   struct qdqi_deployed_model *ret, struct qdq_error *err)
{
    const struct qdq_target *target = job->work->spec->target;
    struct qdq_error why = {0};
    char text[160];
    *ret = (struct qdqi_deployed_model){0};
    if (!target->runtime)
        return QDQ_OK;
    if (is_hindered(job, text, sizeof text))
        return qdqi_deployed_warn(job, text, err);
    enum qdq_code code = open_model(job, quantized, ret, &why);
    if (costs_figures(code))
        return qdqi_deployed_warn(job, why.text, err);
    if (code && code != QDQ_RUN_FAILED)
        return qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    return code ? qdq_error_set(err, QDQ_CANNOT_LOAD, QDQ_AT_NOTHING, NULL,
                                "the result is valid, and the runtime of target %s "
                                "cannot load it: %s",
                                target->name, why.text)
                : QDQ_OK;
}

enum qdq_code
qdqi_deployed_report(struct qdqi_job *job, const struct qdq_output_report *outputs,
                     size_t n, struct qdq_error *err)
{
    struct qdqi_deploy deploy;
    enum qdq_code code = qdqi_deployed_runtime(job, &deploy, err);
    if (code)
        return code;
    struct qdq_deployed *r = qdqi_arena_alloc(job->arena, sizeof *r);
    char processor[64];
    qdqi_host_processor(processor, sizeof processor);
    if (!r)
        return qdqi_no_memory(err);
    *r = (struct qdq_deployed){
        .processor = qdqi_arena_strdup(job->arena, processor),
        .runtime = deploy.ops->name,
        .version = qdqi_arena_strdup(job->arena, deploy.ops->version(deploy.place)),
        .n_outputs = n,
        .outputs = outputs,
    };
    if (!r->processor || !r->version)
        return qdqi_no_memory(err);
    job->report->view.deployed = r;
    return QDQ_OK;
}
