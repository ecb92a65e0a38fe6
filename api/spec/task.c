/* SPDX-License-Identifier: Apache-2.0 */
/* The member task: by what the data to judge by is judged. */
#include "config.h"
#include "spec/members.h"

#include <math.h>

bool
api_decode_task(struct decoder *d, const struct member *m, json_t *value)
{
    struct qdq_task *task = &d->to->spec.task;
    if (!json_object_get(value, "kind"))
        return api_refuse(d, API_INVALID_SPEC, m->pointer,
                          "task has no kind: classification or metric");
    task->asked = true;
    if (!api_decode_members(d, m->pointer, value))
        return false;
    if (task->kind == QDQ_TASK_METRIC && !task->model)
        return api_refuse(d, API_INVALID_SPEC, "/task/model",
                          "a metric is an ONNX graph, and task.model names none");
    if (task->kind == QDQ_TASK_CLASSIFICATION && task->model)
        return api_refuse(d, API_INVALID_SPEC, "/task/model",
                          "task.model is for the kind metric");
    if (task->kind == QDQ_TASK_METRIC && task->output)
        return api_refuse(d, API_INVALID_SPEC, "/task/output",
                          "task.output is for the kind classification");
    return !task->once || task->kind == QDQ_TASK_METRIC ||
           api_refuse(d, API_INVALID_SPEC, "/task/once",
                      "task.once is for the kind metric");
}

json_t *
api_encode_task(const void *object, const struct member *m)
{
    const struct qdq_task *task = &((const struct qdq_spec *)object)->task;
    (void)m;
    if (!task->asked)
        return json_null();
    if (task->kind == QDQ_TASK_CLASSIFICATION)
        return json_pack("{s:s, s:s, s:s*}", "kind", "classification", "data",
                         "evaluation", "output", task->output);
    return json_pack("{s:s, s:s, s:s, s:b}", "kind", "metric", "data", "evaluation",
                     "model", task->model, "once", task->once);
}

bool
api_check_task(struct decoder *d)
{
    const struct qdq_spec *spec = &d->to->spec;
    if (!isnan(spec->accept.max_task_drop) && !spec->task.asked)
        return api_refuse(
            d, API_INVALID_SPEC, "/accept/max_task_drop",
            "accept.max_task_drop bounds the drop of a task, and the spec "
            "has no task");
    if (!isnan(spec->recipe_task_drop) && !spec->task.asked)
        return api_refuse(
            d, API_INVALID_SPEC, "/recipe/max_task_drop",
            "recipe.max_task_drop is a goal for a task, and the spec has no "
            "task");
    if (!isnan(spec->search.max_task_drop) && !spec->task.asked)
        return api_refuse(
            d, API_INVALID_SPEC, "/search/max_task_drop",
            "search.max_task_drop is a goal for a task, and the spec has no "
            "task");
    return !spec->task.asked || spec->evaluate != QDQ_NO ||
           api_refuse(d, API_INVALID_SPEC, "/task",
                      "a task needs an evaluation, and evaluate is false");
}
