/* SPDX-License-Identifier: Apache-2.0 */
/* From ranges and weights to scales, and the part of the report that lists them. */
#include "config.h"
#include "stages.h"

#include "number/quantize.h"

#include <math.h>

static enum qdq_code
scale_activations(struct qdqi_job *job, struct qdqi_scales *s, struct qdq_error *err)
{
    const struct qdq_plan_view *plan = &job->plan->view;
    struct qdq_tensor_report *tensors =
        qdqi_arena_array(job->arena, plan->n_tensors, sizeof *tensors);
    s->activations =
        qdqi_arena_array(job->arena, plan->n_tensors, sizeof *s->activations);
    if (!tensors || !s->activations)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < plan->n_tensors; i++) {
        struct qdqi_range r = job->ranges[i];
        double amax = fmax(fabs(r.min), fabs(r.max));
        bool given = !qdqi_method_find(job->methods[i]);
        s->activations[i] = qdqi_symmetric_scale(amax);
        tensors[i] = (struct qdq_tensor_report){
            .name = plan->tensors[i],
            .min = r.min,
            .max = r.max,
            .scale = (double)s->activations[i],
            .method = job->methods[i],
            .samples = given ? 0 : job->calibrated_samples,
        };
        enum qdq_code code =
            amax == 0 ? qdqi_warn(&job->warnings, job->arena, err, "dead_tensor",
                                  plan->tensors[i], "the tensor was always zero")
                      : QDQ_OK;
        if (code)
            return code;
    }
    job->report->view.tensors = tensors;
    job->report->view.n_tensors = plan->n_tensors;
    return QDQ_OK;
}

/*
 * Channels that the file does not store (a weight that repeats one element) cost its
 * sender nothing and us two floats each: so many are taken in one model.
 */
enum { MAX_FILLED_CHANNELS = 1 << 24 };

static enum qdq_code
count_filled(const struct qdqi_constant *w, int axis, const char *name, int64_t *left,
             struct qdq_error *err)
{
    if (axis < 0 || !qdqi_constant_is_fill(w))
        return QDQ_OK;
    if (w->dims[axis] > *left)
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_TENSOR, name,
                             "weight '%s' repeats one element in %lld channels; a "
                             "model may have %d of that kind",
                             name, (long long)w->dims[axis], MAX_FILLED_CHANNELS);
    *left -= w->dims[axis];
    return QDQ_OK;
}

static enum qdq_code
scale_weights(struct qdqi_job *job, struct qdqi_scales *s, struct qdq_error *err)
{
    size_t n = job->plan->view.n_weights;
    int64_t filled_left = MAX_FILLED_CHANNELS;
    struct qdq_weight_report *weights =
        qdqi_arena_array(job->arena, n, sizeof *weights);
    s->weights = qdqi_arena_array(job->arena, n, sizeof *s->weights);
    s->n_weights = qdqi_arena_array(job->arena, n, sizeof *s->n_weights);
    if (!weights || !s->weights || !s->n_weights)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const struct qdqi_planned_weight *w = &job->plan->weights[i];
        struct qdqi_constant constant;
        enum qdq_code code;
        if ((code = qdqi_constant_read(job->model, w->tensor, &constant, err)) ||
            (code = count_filled(&constant, w->axis, w->tensor->name, &filled_left,
                                 err)) ||
            (code = qdqi_weight_scales(&constant, w->axis, w->tensor->name, job->arena,
                                       &s->weights[i], &s->n_weights[i], err)))
            return code;
        weights[i] = (struct qdq_weight_report){
            .name = w->tensor->name,
            .layer = w->layer,
            .axis = w->axis,
            .dtype = "int8",
            .granularity = w->axis < 0 ? "tensor" : "channel",
        };
    }
    job->report->view.weights = weights;
    job->report->view.n_weights = n;
    return QDQ_OK;
}

enum qdq_code
qdqi_choose_scales(struct qdqi_job *job, struct qdqi_scales *ret, struct qdq_error *err)
{
    enum qdq_code code = scale_activations(job, ret, err);
    return code ? code : scale_weights(job, ret, err);
}
