/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizes a model: walks through the stages of a job, one after the other. */
#include "config.h"
#include "stages/job/job.h"

#include "plan/gates/gates.h"
#include "plan/gates/verdict.h"
#include "stages/calibrate/calibrate.h"
#include "stages/calibrate/moments.h"
#include "files/data/inputs.h"
#include "files/data/random.h"
#include "stages/evaluate/deployed.h"
#include "stages/evaluate/evaluate.h"
#include "stages/evaluate/judged.h"
#include "stages/evaluate/kernels.h"
#include "files/model/write.h"
#include "transform/prepare/prepare.h"
#include "stages/profile/profile.h"
#include "stages/recipe/advise.h"
#include "stages/recipe/goals.h"
#include "stages/recipe/recipe.h"
#include "stages/remake/remake.h"
#include "transform/rewrite/insert.h"
#include "stages/scale/precision.h"
#include "stages/scale/scale.h"
#include "stages/smooth/smooth.h"
#include "stages/whatif/refine.h"
#include "stages/whatif/search.h"
#include "stages/whatif/sensitivity.h"
#include "stages/whatif/whatif.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *const stage_names[QDQ_N_STAGES] = {
#define QDQ_STAGE(name, text) [QDQ_STAGE_##name] = text,
#include "qdq/stages.h"
#undef QDQ_STAGE
};

const char *
qdq_stage_name(enum qdq_stage stage)
{
    return (unsigned)stage < QDQ_N_STAGES ? stage_names[stage] : "";
}

#define SOURCE_MODEL "qdqd.source_model" /* the key of the model's id in the metadata */

/* --- stages --------------------------------------------------------------- */

/* Returns whether the job evaluates its result. Unless the spec decides, it does so
   when the user sent data; random samples do not count. */
static bool
wants_evaluation(const struct qdqi_job *job)
{
    const struct qdq_spec *spec = job->work->spec;
    return spec->evaluate != QDQ_NO &&
           (spec->evaluate == QDQ_YES || qdqi_gates_ask(&spec->accept) ||
            job->work->dataset >= 0);
}

/* Returns the number of samples of the evaluation, for reports of progress. The
   evaluation may run somewhat fewer if the model has a fixed batch. */
static uint64_t
count_evaluated(const struct qdqi_job *job)
{
    if (!job->dataset || !wants_evaluation(job))
        return 0;
    int64_t wanted = job->work->spec->evaluate_samples;
    int64_t all = qdq_dataset_info(job->dataset)->samples;
    return (uint64_t)(wanted && wanted < all ? wanted : all);
}

static enum qdq_code
stage_load(struct qdqi_job *job, struct qdq_error *err)
{
    const struct qdq_work *work = job->work;
    enum qdq_code code = qdq_model_open_files(
        work->model, work->external, work->n_external, &job->report->model, err);
    job->original = job->model = job->report->model;
    if (!code)
        job->stage_bytes = qdqi_model_bytes(job->original);
    if (!code)
        code = qdq_limits_check(&job->engine->limits, job->model, err);
    if (!code)
        code = qdqi_deployed_check(job, err);
    if (!code && job->work->dataset >= 0 &&
        job->work->spec->calibration.random_samples > 0)
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER,
                             "/calibration/random_samples",
                             "random samples are asked for, and calibration data was "
                             "sent");
    if (!code && job->work->dataset >= 0)
        code = qdq_dataset_open_within(job->work->dataset, &job->engine->limits,
                                       &job->dataset, err);
    if (!code)
        code = qdq_model_prepare(job->original, job->work->spec, &job->report->prepared,
                                 err);
    if (!job->report->prepared || code)
        return code;
    job->model = job->report->prepared;
    return qdq_limits_check(&job->engine->limits, job->model, err);
}

/* Checks that a spec with gates does not switch off the evaluation, which they need. */
static enum qdq_code
check_gates(const struct qdqi_job *job, struct qdq_error *err)
{
    const struct qdq_spec *spec = job->work->spec;
    if (spec->evaluate == QDQ_NO && qdqi_gates_ask(&spec->accept))
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, "/accept",
                             "accept needs an evaluation, and evaluate is false");
    return QDQ_OK;
}

/* Checks that there are samples for the parts of the spec that need them, before the
   work begins. */
static enum qdq_code
check_data(const struct qdqi_job *job, struct qdq_error *err)
{
    const struct qdq_spec *spec = job->work->spec;
    const struct {
        bool asked;
        const char *pointer, *text;
    } rows[] = {
        {qdqi_gates_ask(&spec->accept), "/accept",
         "accept needs an evaluation, and there is no data to evaluate with"},
        {spec->sensitivity_samples > 0, "/sensitivity",
         "sensitivity needs data to run the model with, and there is none"},
        {qdqi_search_asked(spec), "/search",
         "a search needs data to run the model with, and there is none"},
    };
    bool makes = spec->calibration.random_samples > 0 && job->model->info.n_inputs > 0;
    if (job->dataset || makes)
        return QDQ_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].asked)
            return qdq_error_set(err, QDQ_NO_CALIBRATION, QDQ_AT_POINTER,
                                 rows[i].pointer, "%s", rows[i].text);
    return QDQ_OK;
}

/* Generates the random samples that the spec asks for. The spec also decides the
   sizes of the model's inputs. */
static enum qdq_code
make_samples(struct qdqi_job *job, struct qdq_error *err)
{
    const struct qdq_calibration_spec *c = &job->work->spec->calibration;
    enum qdq_code code = qdqi_inputs_fix(&job->model->info, job->work->spec, job->arena,
                                         &job->fixed, err);
    if (code || job->dataset || c->random_samples == 0 ||
        job->model->info.n_inputs == 0)
        return code;
    code = qdqi_random_open(&job->fixed, c, &job->dataset, err);
    return code ? code
                : qdqi_warn(&job->warnings, job->arena, err, "random_samples", NULL,
                            "calibrated with %lld random samples: ranges are those of "
                            "noise",
                            (long long)qdq_dataset_info(job->dataset)->samples);
}

/* Smooths the model if the spec asks for it. All later stages see the smoothed model. */
static enum qdq_code
stage_smooth(struct qdqi_job *job, struct qdq_error *err)
{
    if (job->work->spec->smooth == 0)
        return QDQ_OK;
    enum qdq_code code = make_samples(job, err);
    return code ? code : qdqi_smooth(job, err);
}

static enum qdq_code
stage_plan(struct qdqi_job *job, struct qdq_error *err)
{
    enum qdq_code code = check_gates(job, err);
    if (!code)
        code = check_data(job, err);
    if (!code)
        code = qdqi_make_plan(job, err);
    if (code || (code = make_samples(job, err)))
        return code;
    job->to_evaluate = count_evaluated(job);
    return QDQ_OK;
}

static enum qdq_code
on_written(void *arg, size_t done, size_t total, struct qdq_error *err)
{
    return qdqi_job_progress(arg, QDQ_STAGE_WRITE, done, total, err);
}

/* Waits for the id of the model, which is a qdqi_late's function. */
static const char *
wait_for_id(void *arg)
{
    struct qdqi_job *job = arg;
    return job->model_id = job->work->late_id(job->work->late_id_arg);
}

static enum qdq_code
write_edited(struct qdqi_job *job, const struct qdqi_edited *edited,
             struct qdq_error *err)
{
    struct qdq_report *report = &job->report->view;
    const struct qdqi_tasks tasks = {job->engine->executor, job->engine->threads,
                                     on_written, job};
    const struct qdqi_late late = {SOURCE_MODEL, job->work->model_id, wait_for_id, job};
    const struct qdqi_target target = {
        .fd = job->work->output,
        .data = job->work->output_data,
        .name = job->work->output_data_name,
        .external = job->work->spec->external_data,
        .tasks = &tasks,
        .late = job->work->late_id ? &late : NULL,
    };
    struct qdqi_written written = {0};
    enum qdq_code code =
        qdqi_model_write_result(job->model, edited, &target, &written, err);
    report->size_after = written.model + written.data;
    job->stage_threads = qdqi_job_threads(job);
    job->stage_bytes += report->size_after;
    report->external_bytes = written.data;
    return code;
}

/* Writes the result. The metadata comes from the frozen spec, so that running that
   spec gives the same bytes. */
static enum qdq_code
write_result(struct qdqi_job *job, const struct qdqi_scales *scales,
             struct qdq_error *err)
{
    const struct qdqi_metadata metadata[] = {
        {"qdqd.version", qdq_version()},
        {SOURCE_MODEL, job->work->model_id},
        {"qdqd.calibration", job->source},
        {"qdqd.spec", job->spec_digest},
    };
    struct qdqi_edited edited;
    struct qdq_report *report = &job->report->view;
    enum qdq_code code = qdqi_insert_pairs(job->model, job->plan, scales, metadata,
                                           sizeof metadata / sizeof *metadata,
                                           job->scratch, &edited, err);
    if (code)
        return code;
    bool waits = job->float16.dtype == QDQI_BFLOAT16 && wants_evaluation(job);
    if (waits)
        job->unconverted = edited;
    else if ((code = qdqi_convert_result(job, &edited, err)))
        return code;
    report->qdq_pairs = job->plan->view.n_tensors + job->plan->view.n_weights;
    return write_edited(job, &edited, err);
}

static enum qdq_code
stage_write(struct qdqi_job *job, const struct qdqi_scales *scales,
            struct qdq_error *err)
{
    enum qdq_code code = qdqi_report_freeze(job, err);
    if (!code)
        code = write_result(job, scales, err);
    return code ? code : qdqi_report_blocks(job, scales, err);
}

/*
 * Evaluates the result. If the spec asks for the evaluation, a failure is an error. If
 * it is done by default, a missing runtime, or one that lacks a format of the result,
 * is only a warning.
 */
static enum qdq_code
stage_evaluate(struct qdqi_job *job, struct qdq_error *err)
{
    const struct qdq_spec *spec = job->work->spec;
    struct qdqi_runtime *runtime = NULL;
    struct qdq_error why = {0};
    bool asked = spec->evaluate == QDQ_YES || qdqi_gates_ask(&spec->accept);
    if (!wants_evaluation(job))
        return QDQ_OK;
    if (!job->dataset)
        return qdq_error_set(
            err, QDQ_NO_CALIBRATION, QDQ_AT_POINTER, "/evaluate",
            "there is no data to evaluate with: send calibration data, or leave "
            "evaluate and accept out of the spec");
    enum qdq_code code = qdqi_engine_runtime(job->engine, &runtime, &why);
    bool loaded = !code;
    if (!code && !(code = qdqi_evaluate(job, runtime, &why)))
        return QDQ_OK;
    if (asked || (loaded && !job->lacks_format))
        return qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    return qdqi_warn(&job->warnings, job->arena, err, "evaluation_skipped", NULL,
                     "float and quantized were not compared: %s", why.text);
}

/* Writes the result in bfloat16. This follows the evaluation because ONNX Runtime's
   CPU operators have no bfloat16: the evaluation runs the model in float32. */
static enum qdq_code
stage_convert(struct qdqi_job *job, struct qdq_error *err)
{
    enum qdq_code code;
    if (!job->unconverted.proto)
        return QDQ_OK;
    if (job->report->view.evaluated_samples > 0 &&
        (code = qdqi_warn(&job->warnings, job->arena, err, "evaluated_before_bfloat16",
                          NULL,
                          "the model was evaluated with float32 in the place of "
                          "bfloat16, which does not run here")))
        return code;
    if ((code = qdqi_convert_result(job, &job->unconverted, err)))
        return code;
    return write_edited(job, &job->unconverted, err);
}

/* --- all steps ------------------------------------------------------------- */

typedef enum qdq_code what_ifs_fn(struct qdqi_job *job, struct qdqi_scales *scales,
                                  struct qdq_error *err);

static enum qdq_code
sensitivity(struct qdqi_job *job, struct qdqi_scales *scales, struct qdq_error *err)
{
    return qdqi_sensitivity(job, scales, err);
}

/*
 * Runs a stage of what-ifs. When it does not fit into the device's memory, it starts
 * again from its beginning with half the batch, so that all figures are those of one
 * batch. The warnings of the failed attempt are discarded, except those about the
 * batch.
 */
static enum qdq_code
fit_what_ifs(struct qdqi_job *job, struct qdqi_scales *scales, what_ifs_fn *stage,
             struct qdq_error *err)
{
    size_t n = job->warnings.n;
    enum qdq_code code;
    while ((code = stage(job, scales, err)) == QDQ_DEVICE_MEMORY) {
        job->warnings.n = n;
        if ((code = qdqi_whatif_halve(job, code, err)))
            break;
        n = job->warnings.n;
    }
    return code;
}

static enum qdq_code
run_stage(struct qdqi_job *job, enum qdq_stage stage, struct qdqi_scales *scales,
          struct qdq_error *err)
{
    enum qdq_code code;
    switch (stage) {
    case QDQ_STAGE_LOAD:
        return stage_load(job, err);
    case QDQ_STAGE_EQUALIZE:
        return qdqi_make_equalized(job, err);
    case QDQ_STAGE_SMOOTH:
        return stage_smooth(job, err);
    case QDQ_STAGE_PLAN:
        return stage_plan(job, err);
    case QDQ_STAGE_CALIBRATE:
        return qdqi_calibrate(job, err);
    case QDQ_STAGE_QUANTIZE:
        if (job->moments) /* rounding by them is shared by several threads */
            job->stage_threads = qdqi_job_threads(job);
        return qdqi_choose_scales(job, scales, err);
    case QDQ_STAGE_REFINE:
        return fit_what_ifs(job, scales, qdqi_refine, err);
    case QDQ_STAGE_SENSITIVITY:
        return fit_what_ifs(job, scales, sensitivity, err);
    case QDQ_STAGE_SEARCH:
        return fit_what_ifs(job, scales, qdqi_search, err);
    case QDQ_STAGE_RECIPE:
        qdqi_whatif_close(job);
        return qdqi_recipe(job, scales, err);
    case QDQ_STAGE_WRITE:
        return stage_write(job, scales, err);
    case QDQ_STAGE_EVALUATE:
        if ((code = stage_evaluate(job, err)))
            return code;
        return stage_convert(job, err);
    case QDQ_STAGE_KERNELS:
        return qdqi_kernels_wait(job) ? QDQ_OK : qdqi_count_kernels(job, err);
    case QDQ_STAGE_PROFILE:
        return qdqi_profile(job, err);
    case QDQ_STAGE_ADVISE:
        if ((code = qdqi_goals_conclude(job, err)))
            return code;
        return qdqi_advise(job, scales, err);
    default:
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_NOTHING, NULL, "no such stage");
    }
}

/* Starts the account of a stage. */
static void
begin_stage(struct qdqi_job *job)
{
    job->stage_began = qdqi_seconds_now();
    job->stage_threads = 1;
    job->stage_bytes = 0;
    struct qdqi_runtime *runtime = qdqi_engine_loaded_runtime(job->engine);
    if (runtime)
        qdqi_runtime_begin_use(runtime);
}

static struct qdq_stage_use
end_stage(const struct qdqi_job *job, enum qdq_stage stage)
{
    struct rusage usage = {0};
    struct qdqi_run_use run = {0};
    const struct qdqi_runtime *runtime = qdqi_engine_loaded_runtime(job->engine);
    if (runtime)
        run = qdqi_runtime_use(runtime);
    getrusage(RUSAGE_SELF, &usage);
    return (struct qdq_stage_use){
        .name = qdq_stage_name(stage),
        .seconds = qdqi_seconds_now() - job->stage_began,
        .threads = run.threads > job->stage_threads ? run.threads : job->stage_threads,
        .bytes = job->stage_bytes + run.bytes,
        .peak_bytes = (uint64_t)usage.ru_maxrss * 1024,
    };
}

/* Runs all stages. The beginning of a recipe changes the spec, which is the job's. */
static enum qdq_code
run_stages(struct qdqi_job *job, struct qdq_spec *spec, struct qdq_error *err)
{
    struct qdqi_scales scales = {0};
    struct qdq_timing *timings =
        qdqi_arena_array(job->arena, QDQ_N_STAGES, sizeof *timings);
    struct qdq_stage_use *uses =
        qdqi_arena_array(job->arena, QDQ_N_STAGES, sizeof *uses);
    if (!timings || !uses)
        return qdqi_no_memory(err);
    for (int i = 0; i < QDQ_N_STAGES; i++) {
        enum qdq_stage stage = (enum qdq_stage)i;
        const struct qdq_model *before = job->model;
        begin_stage(job);
        enum qdq_code code = qdqi_job_progress(job, stage, 0, 0, err);
        if (!code)
            code = run_stage(job, stage, &scales, err);
        if (!code && stage == QDQ_STAGE_LOAD)
            code = qdqi_recipe_begin(job, spec, err);
        if (code)
            return code;
        if (stage == QDQ_STAGE_LOAD)
            job->first_made_warning = job->warnings.n;
        if (stage == QDQ_STAGE_QUANTIZE)
            job->n_made_warnings = job->warnings.n - job->first_made_warning;
        if (before && job->model != before)
            job->stage_bytes += qdqi_model_bytes(job->model);
        uses[i] = end_stage(job, stage);
        timings[i] = (struct qdq_timing){uses[i].name, uses[i].seconds};
    }
    job->report->view.stages = uses;
    job->report->view.timings = timings;
    job->report->view.n_timings = QDQ_N_STAGES;
    return QDQ_OK;
}

enum qdq_code
qdq_quantize(struct qdq_engine *engine, const struct qdq_work *work,
             struct qdq_report **ret, struct qdq_error *err)
{
    struct qdq_spec spec = *work->spec;
    struct qdq_work complete = *work;
    qdq_spec_complete(&spec);
    const struct qdq_spec asked = spec;
    complete.spec = &spec;
    struct qdqi_judged judged = {0};
    struct qdqi_job job = {.engine = engine,
                           .work = &complete,
                           .asked = &asked,
                           .observations = -1,
                           .judged = &judged,
                           .model_id = work->model_id,
                           .optimized = -1,
                           .report = qdqi_report_new(),
                           .scratch = qdqi_arena_new()};
    enum qdq_code code;
    struct qdq_report *report = job.report ? &job.report->view : NULL;
    if (!report || !job.scratch) {
        code = qdqi_no_memory(err);
        goto out;
    }
    job.arena = job.report->arena;
    if ((code = qdqi_job_choose_device(&job, err)) ||
        (code = run_stages(&job, &spec, err)) || (code = qdqi_report_fill(&job, err)) ||
        (code = qdqi_gates_judge(&spec.accept, &job.model->info, job.not_float, report,
                                 job.arena, err)))
        goto out;
    report->verdict = qdqi_verdict(report);
    *ret = report;
    report = NULL;
out:
    qdqi_judged_drop(&job);
    qdqi_reference_close(&judged.reference);
    qdqi_engine_release_judges(engine);
    qdqi_recipe_end(&job);
    qdqi_whatif_close(&job);
    qdqi_moments_free(&job);
    if (job.optimized >= 0)
        close(job.optimized);
    qdq_report_free(&report);
    qdq_dataset_free(&job.dataset);
    qdqi_arena_free(&job.scratch);
    return code;
}
