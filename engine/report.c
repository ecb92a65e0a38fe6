/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages.h"

/* The report outlives its caller's spec: a copy of all that it says. */
static const struct qdq_spec *
copy_spec(struct qdqi_arena *arena, const struct qdq_spec *spec)
{
    struct qdq_spec *copy = qdqi_arena_alloc(arena, sizeof *copy);
    size_t n = spec->calibration.n_ranges;
    struct qdq_given_range *ranges = qdqi_arena_array(arena, n, sizeof *ranges);
    if (!copy || !ranges)
        return NULL;
    *copy = *spec;
    copy->calibration.ranges = ranges;
    copy->calibration.method = qdqi_arena_strdup(arena, spec->calibration.method);
    for (size_t i = 0; i < n; i++) {
        ranges[i] = spec->calibration.ranges[i];
        ranges[i].tensor = qdqi_arena_strdup(arena, ranges[i].tensor);
        if (!ranges[i].tensor)
            return NULL;
    }
    return copy->calibration.method ? copy : NULL;
}

enum qdq_code
qdqi_report_fill(struct qdqi_job *job, struct qdq_error *err)
{
    struct qdq_report *r = &job->report->view;
    const struct qdq_work *work = job->work;
    r->model = &job->model->info;
    r->model_id = work->model_id ? qdqi_arena_strdup(job->arena, work->model_id) : NULL;
    r->dataset_id =
        work->dataset_id ? qdqi_arena_strdup(job->arena, work->dataset_id) : NULL;
    r->calibration_samples = job->calibrated_samples;
    r->spec = copy_spec(job->arena, work->spec);
    r->device = "cpu";
    r->plan = &job->plan->view;
    r->size_before = job->model->size;
    r->warnings = job->warnings.rows;
    r->n_warnings = job->warnings.n;
    if (!r->spec || (work->model_id && !r->model_id) ||
        (work->dataset_id && !r->dataset_id))
        return qdqi_no_memory(err);
    return QDQ_OK;
}

struct qdqi_report *
qdqi_report_new(void)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_report *report = arena ? qdqi_arena_alloc(arena, sizeof *report) : NULL;
    if (report)
        report->arena = arena;
    else
        qdqi_arena_free(&arena);
    return report;
}

void
qdq_report_free(struct qdq_report **report)
{
    if (!report || !*report)
        return;
    struct qdqi_report *r = (struct qdqi_report *)*report;
    qdq_plan_free(&r->plan);
    qdq_model_free(&r->model);
    struct qdqi_arena *arena = r->arena; /* the report itself lies in it */
    qdqi_arena_free(&arena);
    *report = NULL;
}
