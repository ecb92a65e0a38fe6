/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "evaluate/deployed.h"

#include "base/host.h"
#include "evaluate/kernels.h"
#include "qdq/targets.h"

#include <stdio.h>
#include <string.h>

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

/* ONNX Runtime says itself what it cannot load, when the model is calibrated. */
enum qdq_code
qdqi_deployed_check(const struct qdqi_job *job, struct qdq_error *err)
{
    const struct qdqi_deploy_options options = {0};
    const char *runtime = job->work->spec->target->runtime;
    struct qdqi_deployed_model model = {0};
    struct qdqi_deploy deploy;
    struct qdq_error why = {0};
    if (!runtime || strcmp(runtime, QDQI_RUNTIME_NAME) == 0 ||
        qdqi_deployed_runtime(job, &deploy, &why))
        return QDQ_OK;
    enum qdq_code code =
        qdqi_deploy_model(&deploy, job->original, &options, &model, &why);
    qdqi_deployed_model_close(&model);
    if (code == QDQ_NO_MEMORY)
        return qdqi_no_memory(err);
    return code != QDQ_RUN_FAILED
               ? QDQ_OK
               : qdq_error_set(err, QDQ_CANNOT_LOAD, QDQ_AT_NOTHING, NULL,
                               "%s cannot load the model that was given: %s",
                               deploy.ops->title, why.text);
}

enum qdq_code
qdqi_deployed_open(struct qdqi_job *job, const struct qdq_model *quantized,
                   struct qdqi_deployed_model *ret, struct qdq_error *err)
{
    const struct qdq_target *target = job->work->spec->target;
    struct qdq_error why = {0};
    struct qdqi_deploy deploy;
    char text[160];
    *ret = (struct qdqi_deployed_model){0};
    if (!target->runtime)
        return QDQ_OK;
    if (is_hindered(job, text, sizeof text))
        return qdqi_deployed_warn(job, text, err);
    enum qdq_code code = qdqi_deployed_runtime(job, &deploy, &why);
    if (code == QDQ_RUNTIME_MISSING)
        return qdqi_deployed_warn(job, why.text, err);
    if (!code)
        code = qdqi_deploy_counted(job, &deploy, quantized,
                                   &(struct qdqi_deploy_options){0}, ret, &why);
    if (code == QDQ_NO_MEMORY)
        return qdqi_no_memory(err);
    if (code == QDQ_UNSUPPORTED)
        return qdqi_deployed_warn(job, why.text, err);
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
