/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "evaluate/deployed.h"

#include "base/host.h"
#include "qdq/targets.h"

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

bool
qdqi_deployed_runs(const struct qdqi_job *job)
{
    char why[160];
    return job->work->spec->target->has_kernels && !is_hindered(job, why, sizeof why);
}

enum qdq_code
qdqi_deployed_open(struct qdqi_job *job, struct qdqi_runtime *runtime,
                   const struct qdq_model *quantized, struct qdqi_session **ret,
                   struct qdq_error *err)
{
    const struct qdqi_session_options options = {.plain = true};
    struct qdq_error why = {0};
    char text[160];
    *ret = NULL;
    const struct qdq_target *target = job->work->spec->target;
    if (target->not_deployed)
        return qdqi_deployed_warn(job, target->not_deployed, err);
    if (!target->has_kernels)
        return QDQ_OK;
    if (is_hindered(job, text, sizeof text))
        return qdqi_deployed_warn(job, text, err);
    enum qdq_code code =
        qdqi_session_open(runtime, quantized, quantized->proto, &options, ret, &why);
    if (code == QDQ_NO_MEMORY)
        return qdqi_no_memory(err);
    return code ? qdq_error_set(err, QDQ_CANNOT_LOAD, QDQ_AT_NOTHING, NULL,
                                "the result is valid, and the runtime of target %s "
                                "cannot load it: %s",
                                target->name, why.text)
                : QDQ_OK;
}

enum qdq_code
qdqi_deployed_report(struct qdqi_job *job, const struct qdqi_runtime *runtime,
                     const struct qdq_output_report *outputs, size_t n,
                     struct qdq_error *err)
{
    struct qdq_deployed *r = qdqi_arena_alloc(job->arena, sizeof *r);
    char processor[64];
    qdqi_host_processor(processor, sizeof processor);
    if (!r)
        return qdqi_no_memory(err);
    *r = (struct qdq_deployed){
        .processor = qdqi_arena_strdup(job->arena, processor),
        .runtime = QDQI_RUNTIME_NAME,
        .version = qdqi_arena_strdup(job->arena, qdqi_runtime_version(runtime)),
        .n_outputs = n,
        .outputs = outputs,
    };
    if (!r->processor || !r->version)
        return qdqi_no_memory(err);
    job->report->view.deployed = r;
    return QDQ_OK;
}
