/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/kernels/counted_model.h"

#include "files/data/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool
qdqi_kernels_are_written(const struct qdqi_context *c)
{
    const struct qdq_target *target = c->asked->target;
    const struct qdqi_deploy_ops *ops = qdqi_engine_ops(c->engine, target->runtime);
    return target->has_kernels && ops && ops->writes;
}

/* Returns whether the kernels of results of that size are counted for the target. */
static bool
are_counted(const struct qdqi_context *c, const struct qdqi_result *result)
{
    return qdqi_kernels_are_written(c) &&
           result->report->size_after <= QDQI_MOST_COUNTED;
}

bool
qdqi_kernels_wait(const struct qdqi_context *c, const struct qdqi_result *result)
{
    return are_counted(c, result) && c->asked->profile.runs > 0 &&
           result->optimized < 0;
}

enum qdq_code
qdqi_deploy_to_file(struct qdqi_result *result, const struct qdqi_deploy *deploy,
                    const struct qdq_model *model, struct qdqi_deploy_options *options,
                    struct qdqi_deployed_model *ret, struct qdq_error *err)
{
    char path[64];
    int fd = qdqi_file_open_buffer();
    if (fd < 0)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "opening a temporary file: %s", strerror(errno));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    options->optimized = path;
    enum qdq_code code = qdqi_deploy_model(deploy, model, options, ret, err);
    options->optimized = NULL;
    if (code) {
        close(fd);
        return code;
    }
    if (result->optimized >= 0)
        close(result->optimized);
    result->optimized = fd;
    return QDQ_OK;
}

enum qdq_code
qdqi_deploy_counted(const struct qdqi_context *c, struct qdqi_result *result,
                    const struct qdqi_deploy *deploy, const struct qdq_model *model,
                    const struct qdqi_deploy_options *options,
                    struct qdqi_deployed_model *ret, struct qdq_error *err)
{
    struct qdqi_deploy_options own = *options;
    struct qdq_error ignored = {0};
    if (are_counted(c, result) && deploy->ops->writes &&
        !qdqi_deploy_to_file(result, deploy, model, &own, ret, &ignored))
        return QDQ_OK;
    return qdqi_deploy_model(deploy, model, &own, ret, err);
}
