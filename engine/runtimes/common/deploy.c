/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "runtimes/common/deploy.h"

#include "ground/base/unused.h"
#include "runtimes/common/whole.h"

#include <math.h>

/* Hands a model over as the bytes of one file. */
static enum qdq_code
load_whole(const struct qdqi_deploy *deploy, const struct qdq_model *model,
           const struct qdqi_deploy_options *options, void **ret, struct qdq_error *err)
{
    struct qdqi_whole whole;
    enum qdq_code code = qdqi_whole_open(model, &whole, err);
    if (code)
        return code;
    const struct qdqi_model_bytes bytes = {whole.data, whole.size};
    code = deploy->ops->load(deploy->place, &bytes, options, ret, err);
    qdqi_whole_close(&whole);
    return code;
}

const struct qdq_runtime_about *
qdqi_deploy_about(const struct qdqi_deploy *deploy)
{
    return deploy->ops->about ? deploy->ops->about(deploy->place) : NULL;
}

const char *
qdqi_deploy_name(const struct qdqi_deploy *deploy)
{
    const struct qdq_runtime_about *about = qdqi_deploy_about(deploy);
    return about && *about->name ? about->name : deploy->ops->row->name;
}

enum qdq_code
qdqi_deploy_model(const struct qdqi_deploy *deploy, const struct qdq_model *model,
                  const struct qdqi_deploy_options *options,
                  struct qdqi_deployed_model *ret, struct qdq_error *err)
{
    const struct qdqi_deploy_ops *ops = deploy->ops;
    *ret = (struct qdqi_deployed_model){0};
    if (ops->opens_slowly)
        qdqi_release_unused();
    enum qdq_code code =
        ops->open ? ops->open(deploy->place, model, options, &ret->model, err)
                  : load_whole(deploy, model, options, &ret->model, err);
    if (!code)
        ret->ops = ops;
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

/* Runs the model once more, and adds the times of its nodes. The least times are those of runs that
   count, because where a time is a mean over all runs the first ones say little. */
static enum qdq_code
run_and_add(const struct qdqi_deployed_model *model, const struct qdqi_input *inputs,
            size_t n_inputs, bool counts, struct qdqi_arena *arena,
            struct qdqi_trace *ret, struct qdq_error *err)
{
    const struct qdqi_output *outputs;
    struct qdqi_trace one = {0};
    size_t n;
    enum qdq_code code =
        qdqi_deployed_model_run(model, inputs, n_inputs, &outputs, &n, NULL, err);
    if (!code)
        code = model->ops->nodes(model->model, arena, &one, err);
    for (size_t i = 0; !code && i < one.n_nodes; i++)
        one.nodes[i].least_ms = counts ? one.nodes[i].ms : INFINITY;
    if (code || !ret->nodes) {
        *ret = one;
        return code;
    }
    for (size_t i = 0; i < one.n_nodes && i < ret->n_nodes; i++) {
        ret->nodes[i].ms += one.nodes[i].ms;
        ret->nodes[i].least_ms = fmin(ret->nodes[i].least_ms, one.nodes[i].least_ms);
    }
    return QDQ_OK;
}

enum qdq_code
qdqi_deploy_trace(const struct qdqi_deploy *deploy, const struct qdq_model *model,
                  const struct qdqi_deploy_options *options,
                  const struct qdqi_input *inputs, size_t n_inputs, int runs,
                  struct qdqi_arena *arena, struct qdqi_deployed_model *stays,
                  struct qdqi_trace *ret, struct qdq_error *err)
{
    struct qdqi_deploy_options traced = *options;
    struct qdqi_deployed_model opened = {.ops = deploy->ops};
    const struct qdqi_output *outputs;
    size_t n;
    if (deploy->ops->trace) {
        enum qdq_code failed =
            deploy->ops->trace(deploy->place, model, options, inputs, n_inputs, runs,
                               arena, stays ? &opened.model : NULL, ret, err);
        if (stays && !failed)
            *stays = opened;
        return failed;
    }
    traced.traced = true;
    *ret = (struct qdqi_trace){0};
    enum qdq_code code = qdqi_deploy_model(deploy, model, &traced, &opened, err);
    /* The first run prepares memory, and is not counted. */
    if (!code)
        code =
            qdqi_deployed_model_run(&opened, inputs, n_inputs, &outputs, &n, NULL, err);
    for (int i = 0; !code && i < runs; i++)
        code = run_and_add(&opened, inputs, n_inputs, i >= runs / 2, arena, ret, err);
    if (stays && !code)
        *stays = opened;
    else
        qdqi_deployed_model_close(&opened);
    return code;
}
