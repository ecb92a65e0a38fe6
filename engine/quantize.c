/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizes a model: walks through the stages of a job, one after the other. */
#include "config.h"
#include "stages/attempt/attempt.h"
#include "stages/attempt/float_outputs.h"
#include "stages/attempt/kept_times.h"

#include "ground/base/build_id.h"
#include "ground/base/host.h"
#include "files/data/inputs.h"
#include "files/data/random.h"
#include "files/data/scaling.h"
#include "graph/layers/caches.h"
#include "plan/gates/gates.h"
#include "plan/gates/verdict.h"
#include "plan/placement/branches.h"
#include "plan/placement/formats.h"
#include "run/session/crashes.h"
#include "stages/calibrate/calibrate.h"
#include "stages/evaluate/deployed.h"
#include "stages/evaluate/evaluate.h"
#include "stages/evaluate/judgement_warnings.h"
#include "stages/evaluate/last_candidate.h"
#include "stages/evaluate/kernels/counted_model.h"
#include "stages/evaluate/kernels/kernels.h"
#include "stages/plausible/layout.h"
#include "stages/plausible/plausible.h"
#include "stages/profile/profile.h"
#include "stages/profile/timed_models.h"
#include "stages/recipe/advise.h"
#include "stages/recipe/goals.h"
#include "stages/recipe/recipe.h"
#include "stages/recipe/unknown_stages.h"
#include "stages/reconstruct/reconstruct.h"
#include "stages/report/report.h"
#include "stages/scale/awq.h"
#include "stages/scale/kv_cache.h"
#include "stages/scale/precision.h"
#include "stages/scale/scale.h"
#include "stages/smooth/smooth.h"
#include "stages/task/task.h"
#include "stages/whatif/whatif.h"
#include "transform/prepare/prepare.h"
#include "transform/rewrite/insert.h"

#include <math.h>
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

/* A job on its way through the stages. Only this file writes it. */
struct walk {
    struct qdqi_report *report;
    struct qdqi_context context;
    struct qdqi_account account;
    struct qdqi_float_outputs float_outputs;
    struct qdqi_kept_times *kept;
    struct qdqi_last_candidate last_candidate;
    struct qdq_spec *spec;        /* of the first attempt */
    struct qdqi_attempt *attempt; /* the one that is chosen so far */
    struct qdqi_whatif *whatif;   /* NULL until it is needed */
    struct qdqi_result result;
    int observations; /* a file that the first attempt opened; -1: none */
    /* the written result that is still to be converted; proto is NULL when there is
       none */
    struct qdqi_edited unconverted;
    const char *model_id; /* as it is known now, or NULL */
    const char *source;   /* id of the data that the ranges come from, or NULL */
};

/* --- stages --------------------------------------------------------------- */

/* Returns whether the job evaluates its result. Unless the spec decides, it does so
   when the user sent data; random samples do not count. */
static bool
wants_evaluation(const struct qdqi_context *c)
{
    const struct qdq_spec *spec = c->asked;
    return spec->evaluate != QDQ_NO &&
           (spec->evaluate == QDQ_YES || qdqi_gates_ask(&spec->accept) ||
            c->work->dataset >= 0 || c->evaluation);
}

/* Returns the number of samples of the evaluation, for reports of progress. The
   evaluation may run somewhat fewer if the model has a fixed batch. */
static uint64_t
count_evaluated(const struct qdqi_context *c)
{
    const struct qdq_dataset *data = qdqi_context_judging_data(c);
    if (!data || !wants_evaluation(c))
        return 0;
    int64_t wanted = c->asked->evaluate_samples;
    int64_t all = qdq_dataset_info(data)->samples;
    return (uint64_t)(wanted && wanted < all ? wanted : all);
}

/* Opens data of the job, which the spec says how to prepare. */
static enum qdq_code
open_data(const struct walk *w, int fd, struct qdq_dataset **ret, struct qdq_error *err)
{
    enum qdq_code code =
        qdq_dataset_open_within(fd, &w->context.engine->limits, ret, err);
    if (!code)
        qdqi_dataset_prepare(*ret, w->context.asked);
    return code;
}

/* Opens the model and the data. */
static enum qdq_code
open_files(struct walk *w, struct qdq_error *err)
{
    struct qdqi_context *c = &w->context;
    const struct qdq_work *work = c->work;
    const struct qdq_limits *limits = &c->engine->limits;
    enum qdq_code code = qdq_model_open_files(work->model, work->external,
                                              work->n_external, &w->report->model, err);
    c->original = w->attempt->model = w->report->model;
    if (!code)
        w->attempt->effort.bytes = qdqi_model_bytes(c->original);
    if (!code)
        code = qdq_limits_check(limits, c->original, err);
    if (!code && work->dataset >= 0 && wants_evaluation(c))
        code = qdqi_refuse_crash(c->original->proto, err);
    if (!code)
        code = qdqi_deployed_check(c, err);
    if (!code && work->dataset >= 0 && c->asked->calibration.random_samples > 0)
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER,
                             "/calibration/random_samples",
                             "random samples are asked for, and calibration data was "
                             "sent");
    if (!code && work->dataset >= 0)
        code = open_data(w, work->dataset, &c->dataset, err);
    return code || !work->judging || work->judging->data < 0
               ? code
               : open_data(w, work->judging->data, &c->evaluation, err);
}

static enum qdq_code
stage_load(struct walk *w, struct qdq_error *err)
{
    struct qdqi_attempt *a = w->attempt;
    enum qdq_code code = open_files(w, err);
    if (!code)
        code = qdq_model_prepare(w->context.original, a->spec, &a->prepared, err);
    if (!code && a->prepared) {
        a->model = a->prepared;
        code = qdq_limits_check(&w->context.engine->limits, a->model, err);
    }
    if (!code)
        code = qdqi_recipe_begin(a, w->spec, err);
    w->observations = a->observations;
    /* The outputs of a model with a state depend on the runs before, not on the sample alone. */
    if (!code && !w->context.dev && w->context.dataset &&
        !qdqi_model_keeps_state(w->context.original))
        qdqi_float_outputs_begin(&w->float_outputs,
                                 w->context.original->info.n_outputs);
    return code;
}

/* Checks that a spec with gates does not switch off the evaluation, which they need. */
static enum qdq_code
check_gates(const struct qdq_spec *spec, struct qdq_error *err)
{
    if (spec->evaluate == QDQ_NO && qdqi_gates_ask(&spec->accept))
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, "/accept",
                             "accept needs an evaluation, and evaluate is false");
    return QDQ_OK;
}

/* Checks that there are samples for the parts of the spec that need them, before the
   work begins. */
static enum qdq_code
check_data(const struct walk *w, struct qdq_error *err)
{
    const struct qdq_spec *spec = w->spec;
    const struct {
        bool asked;
        const char *pointer, *text;
    } rows[] = {
        {qdqi_gates_ask(&spec->accept) && !w->context.evaluation, "/accept",
         "accept needs an evaluation, and there is no data to evaluate with"},
        {spec->sensitivity_samples > 0, "/sensitivity",
         "sensitivity needs data to run the model with, and there is none"},
        {qdq_spec_searches(spec), "/search",
         "a search needs data to run the model with, and there is none"},
    };
    bool makes =
        spec->calibration.random_samples > 0 && w->attempt->model->info.n_inputs > 0;
    if (w->context.dataset || makes)
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
make_samples(struct walk *w, struct qdq_error *err)
{
    struct qdqi_attempt *a = w->attempt;
    struct qdqi_context *c = &w->context;
    const struct qdq_calibration_spec *spec = &a->spec->calibration;
    enum qdq_code code =
        qdqi_inputs_fix(&a->model->info, a->spec, a->arena, &a->fixed, err);
    if (!code)
        qdqi_caches_fix(a->model, &a->fixed);
    if (code || c->dataset || spec->random_samples == 0 || a->model->info.n_inputs == 0)
        return code;
    code = qdqi_random_open(&a->fixed, spec, &c->dataset, err);
    return code ? code
                : qdqi_attempt_warn(a, err, "random_samples", NULL,
                                    "calibrated with %lld random samples: ranges are "
                                    "those of noise",
                                    (long long)qdq_dataset_info(c->dataset)->samples);
}

/* Smooths the model if the spec asks for it. All later stages see the smoothed model. */
static enum qdq_code
stage_smooth(struct walk *w, struct qdq_error *err)
{
    if (w->spec->smooth == 0)
        return QDQ_OK;
    enum qdq_code code = make_samples(w, err);
    return code ? code : qdqi_smooth(w->attempt, err);
}

static enum qdq_code
stage_plan(struct walk *w, struct qdq_error *err)
{
    enum qdq_code code = check_gates(w->spec, err);
    if (!code)
        code = qdqi_timing_check_gate(&w->context, err);
    if (!code)
        code = check_data(w, err);
    if (!code)
        code = qdqi_recipe_plan(w->attempt, w->spec, err);
    if (!code)
        code = qdqi_attempt_plan(w->attempt, err);
    if (code || (code = make_samples(w, err)))
        return code;
    w->account.to_evaluate = count_evaluated(&w->context);
    w->account.unknown = qdqi_unknown_stages(w->attempt);
    code = qdqi_check_layout(w->attempt, err);
    return code ? code : qdqi_task_begin(w->attempt, &w->result.task, err);
}

static enum qdq_code
on_written(void *arg, size_t done, size_t total, struct qdq_error *err)
{
    return qdqi_context_progress(arg, QDQ_STAGE_WRITE, done, total, err);
}

/* Waits for the id of the model, for a qdqi_pending_id. */
static const char *
wait_for_id(void *arg)
{
    struct walk *w = arg;
    return w->model_id = w->context.work->late_id(w->context.work->late_id_arg);
}

static enum qdq_code
write_edited(struct walk *w, const struct qdqi_edited *edited, struct qdq_error *err)
{
    const struct qdq_work *work = w->context.work;
    struct qdqi_attempt *a = w->attempt;
    struct qdq_report *report = w->result.report;
    const struct qdqi_tasks tasks = {w->context.engine->executor,
                                     w->context.engine->threads, on_written,
                                     &w->context};
    const struct qdqi_pending_id pending_id = {SOURCE_MODEL, work->model_id,
                                               wait_for_id, w};
    const struct qdqi_destination destination = {
        .fd = work->output,
        .data = work->output_data,
        .name = work->output_data_name,
        .external = w->spec->external_data,
        .tasks = &tasks,
        .pending_id = work->late_id ? &pending_id : NULL,
    };
    struct qdqi_written written = {0};
    enum qdq_code code =
        qdqi_model_write_result(a->model, edited, &destination, &written, err);
    report->size_after = written.model + written.data;
    report->external_bytes = written.data;
    a->effort.threads = qdqi_context_threads(&w->context);
    a->effort.bytes += report->size_after;
    return code;
}

/* Writes the result. The metadata comes from the frozen spec, so that running that
   spec gives the same bytes. */
static enum qdq_code
write_result(struct walk *w, const char *spec_digest, struct qdq_error *err)
{
    const struct qdqi_attempt *a = w->attempt;
    const struct qdqi_metadata metadata[] = {
        {"qdqd.version", qdq_version()},
        {SOURCE_MODEL, w->context.work->model_id},
        {"qdqd.calibration", w->source},
        {"qdqd.spec", spec_digest},
    };
    struct qdqi_edited edited;
    enum qdq_code code =
        qdqi_insert_pairs(a->model, a->plan, &a->scales, metadata,
                          sizeof metadata / sizeof *metadata, a->scratch, &edited, err);
    if (code)
        return code;
    if (a->float16.dtype == QDQI_BFLOAT16 && wants_evaluation(&w->context))
        w->unconverted = edited;
    else if ((code = qdqi_convert_result(a, &edited, err)))
        return code;
    w->result.report->qdq_pairs = qdqi_count_pairs(a->model, a->plan);
    return write_edited(w, &edited, err);
}

/* Warns where stages behind the plan left all of its layers in float. A plan without any has
   warned itself. */
static enum qdq_code
warn_nothing_left(const struct walk *w, struct qdq_error *err)
{
    const struct qdqi_attempt *a = w->attempt;
    const struct qdqi_warnings *list = &a->warnings->list;
    const struct qdq_plan_view *plan = &a->plan->view;
    bool is_known = plan->n_quantized > 0;
    for (size_t i = 0; i < list->n && !is_known; i++)
        is_known = strcmp(list->rows[i].code, QDQI_NOTHING_TO_QUANTIZE) == 0;
    return is_known
               ? QDQ_OK
               : qdqi_attempt_warn(
                     a, err, QDQI_NOTHING_TO_QUANTIZE, NULL,
                     "no layer of the result is quantized: what was "
                     "tried with integers %s, and each layer of the plan "
                     "was left in float",
                     qdqi_goals_cost_time(w->context.asked, w->result.report->recipe)
                         ? "is not faster than the float model"
                         : "did not reach its goal");
}

static enum qdq_code
stage_write(struct walk *w, struct qdq_error *err)
{
    const struct qdq_work *work = w->context.work;
    enum qdq_code code = warn_nothing_left(w, err);
    if (!code)
        code = qdqi_report_stored_twice(w->attempt, err);
    if (!code)
        code = qdqi_warn_run_as_older(w->attempt, err);
    if (!code)
        code = qdqi_report_freeze(w->attempt, &w->result, &w->source, err);
    if (code)
        return code;
    const char *digest =
        work->freeze ? work->freeze(work->freeze_arg, w->result.report->frozen) : NULL;
    if (work->freeze && !digest)
        return qdqi_no_memory(err);
    code = write_result(w, digest, err);
    return code ? code : qdqi_report_blocks(w->attempt, err);
}

/*
 * Evaluates the result. If the spec asks for the evaluation, a failure is an error. If
 * it is done by default, a missing runtime, or one that lacks a format of the result,
 * is only a warning.
 */
static enum qdq_code
stage_evaluate(struct walk *w, struct qdq_error *err)
{
    const struct qdqi_context *c = &w->context;
    struct qdqi_runtime *runtime = NULL;
    struct qdq_error why = {0};
    bool asked = w->spec->evaluate == QDQ_YES || qdqi_gates_ask(&w->spec->accept);
    if (!wants_evaluation(c))
        return QDQ_OK;
    if (!qdqi_context_judging_data(c))
        return qdq_error_set(
            err, QDQ_NO_CALIBRATION, QDQ_AT_POINTER, "/evaluate",
            "there is no data to evaluate with: send calibration data, or leave "
            "evaluate and accept out of the spec");
    enum qdq_code code = qdqi_engine_runtime(c->engine, &runtime, &why);
    bool loaded = !code;
    if (!code && !(code = qdqi_evaluate(w->attempt, &w->result, runtime, &why)))
        return c->work->dataset >= 0 ? qdqi_warn_implausible(w->attempt, err) : QDQ_OK;
    if (asked || (loaded && !w->result.lacks_format))
        return qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    return qdqi_attempt_warn(w->attempt, err, "evaluation_skipped", NULL,
                             "float and quantized were not compared: %s", why.text);
}

/* Writes the result in bfloat16. This follows the evaluation because ONNX Runtime's
   CPU operators have no bfloat16: the evaluation runs the model in float32. */
static enum qdq_code
stage_convert(struct walk *w, struct qdq_error *err)
{
    enum qdq_code code;
    if (!w->unconverted.proto)
        return QDQ_OK;
    if (w->result.report->evaluated_samples > 0 &&
        (code = qdqi_attempt_warn(w->attempt, err, "evaluated_before_bfloat16", NULL,
                                  "the model was evaluated with float32 in the place "
                                  "of bfloat16, which does not run here")))
        return code;
    if ((code = qdqi_convert_result(w->attempt, &w->unconverted, err)))
        return code;
    return write_edited(w, &w->unconverted, err);
}

/* --- all steps ------------------------------------------------------------- */

typedef enum qdq_code what_ifs_fn(struct qdqi_attempt *attempt,
                                  struct qdqi_whatif **whatif,
                                  struct qdqi_result *result, struct qdq_error *err);

static enum qdq_code
sensitivity(struct qdqi_attempt *a, struct qdqi_whatif **whatif,
            struct qdqi_result *result, struct qdq_error *err)
{
    return qdqi_sensitivity(a, whatif, result, err);
}

/*
 * Runs a stage of what-ifs. When it does not fit into the device's memory, it starts
 * again from its beginning with half the batch, so that all figures are those of one
 * batch. The warnings of the failed attempt are discarded, except those about the
 * batch.
 */
static enum qdq_code
fit_what_ifs(struct walk *w, what_ifs_fn *stage, struct qdq_error *err)
{
    struct qdqi_warnings *list = &w->attempt->warnings->list;
    size_t n = list->n;
    enum qdq_code code;
    while ((code = stage(w->attempt, &w->whatif, &w->result, err)) ==
           QDQ_DEVICE_MEMORY) {
        list->n = n;
        if ((code = qdqi_whatif_halve(&w->whatif, w->attempt, &w->result, code, err)))
            break;
        n = list->n;
    }
    return code;
}

static enum qdq_code
run_stage(struct walk *w, enum qdq_stage stage, struct qdq_error *err)
{
    struct qdqi_attempt *a = w->attempt;
    struct qdqi_result *result = &w->result;
    enum qdq_code code;
    switch (stage) {
    case QDQ_STAGE_LOAD:
        return stage_load(w, err);
    case QDQ_STAGE_EQUALIZE:
        return qdqi_attempt_equalize(a, err);
    case QDQ_STAGE_SMOOTH:
        return stage_smooth(w, err);
    case QDQ_STAGE_PLAN:
        return stage_plan(w, err);
    case QDQ_STAGE_CALIBRATE:
        return qdqi_calibrate(a, err);
    case QDQ_STAGE_QUANTIZE:
        if (a->moments) /* rounding by them is shared by several threads */
            a->effort.threads = qdqi_context_threads(a->context);
        code = qdqi_awq(a, err);
        if (!code)
            code = qdqi_kv_cache(a, err);
        return code ? code : qdqi_choose_scales(a, err);
    case QDQ_STAGE_REFINE:
        return fit_what_ifs(w, qdqi_refine, err);
    case QDQ_STAGE_SENSITIVITY:
        return fit_what_ifs(w, sensitivity, err);
    case QDQ_STAGE_SEARCH:
        return fit_what_ifs(w, qdqi_search, err);
    case QDQ_STAGE_RECIPE:
        qdqi_whatif_close(&w->whatif, result);
        return qdqi_recipe(&w->attempt, result, err);
    case QDQ_STAGE_RECONSTRUCT:
        return qdqi_reconstruct(a, err);
    case QDQ_STAGE_WRITE:
        return stage_write(w, err);
    case QDQ_STAGE_EVALUATE:
        if ((code = stage_evaluate(w, err)) ||
            (code = qdqi_task_finish(result->task, w->attempt, result, err)))
            return code;
        return stage_convert(w, err);
    case QDQ_STAGE_KERNELS:
        return qdqi_kernels_wait(a->context, result)
                   ? QDQ_OK
                   : qdqi_count_kernels(a, result, err);
    case QDQ_STAGE_PROFILE:
        return qdqi_profile(a, result, err);
    case QDQ_STAGE_ADVISE:
        if ((code = qdqi_goals_conclude(a, result, err)))
            return code;
        return qdqi_advise(a, result, err);
    default:
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_NOTHING, NULL, "no such stage");
    }
}

/* Starts the account of a stage. */
static void
begin_stage(struct walk *w, enum qdq_stage stage)
{
    w->account.began = qdqi_seconds_now();
    w->attempt->effort = (struct qdqi_effort){.threads = 1};
    w->attempt->warnings->stage = stage;
    struct qdqi_runtime *runtime = qdqi_engine_loaded_runtime(w->context.engine);
    if (runtime)
        qdqi_runtime_begin_use(runtime);
}

static struct qdq_stage_use
end_stage(const struct walk *w, enum qdq_stage stage)
{
    const struct qdqi_effort *effort = &w->attempt->effort;
    struct rusage usage = {0};
    struct qdqi_run_use run = {0};
    const struct qdqi_runtime *runtime = qdqi_engine_loaded_runtime(w->context.engine);
    if (runtime)
        run = qdqi_runtime_use(runtime);
    getrusage(RUSAGE_SELF, &usage);
    return (struct qdq_stage_use){
        .name = qdq_stage_name(stage),
        .seconds = qdqi_seconds_now() - w->account.began,
        .threads = run.threads > effort->threads ? run.threads : effort->threads,
        .bytes = effort->bytes + run.bytes,
        .peak_bytes = (uint64_t)usage.ru_maxrss * 1024,
    };
}

static enum qdq_code
run_stages(struct walk *w, struct qdq_error *err)
{
    struct qdqi_arena *arena = w->result.arena;
    struct qdq_timing *timings = qdqi_arena_array(arena, QDQ_N_STAGES, sizeof *timings);
    struct qdq_stage_use *uses = qdqi_arena_array(arena, QDQ_N_STAGES, sizeof *uses);
    if (!timings || !uses)
        return qdqi_no_memory(err);
    w->account.job_began = qdqi_seconds_now();
    w->account.processor_then = qdqi_seconds_of_process();
    for (int i = 0; i < QDQ_N_STAGES; i++) {
        enum qdq_stage stage = (enum qdq_stage)i;
        const struct qdq_model *before = w->attempt->model;
        begin_stage(w, stage);
        enum qdq_code code = qdqi_context_progress(&w->context, stage, 0, 0, err);
        if (!code)
            code = run_stage(w, stage, err);
        if (code)
            return code;
        if (before && w->attempt->model != before)
            w->attempt->effort.bytes += qdqi_model_bytes(w->attempt->model);
        uses[i] = end_stage(w, stage);
        timings[i] = (struct qdq_timing){uses[i].name, uses[i].seconds};
    }
    w->result.report->stages = uses;
    w->result.report->timings = timings;
    w->result.report->n_timings = QDQ_N_STAGES;
    return QDQ_OK;
}

/* Makes the objects that the stages work with. */
static enum qdq_code
open_walk(struct walk *w, struct qdq_error *err)
{
    const struct qdq_work *work = w->context.work;
    struct qdq_spec *asked;
    if (!(w->report = qdqi_report_new()))
        return qdqi_no_memory(err);
    w->result.report = &w->report->view;
    w->result.arena = w->report->arena;
    w->result.scratch = qdqi_arena_new();
    w->spec = qdqi_arena_alloc(w->report->arena, sizeof *w->spec);
    asked = qdqi_arena_alloc(w->report->arena, sizeof *asked);
    if (!w->result.scratch || !w->spec || !asked)
        return qdqi_no_memory(err);
    *w->spec = *work->spec;
    qdq_spec_complete(w->spec);
    if (work->dataset < 0)
        qdqi_spec_round_plainly(w->spec);
    *asked = *w->spec;
    w->context.asked = asked;
    return qdqi_attempt_new(&w->context, w->spec, &w->attempt, err);
}

/* Says what made the result. */
static bool
fill_made_by(struct walk *w, struct qdq_made_by *to)
{
    struct qdqi_arena *arena = w->result.arena;
    const struct qdqi_runtime *runtime = qdqi_engine_loaded_runtime(w->context.engine);
    const char *version = runtime ? qdqi_runtime_version(runtime) : NULL;
    char build[QDQI_BUILD_ID_SIZE];
    qdqi_build_id(build);
    to->engine = qdq_version();
    to->processor = qdq_host_name((size_t)qdqi_host_here());
    to->build = qdqi_arena_strdup(arena, build);
    to->runtime = version ? qdqi_arena_strdup(arena, version) : NULL;
    return to->build && (to->runtime || !version);
}

/* Completes the report. */
static enum qdq_code
conclude(struct walk *w, struct qdq_error *err)
{
    const struct qdqi_attempt *a = w->attempt;
    struct qdq_report *report = w->result.report;
    report->model_id =
        w->model_id ? qdqi_arena_strdup(w->result.arena, w->model_id) : NULL;
    if ((w->model_id && !report->model_id) || !fill_made_by(w, &report->made_by))
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_report_fill(a, &w->result, err);
    if (!code)
        code = qdqi_gates_judge(&a->spec->accept, &a->model->info, w->result.not_float,
                                report, w->result.arena, err);
    if (!code)
        report->verdict = qdqi_verdict_name(qdqi_verdict(report));
    return code;
}

/* Frees everything but the report. */
static void
close_walk(struct walk *w)
{
    qdqi_last_candidate_drop(&w->context);
    qdqi_reference_close(&w->last_candidate.reference);
    qdqi_float_outputs_end(&w->float_outputs);
    qdqi_kept_times_close(&w->kept, w->attempt);
    qdqi_engine_release_judges(w->context.engine);
    qdqi_whatif_close(&w->whatif, &w->result);
    qdqi_task_close(&w->result.task);
    if (w->attempt)
        qdqi_attempt_finish(w->attempt);
    if (w->observations >= 0)
        close(w->observations);
    if (w->result.optimized >= 0)
        close(w->result.optimized);
    qdq_dataset_free(&w->context.dataset);
    qdq_dataset_free(&w->context.evaluation);
    qdqi_arena_free(&w->result.scratch);
}

enum qdq_code
qdq_quantize(struct qdq_engine *engine, const struct qdq_work *work,
             struct qdq_report **ret, struct qdq_error *err)
{
    struct walk w = {.context = {.engine = engine,
                                 .work = work,
                                 .account = &w.account,
                                 .float_outputs = &w.float_outputs,
                                 .last_candidate = &w.last_candidate,
                                 .kept = &w.kept},
                     .result.optimized = -1,
                     .observations = -1,
                     .model_id = work->model_id};
    enum qdq_code code = open_walk(&w, err);
    if (!code)
        code = qdqi_choose_device(w.attempt, &w.context, w.result.arena, err);
    if (!code)
        code = run_stages(&w, err);
    if (!code)
        code = conclude(&w, err);
    close_walk(&w);
    if (w.report)
        w.report->attempt = w.attempt;
    struct qdq_report *report = w.report ? &w.report->view : NULL;
    if (code)
        qdq_report_free(&report);
    else
        *ret = report;
    return code;
}
