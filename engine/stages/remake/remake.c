/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/remake/remake.h"

#include "stages/calibrate/calibrate.h"
#include "stages/calibrate/moments.h"
#include "files/data/inputs.h"
#include "transform/equalize/equalize.h"
#include "transform/prepare/prepare.h"
#include "stages/scale/scale.h"
#include "stages/smooth/smooth.h"

#include <string.h>

enum qdq_code
qdqi_make_equalized(struct qdqi_job *job, struct qdq_error *err)
{
    struct qdq_report *report = &job->report->view;
    if (!job->work->spec->equalize)
        return QDQ_OK;
    enum qdq_code code =
        qdqi_equalize(job->model, job->arena, &report->equalization,
                      &report->n_equalization, &job->report->equalized, err);
    if (code)
        return code;
    if (job->report->equalized) {
        job->model = job->report->equalized;
        return QDQ_OK;
    }
    return qdqi_warn(&job->warnings, job->arena, err, "nothing_equalized", NULL,
                     "no two layers of the model could be equalized with each other");
}

/* Returns whether a warning of the plan is about a job without data, and this is none. */
static bool
does_not_apply(const struct qdqi_job *job, const struct qdq_warning *w)
{
    return strcmp(w->code, QDQI_NEEDS_DATA) == 0 && qdqi_job_can_judge(job);
}

enum qdq_code
qdqi_make_plan(struct qdqi_job *job, struct qdq_error *err)
{
    enum qdq_code code = qdq_plan_make(job->engine->catalog, job->model,
                                       job->work->spec, &job->report->plan, err);
    job->plan = job->report->plan;
    for (size_t i = 0; !code && i < job->plan->view.n_warnings; i++) {
        const struct qdq_warning *w = &job->plan->view.warnings[i];
        if (does_not_apply(job, w))
            continue;
        code = qdqi_warn(&job->warnings, job->arena, err, w->code, w->node, "%s",
                         w->detail);
        if (!code)
            job->warnings.rows[job->warnings.n - 1].rule = w->rule;
    }
    return code;
}

/* Forgets what the stages from the preparation on found. */
static void
forget(struct qdqi_job *job)
{
    struct qdqi_report *r = job->report;
    r->plan = NULL;
    r->prepared = r->equalized = r->smoothed = NULL;
    r->view.equalization = NULL;
    r->view.smoothing = NULL;
    r->view.n_equalization = r->view.n_smoothing = 0;
    job->model = job->original;
    job->plan = NULL;
    job->searched = NULL;
    job->observers = NULL;
    job->moments = NULL;
    job->all_moments = NULL;
    job->roundings_left = NULL;
    job->kept_peaks = NULL;
    job->ranges = NULL;
    job->methods = NULL;
    job->float16 = (struct qdqi_float16_nodes){0};
    job->float16_constants = NULL;
    job->n_scale_warnings = 0;
    job->inferences = 0;
    job->calibrated_samples = job->skipped_samples = 0;
    job->reused = 0;
}

static enum qdq_code
make_model(struct qdqi_job *job, struct qdq_error *err)
{
    enum qdq_code code =
        qdq_model_prepare(job->original, job->work->spec, &job->report->prepared, err);
    if (job->report->prepared)
        job->model = job->report->prepared;
    if (code || (code = qdqi_make_equalized(job, err)) ||
        (code = qdqi_inputs_fix(&job->model->info, job->work->spec, job->arena,
                                &job->fixed, err)))
        return code;
    return qdqi_smooth(job, err);
}

enum qdq_code
qdqi_remake(struct qdqi_job *job, const struct qdq_spec *spec, struct qdqi_scales *ret,
            struct qdq_error *err)
{
    struct qdq_work *work = qdqi_arena_alloc(job->arena, sizeof *work);
    enum qdq_code code;
    forget(job);
    if (!work)
        return qdqi_no_memory(err);
    *work = *job->work;
    work->spec = spec;
    job->work = work;
    if ((code = make_model(job, err)) || (code = qdqi_make_plan(job, err)) ||
        (code = qdqi_calibrate(job, err)))
        return code;
    return qdqi_choose_scales(job, ret, err);
}

void
qdqi_remade_free(struct qdqi_job *job)
{
    struct qdqi_report *r = job->report;
    qdqi_moments_free(job);
    qdq_plan_free(&r->plan);
    qdq_model_free(&r->smoothed);
    qdq_model_free(&r->equalized);
    qdq_model_free(&r->prepared);
}
