/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/candidates/judge.h"

#include "files/data/file.h"
#include "stages/evaluate/alone.h"
#include "stages/evaluate/classes.h"
#include "stages/evaluate/deployed.h"
#include "stages/evaluate/judged.h"
#include "stages/evaluate/metrics.h"
#include "stages/evaluate/reference.h"
#include "stages/profile/pace.h"
#include "qdq/targets.h"
#include "transform/rewrite/insert.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct qdqi_judge {
    const struct qdqi_context *context;
    struct qdqi_arena *arena;
    struct qdqi_feed_options options;
    struct qdqi_feed *feed;
    enum qdq_stage stage;
    bool plain;             /* it judges as deployed; else by the literal arithmetic */
    const char *lost;       /* why it does not any more; NULL: it does, or never did */
    double top1, agreement; /* as last judged */
    struct qdqi_judged_cost cost;
    struct qdqi_pace *pace;           /* NULL: latencies are not asked for */
    int fd;                           /* the candidate's file */
    struct qdqi_reference *reference; /* the judge's runs are among its own, */
    size_t first_run;                 /* from this one on */
    size_t n_outputs, n_runs;
    struct qdqi_metrics *metrics;
    bool *differs; /* by output: its size differs in a run of this candidate */
    bool *skips; /* by output: it did in that of another one, judged by other outputs */
    int64_t samples;
    uint64_t done, total;
};

/* --- the float model ------------------------------------------------------- */

static enum qdq_code
report_progress(struct qdqi_judge *j, int64_t samples, struct qdq_error *err)
{
    j->done += (uint64_t)samples;
    if (j->stage == QDQ_N_STAGES)
        return QDQ_OK;
    return qdqi_context_progress(j->context, j->stage, j->done,
                                 j->total > j->done ? j->total : j->done, err);
}

static enum qdq_code
rewind_feed(struct qdqi_judge *j, const struct qdqi_attempt *a, struct qdq_error *err)
{
    qdqi_feed_close(&j->feed);
    return qdqi_feed_open(&a->fixed, j->context->dataset, &j->options, &j->feed, err);
}

static enum qdq_code
on_run(void *arg, int64_t samples, struct qdq_error *err)
{
    return report_progress(arg, samples, err);
}

/* Runs the float model with the samples of the judge, and for a recipe with all samples of the
   evaluation, if the judge's are among them. */
static enum qdq_code
run_float(struct qdqi_judge *j, const struct qdqi_attempt *a, struct qdq_error *err)
{
    struct qdqi_reference_runs runs = {.samples = j->options,
                                       .needed = qdqi_feed_samples(j->feed),
                                       .most = SIZE_MAX,
                                       .ran = on_run,
                                       .arg = j};
    const size_t own = (size_t)qdqi_feed_runs(j->feed);
    if (j->stage == QDQ_STAGE_RECIPE && runs.needed == (int64_t)own)
        qdqi_alone_widen(a, qdqi_feed_available(j->feed), &runs);
    enum qdq_code code = qdqi_reference_open(a, &runs, &j->reference, err);
    if (code)
        return code;
    const size_t first = (size_t)(j->options.first - runs.samples.first);
    const size_t kept = j->reference->n_runs - first;
    j->first_run = first;
    j->n_runs = own < kept ? own : kept;
    for (size_t i = 0; i < j->n_runs; i++)
        j->samples += j->reference->run_samples[first + i];
    return QDQ_OK;
}

static enum qdq_code
open_judge(struct qdqi_judge *j, const struct qdqi_attempt *a, struct qdq_error *err)
{
    enum qdq_code code = rewind_feed(j, a, err);
    if (code)
        return code;
    j->n_outputs = a->model->info.n_outputs;
    j->metrics = qdqi_arena_array(j->arena, j->n_outputs + 1, sizeof *j->metrics);
    j->differs = qdqi_arena_array(j->arena, j->n_outputs + 1, sizeof *j->differs);
    j->skips = qdqi_arena_array(j->arena, j->n_outputs + 1, sizeof *j->skips);
    if (!j->metrics || !j->differs || !j->skips)
        return qdqi_no_memory(err);
    j->fd = qdqi_file_open_temporary();
    if (j->fd < 0)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "opening a temporary file: %s", strerror(errno));
    return run_float(j, a, err);
}

enum qdq_code
qdqi_judge_open(const struct qdqi_attempt *a, const struct qdqi_feed_options *options,
                enum qdq_stage stage, struct qdqi_judge **ret, struct qdq_error *err)
{
    struct qdqi_judge *j = calloc(1, sizeof *j);
    if (!j)
        return qdqi_no_memory(err);
    *j = (struct qdqi_judge){.context = a->context,
                             .arena = qdqi_arena_new(),
                             .options = *options,
                             .stage = stage,
                             .plain = qdqi_deployed_runs(a->context),
                             .fd = -1};
    enum qdq_code code = j->arena ? open_judge(j, a, err) : qdqi_no_memory(err);
    if (code)
        qdqi_judge_close(&j);
    else
        *ret = j;
    return code;
}

void
qdqi_judge_close(struct qdqi_judge **judge)
{
    struct qdqi_judge *j = *judge;
    if (!j)
        return;
    if (j->stage == QDQ_STAGE_RECIPE)
        qdqi_judged_keep_reference(j->context, &j->reference);
    qdqi_reference_close(&j->reference);
    if (j->fd >= 0)
        close(j->fd);
    qdqi_pace_close(&j->pace);
    qdqi_feed_close(&j->feed);
    qdqi_arena_free(&j->arena);
    free(j);
    *judge = NULL;
}

double
qdqi_judge_top1(const struct qdqi_judge *j)
{
    return j->top1;
}

double
qdqi_judge_agreement(const struct qdqi_judge *j)
{
    return j->agreement;
}

int64_t
qdqi_judge_samples(const struct qdqi_judge *j)
{
    return j->samples;
}

enum qdq_code
qdqi_judge_measure_latency(struct qdqi_judge *j, const struct qdqi_attempt *a,
                           struct qdq_error *err)
{
    struct qdq_error why = {0};
    if (j->pace)
        return QDQ_OK;
    enum qdq_code code = qdqi_pace_open(a, &j->pace, &why);
    if (code == QDQ_JUDGE_GONE)
        return qdqi_pace_open(a, &j->pace, err);
    return code ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
                : QDQ_OK;
}

struct qdqi_judged_cost
qdqi_judge_cost(const struct qdqi_judge *j)
{
    return j->cost;
}

void
qdqi_judge_expect(struct qdqi_judge *j, uint64_t samples)
{
    j->total = j->done + samples;
}

enum qdq_code
qdqi_judge_advance(struct qdqi_judge *j, int64_t samples, struct qdq_error *err)
{
    return report_progress(j, samples, err);
}

enum qdq_code
qdqi_judge_conclude(const struct qdqi_judge *j, const struct qdqi_attempt *a,
                    struct qdq_error *err)
{
    return !j->lost ? QDQ_OK
                    : qdqi_attempt_warn(a, err, "judged_literally", NULL,
                                        "some candidates were compared by the literal "
                                        "arithmetic, and not as deployed: %s",
                                        j->lost);
}

/* --- a candidate ----------------------------------------------------------- */

static enum qdq_code
write_candidate(struct qdqi_judge *j, const struct qdqi_attempt *a,
                struct qdq_error *err)
{
    const struct qdqi_target target = {
        .fd = j->fd, .data = -1, .external = QDQ_EXTERNAL_NEVER};
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdqi_edited edited;
    struct qdqi_written written;
    enum qdq_code code = arena ? qdqi_insert_pairs(a->model, a->plan, &a->scales, NULL,
                                                   0, arena, &edited, err)
                               : qdqi_no_memory(err);
    if (!code)
        code = qdqi_model_write_result(a->model, &edited, &target, &written, err);
    if (!code)
        j->cost.bytes = written.model + written.data;
    qdqi_arena_free(&arena);
    return code;
}

/* Opens a candidate as it would be deployed, or with the literal arithmetic. */
static enum qdq_code
open_candidate(struct qdqi_judge *j, const struct qdq_model *model,
               struct qdqi_deployed_model *ret, struct qdq_error *err)
{
    struct qdqi_deploy deploy;
    const struct qdqi_deploy_options options = {.literal = !j->plain, .traced = true};
    enum qdq_code code =
        j->plain ? qdqi_deployed_runtime(j->context, &deploy, err)
                 : qdqi_engine_deploy_literal(j->context->engine, &deploy, err);
    return code ? code : qdqi_deploy_model(&deploy, model, &options, ret, err);
}

static void
compare(struct qdqi_judge *j, size_t run, const struct qdqi_output *outputs, size_t n,
        int64_t samples)
{
    const struct qdqi_kept_output *f =
        qdqi_reference_run(j->reference, j->first_run + run);
    for (size_t i = 0; i < n && i < j->n_outputs; i++) {
        if (!f[i].data || outputs[i].dtype != QDQI_FLOAT32)
            continue;
        if (outputs[i].n == f[i].n)
            qdqi_metrics_update(&j->metrics[i], f[i].data, outputs[i].data, f[i].n,
                                samples, (size_t)f[i].last);
        else
            j->differs[i] = true;
    }
}

/* Leaves the outputs whose sizes differ out, of this candidate and of later ones, so that
   the same outputs judge all. Returns false if none is left to judge by. */
static bool
leave_out_differing(struct qdqi_judge *j)
{
    bool any = false, differs = false;
    for (size_t i = 0; i < j->n_outputs; i++) {
        differs = differs || j->differs[i];
        any = any || (j->metrics[i].samples > 0 && !j->differs[i] && !j->skips[i]);
    }
    for (size_t i = 0; any && i < j->n_outputs; i++)
        j->skips[i] = j->skips[i] || j->differs[i];
    return any || !differs;
}

static double
worst_output(struct qdqi_judge *j, const struct qdqi_attempt *a)
{
    double worst = INFINITY;
    struct qdq_output_report figures;
    j->top1 = j->agreement = NAN;
    if (!leave_out_differing(j))
        return -INFINITY;
    for (size_t i = 0; i < j->n_outputs; i++) {
        if (j->metrics[i].samples == 0 || j->skips[i])
            continue;
        qdqi_metrics_finish(&j->metrics[i], NULL, &figures);
        if (isnan(figures.sqnr_db))
            return -INFINITY;
        worst = fmin(worst, figures.sqnr_db);
        j->agreement = fmin(j->agreement, figures.top1_agreement);
        if (qdqi_output_may_list_classes(a->model, i))
            j->top1 = fmin(j->top1, figures.top1_agreement);
    }
    return worst;
}

static enum qdq_code
run_candidate(struct qdqi_judge *j, const struct qdqi_attempt *a,
              const struct qdqi_deployed_model *candidate, struct qdq_error *err)
{
    const struct qdqi_input *inputs;
    const struct qdqi_output *outputs;
    int64_t samples;
    size_t n;
    enum qdq_code code = rewind_feed(j, a, err);
    for (size_t run = 0; !code && run < j->n_runs; run++) {
        if ((code = qdqi_feed_next(j->feed, &inputs, &samples, err)) ||
            (code = qdqi_deployed_model_run(candidate, inputs, a->model->info.n_inputs,
                                            &outputs, &n, NULL, err)))
            break;
        compare(j, run, outputs, n, samples);
        j->cost.samples += samples;
        code = report_progress(j, samples, err);
    }
    return code;
}

/* Judges the candidate that was written, which may stay open. */
static enum qdq_code
judge_once(struct qdqi_judge *j, const struct qdqi_attempt *a, struct qdq_model **model,
           struct qdq_error *err)
{
    struct qdqi_deployed_model candidate = {0};
    memset(j->metrics, 0, j->n_outputs * sizeof *j->metrics);
    memset(j->differs, 0, j->n_outputs * sizeof *j->differs);
    j->cost.samples = 0;
    enum qdq_code code = open_candidate(j, *model, &candidate, err);
    if (!code)
        code = run_candidate(j, a, &candidate, err);
    if (!code && j->pace)
        code = qdqi_pace_measure(j->pace, *model, &j->cost.latency_ratio, err);
    if (!code)
        qdqi_judged_keep(j->context, model, &candidate);
    qdqi_deployed_model_close(&candidate);
    return code;
}

/* Judges the candidate by another process in the place of one that is gone. */
static enum qdq_code
judge_again(struct qdqi_judge *j, const struct qdqi_attempt *a,
            struct qdq_model **model, struct qdq_error *err)
{
    const bool paced = j->pace != NULL;
    qdqi_pace_close(&j->pace);
    enum qdq_code code = paced ? qdqi_pace_open(a, &j->pace, err) : QDQ_OK;
    return code ? code : judge_once(j, a, model, err);
}

/* Judges the candidate as deployed, or else by the literal arithmetic from now on. */
static enum qdq_code
judge_anyhow(struct qdqi_judge *j, const struct qdqi_attempt *a,
             struct qdq_model **model, struct qdq_error *err)
{
    struct qdq_error first = {0}, second = {0};
    enum qdq_code code = judge_once(j, a, model, &first);
    const struct qdq_error *why = &first;
    if (code == QDQ_JUDGE_GONE) {
        code = judge_again(j, a, model, &second);
        why = &second;
    }
    if (code == QDQ_JUDGE_GONE || (code == QDQ_RUNTIME_MISSING && j->plain)) {
        j->plain = false;
        qdqi_pace_close(&j->pace);
        j->lost = qdqi_arena_strdup(j->arena, why->text);
        return j->lost ? judge_once(j, a, model, err) : qdqi_no_memory(err);
    }
    return code ? qdq_error_set(err, code, why->kind, why->where, "%s", why->text)
                : QDQ_OK;
}

/* Writes a candidate into the file, in the place of the one before. */
static enum qdq_code
write_next(struct qdqi_judge *j, const struct qdqi_attempt *a, struct qdq_model **ret,
           struct qdq_error *err)
{
    qdqi_judged_drop(j->context);
    enum qdq_code code = write_candidate(j, a, err);
    return code ? code : qdq_model_open(j->fd, ret, err);
}

enum qdq_code
qdqi_judge_run(struct qdqi_judge *j, const struct qdqi_attempt *a, double *ret_db,
               struct qdq_error *err)
{
    struct qdq_model *model = NULL;
    struct qdq_error why = {0};
    j->cost = (struct qdqi_judged_cost){.latency_ratio = NAN};
    enum qdq_code code = write_next(j, a, &model, &why);
    if (!code)
        code = judge_anyhow(j, a, &model, &why);
    qdq_model_free(&model);
    *ret_db = code ? -INFINITY : worst_output(j, a);
    if (code == QDQ_RUN_FAILED && j->plain)
        return qdqi_deployed_check_given(j->context, err);
    return code && code != QDQ_RUN_FAILED
               ? qdq_error_set(err, code, why.kind, why.where, "%s", why.text)
               : QDQ_OK;
}
