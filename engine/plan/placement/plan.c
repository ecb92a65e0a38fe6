/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/placement/plan.h"

#include "plan/cases/case.h"
#include "plan/placement/moment_memory.h"
#include "plan/placement/planner.h"
#include "plan/placement/zero_points.h"

enum qdq_code
qdq_plan_make(const struct qdq_catalog *catalog, const struct qdq_model *model,
              const struct qdq_spec *spec, struct qdq_plan **ret, struct qdq_error *err)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_plan *plan = arena ? qdqi_arena_alloc(arena, sizeof *plan) : NULL;
    if (!plan) {
        qdqi_arena_free(&arena);
        return qdqi_no_memory(err);
    }
    plan->arena = arena;
    struct qdq_spec complete = *spec;
    qdq_spec_complete(&complete);
    plan->dynamic = complete.dynamic;
    plan->decoder = complete.decoder;
    plan->leaves_out_zeros = qdqi_leaves_out_zeros(&complete);
    /* A frozen spec of version 0.1, which has no host, gives the names that it gave. */
    plan->short_names =
        complete.target->short_names && complete.host != QDQ_HOST_UNSTATED;
    struct planner p = {.catalog = catalog,
                        .model = model,
                        .spec = &complete,
                        .plan = plan,
                        .script_time = QDQI_TIME_OF_CASES};
    enum qdq_code code = qdqi_planner_make(&p, err);
    if (!code)
        code = qdqi_warn_idle_support(&p, err);
    if (!code)
        code = qdqi_plan_moment_memory(&p, err);
    plan->view.warnings = p.warnings.rows;
    plan->view.n_warnings = p.warnings.n;
    if (code) {
        qdq_plan_free(&plan);
        return code;
    }
    *ret = plan;
    return QDQ_OK;
}

void
qdq_plan_free(struct qdq_plan **plan)
{
    if (!plan || !*plan)
        return;
    struct qdqi_arena *arena = (*plan)->arena; /* the plan itself lies in this arena */
    qdqi_arena_free(&arena);
    *plan = NULL;
}

const struct qdq_plan_view *
qdq_plan_view(const struct qdq_plan *plan)
{
    return &plan->view;
}

bool
qdqi_plan_has_float_pairs(const struct qdq_plan *plan)
{
    for (size_t i = 0; i < plan->view.n_tensors; i++)
        if (qdqi_format_row((int)plan->activations[i].format)->fraction_bits > 0)
            return true;
    return false;
}

bool
qdqi_plan_has_optional_format(const struct qdq_plan *plan)
{
    const int first = qdqi_format_row(QDQI_TO_INT8)->opset;
    bool rare = false;
    for (size_t i = 0; i < plan->view.n_weights; i++)
        rare |= qdqi_format_row((int)plan->weights[i].format)->opset > first;
    for (size_t i = 0; i < plan->view.n_tensors; i++)
        rare |= qdqi_format_row((int)plan->activations[i].format)->opset > first;
    return rare;
}
