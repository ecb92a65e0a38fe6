/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the plan again with an additional entry that leaves layers in float, exactly
   as it will be made when the frozen spec is run. */
#include "config.h"
#include "stages/replan/replan.h"

#include "plan/placement/target.h"

#include <string.h>

/* Adds an entry to the spec that leaves the layers in float. It selects them by
   name, so it has precedence over all others. */
static enum qdq_code
add_entry(struct qdqi_job *job, const char *const *names, size_t n,
          struct qdq_error *err)
{
    const struct qdq_spec *spec = job->searched ? job->searched : job->work->spec;
    struct qdq_spec *copy = qdqi_arena_alloc(job->arena, sizeof *copy);
    struct qdq_layer_entry *entries =
        qdqi_arena_array(job->arena, spec->n_layers + 1, sizeof *entries);
    if (!copy || !entries)
        return qdqi_no_memory(err);
    if (spec->n_layers)
        memcpy(entries, spec->layers, spec->n_layers * sizeof *entries);
    entries[spec->n_layers] = (struct qdq_layer_entry){
        .by = QDQ_BY_NAME, .names = names, .n_names = n, .is_list = true};
    *copy = *spec;
    copy->layers = entries;
    copy->n_layers = spec->n_layers + 1;
    job->searched = copy;
    return QDQ_OK;
}

static bool
same_layer(const struct qdq_layer *a, const struct qdq_layer *b)
{
    if (a->node != b->node || a->n_inputs != b->n_inputs ||
        a->weight_input != b->weight_input || a->weight_axis != b->weight_axis)
        return false;
    for (size_t i = 0; i < a->n_inputs; i++)
        if (a->quantized_inputs[i] != b->quantized_inputs[i])
            return false;
    return true;
}

/* Returns whether the layer's plan depends on its neighbours', as is the case for
   layers that only move data. */
static bool
follows(const struct qdqi_job *job, const struct qdq_layer *layer)
{
    const struct qdqi_hooks *hooks = job->work->spec->target->hooks;
    return hooks->follows && hooks->follows(layer);
}

/* Checks that the other layers have the same plan as before. A script of a case sees
   which layers the spec names and may decide differently because of it. */
static enum qdq_code
compare_plans(const struct qdqi_job *job, const struct qdq_plan_view *before,
              const struct qdq_plan_view *after, const struct qdqi_map *names,
              const char *reason, struct qdq_error *err)
{
    for (size_t i = 0; i < before->n_layers && i < after->n_layers; i++) {
        const struct qdq_layer *a = &before->layers[i], *b = &after->layers[i];
        bool is_float = qdqi_map_get(names, a->name);
        bool same = is_float ? b->n_inputs == 0 && b->weight_input < 0
                             : follows(job, a) || same_layer(a, b);
        if (!same)
            return qdq_error_set(err, QDQ_CASE_FAILED, QDQ_AT_NODE, a->name,
                                 "when the layers that stay in float (%s) are named, "
                                 "the cases plan another thing for '%s'",
                                 reason, a->name);
        /* the const is cast away: the layer is in the plan's own memory */
        if (is_float)
            ((struct qdq_layer *)(uintptr_t)b)->reason = reason;
    }
    return QDQ_OK;
}

/*
 * Copies the ranges to the new plan, whose activations are a subset of the old one's.
 * An activation that shared the range of another one keeps that range, even if it has
 * its own scale now.
 */
static enum qdq_code
carry_ranges(struct qdqi_job *job, const struct qdq_plan *old_plan,
             const struct qdq_plan_view *after, struct qdq_error *err)
{
    const struct qdq_plan_view *before = &old_plan->view;
    const struct qdqi_planned_tensor *rows = old_plan->activations;
    struct qdqi_map *old = qdqi_map_new(job->scratch);
    size_t n = after->n_tensors;
    struct qdqi_range *ranges = qdqi_arena_array(job->arena, n, sizeof *ranges);
    const char **methods = qdqi_arena_array(job->arena, n, sizeof *methods);
    bool ok = old && ranges && methods;
    for (size_t i = 0; ok && i < before->n_tensors; i++)
        ok = qdqi_map_put(old, before->tensors[i], &job->ranges[rows[i].leader]);
    if (!ok)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const struct qdqi_range *range = qdqi_map_get(old, after->tensors[i]);
        if (!range)
            return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_TENSOR, after->tensors[i],
                                 "tensor '%s' has no range", after->tensors[i]);
        ranges[i] = *range;
        methods[i] = job->methods[range - job->ranges];
    }
    job->ranges = ranges;
    job->methods = methods;
    return QDQ_OK;
}

/* Sets the reason of the layers that the recipe leaves in float. */
static void
set_reasons(const struct qdq_plan_view *plan, const struct qdqi_map *names,
            const char *reason)
{
    for (size_t i = 0; i < plan->n_layers; i++)
        /* the const is cast away: the layer is in the plan's own memory */
        if (qdqi_map_get(names, plan->layers[i].name))
            ((struct qdq_layer *)(uintptr_t)&plan->layers[i])->reason = reason;
}

static enum qdq_code
put_names(struct qdqi_job *job, const char *const *names, size_t n,
          struct qdqi_map **ret, struct qdq_error *err)
{
    *ret = qdqi_map_new(job->scratch);
    bool ok = *ret;
    for (size_t i = 0; ok && i < n; i++)
        ok = qdqi_map_put(*ret, names[i], job);
    return ok ? QDQ_OK : qdqi_no_memory(err);
}

enum qdq_code
qdqi_plan_leaving(struct qdqi_job *job, const char *const *names, size_t n,
                  const char *reason, struct qdq_error *err)
{
    struct qdq_plan *after = NULL;
    struct qdqi_map *is_float;
    enum qdq_code code = put_names(job, names, n, &is_float, err);
    if (code || (code = add_entry(job, names, n, err)) ||
        (code = qdq_plan_make(job->engine->catalog, job->model, job->searched, &after,
                              err)))
        return code;
    if ((code = carry_ranges(job, job->plan, &after->view, err))) {
        qdq_plan_free(&after);
        return code;
    }
    set_reasons(&after->view, is_float, reason);
    job->plan = job->report->plan = after;
    return QDQ_OK;
}

enum qdq_code
qdqi_plan_without(struct qdqi_job *job, const char *const *names, size_t n,
                  const char *reason, struct qdq_error *err)
{
    struct qdq_plan *before = job->plan, *after = NULL;
    struct qdqi_map *is_float;
    enum qdq_code code = put_names(job, names, n, &is_float, err);
    if (code || (code = add_entry(job, names, n, err)) ||
        (code = qdq_plan_make(job->engine->catalog, job->model, job->searched, &after,
                              err)))
        return code;
    if (!(code =
              compare_plans(job, &before->view, &after->view, is_float, reason, err)))
        code = carry_ranges(job, before, &after->view, err);
    if (code) {
        qdq_plan_free(&after);
        return code;
    }
    job->plan = job->report->plan = after;
    qdq_plan_free(&before);
    return QDQ_OK;
}

enum qdq_code
qdqi_plan_try(struct qdqi_job *job, const char *const *names, size_t n,
              struct qdqi_arena *arena, struct qdq_plan **ret, struct qdq_error *err)
{
    const struct qdqi_job before = *job;
    job->arena = arena;
    enum qdq_code code = add_entry(job, names, n, err);
    const struct qdq_spec *spec = job->searched;
    *job = before;
    return code ? code
                : qdq_plan_make(job->engine->catalog, job->model, spec, ret, err);
}
