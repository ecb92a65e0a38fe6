/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runtimes/common/deploy.h"

#include "ground/base/unused.h"

enum qdq_code
qdqi_deploy_model(const struct qdqi_deploy *deploy, const struct qdq_model *model,
                  const struct qdqi_deploy_options *options,
                  struct qdqi_deployed_model *ret, struct qdq_error *err)
{
    *ret = (struct qdqi_deployed_model){0};
    if (deploy->ops->opens_slowly)
        qdqi_release_unused();
    enum qdq_code code =
        deploy->ops->open(deploy->place, model, options, &ret->model, err);
    if (!code)
        ret->ops = deploy->ops;
    return code;
}

enum qdq_code
qdqi_deployed_model_run(const struct qdqi_deployed_model *model,
                        const struct qdqi_input *inputs, size_t n_inputs,
                        const struct qdqi_output **ret, size_t *ret_n, double *ret_ms,
                        struct qdq_error *err)
{
    double ignored;
    return model->ops->run(model->model, inputs, n_inputs, ret, ret_n,
                           ret_ms ? ret_ms : &ignored, err);
}

void
qdqi_deployed_model_close(struct qdqi_deployed_model *model)
{
    if (model->ops)
        model->ops->close(model->model);
    *model = (struct qdqi_deployed_model){0};
}
