/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/task/task.h"

#include "ground/base/host.h"
#include "stages/evaluate/deployed.h"
#include "stages/task/confusions.h"
#include "stages/task/judge.h"
#include "stages/task/labelled.h"

#include <math.h>
#include <stdlib.h>

struct qdqi_task {
    struct qdqi_arena *arena;
    struct qdqi_judge judge;
    int64_t samples;
    struct qdqi_fraction *of_float, *of_result; /* by sample; one where called once */
    double drop;                                /* of the model that was judged last */
    struct qdqi_answers float_answers, result_answers;
};

/* --- a model that is judged ----------------------------------------------------- */

/* One of both is open. */
struct opened {
    struct qdqi_session *session;
    struct qdqi_deployed_model deployed;
};

static enum qdq_code
run(const struct opened *model, const struct qdqi_input *inputs, size_t n_inputs,
    const struct qdqi_output **ret, struct qdq_error *err)
{
    size_t n;
    return model->session
               ? qdqi_session_run(model->session, inputs, n_inputs, ret, &n, err)
               : qdqi_deployed_model_run(&model->deployed, inputs, n_inputs, ret, &n,
                                         NULL, err);
}

static void
close_model(struct opened *model)
{
    qdqi_session_close(&model->session);
    qdqi_deployed_model_close(&model->deployed);
}

/* Judges all samples of an open feed. */
static enum qdq_code
judge_feed(struct qdqi_task *task, const struct qdqi_attempt *a,
           const struct opened *model, struct qdqi_feed *feed, struct qdqi_fraction *to,
           struct qdq_error *err)
{
    const size_t own = a->fixed.n_inputs;
    const struct qdqi_input *inputs;
    const struct qdqi_output *outputs;
    int64_t samples, done = 0;
    for (;;) {
        enum qdq_code code = qdqi_context_still_wanted(a->context, err);
        if (code || (code = qdqi_feed_next(feed, &inputs, &samples, err)) ||
            samples == 0)
            return code;
        if ((code = run(model, inputs, own, &outputs, err)))
            return qdqi_feed_name_samples(feed, code, err);
        code = qdqi_judge_run(&task->judge, (size_t)samples, outputs, inputs + own,
                              to + (task->judge.task->once ? 0 : done), err);
        if (code)
            return code;
        done += samples;
    }
}

/* Judges a model. *to gets an array of fractions, unless it has one. For an interval a metric that is called once
   is called for groups of samples, too. */
static enum qdq_code
judge(struct qdqi_task *task, const struct qdqi_attempt *a, const struct opened *model,
      bool interval, struct qdqi_fraction **to, struct qdq_error *err)
{
    struct qdqi_judge *j = &task->judge;
    struct qdqi_feed *feed = NULL;
    enum qdq_code code =
        qdqi_labelled_open(a, j->labels, j->n_labels, task->arena, &feed, err);
    if (code)
        return code;
    task->samples = qdqi_feed_samples(feed);
    qdqi_judge_begin(j);
    if (!*to)
        *to = qdqi_arena_array(task->arena, (size_t)task->samples + QDQI_TASK_FIGURES,
                               sizeof **to);
    code = *to ? judge_feed(task, a, model, feed, *to, err) : qdqi_no_memory(err);
    qdqi_feed_close(&feed);
    if (!code && j->task->once)
        code = qdqi_gathered_judge(&j->gathered, j->metric, interval, *to, err);
    qdqi_gathered_forget(&j->gathered);
    return code;
}

static size_t
fractions_of(const struct qdqi_task *task)
{
    return task->judge.task->once ? 1 : (size_t)task->samples;
}

#define LEAST_KAPPA 0.1

/* --- the float model ------------------------------------------------------------ */

/*
 * Checks that the float model is better than a guess with its own shares of classes: the share of right answers that
 * chance gives is the sum over classes of the share of the answers times that of the labels (J. Cohen, A coefficient
 * of agreement for nominal scales, 1960). It must be exceeded by 1.645 standard errors, and by a tenth of
 * what is left (his kappa). Labels of
 * one class, and fewer than 8, tell nothing.
 */
static enum qdq_code
check_chance(const struct qdqi_task *task, struct qdq_error *err)
{
    const struct qdqi_class_counts *counts = &task->judge.counts;
    double n = 0, by_chance = 0, most = 0;
    for (size_t i = 0; i < counts->n; i++) {
        n += counts->labels[i];
        most = counts->labels[i] > most ? counts->labels[i] : most;
        by_chance += counts->labels[i] * counts->chosen[i];
    }
    if (n < 8 || most == n)
        return QDQ_OK;
    by_chance /= n * n;
    const double right = qdqi_quotient(task->of_float, fractions_of(task));
    const double kappa = (right - by_chance) / (1 - by_chance);
    if (kappa >= LEAST_KAPPA &&
        right > by_chance + 1.645 * sqrt(by_chance * (1 - by_chance) / n))
        return QDQ_OK;
    return qdq_error_set(
        err, QDQ_AT_CHANCE, QDQ_AT_POINTER, "/task",
        "the float model is right in %.4g of %.0f labels, and a guess is in %.4g: "
        "check the "
        "range and the layout of the data to judge by, and the numbers of the labels",
        right, n, by_chance);
}

static enum qdq_code
judge_float(struct qdqi_task *task, const struct qdqi_attempt *a,
            struct qdqi_runtime *runtime, struct qdq_error *err)
{
    const struct qdqi_session_options options = {
        .dev = a->context->dev, .one_thread = qdqi_attempt_runs_fast(a)};
    const struct qdq_model *model = a->context->original;
    struct opened opened = {0};
    enum qdq_code code =
        qdqi_session_open(runtime, model, model->proto, &options, &opened.session, err);
    if (!code)
        code = judge(task, a, &opened, true, &task->of_float, err);
    close_model(&opened);
    return code || task->judge.metric ? code : check_chance(task, err);
}

/* Checks that what the task needs is there. */
static enum qdq_code
check_work(const struct qdqi_context *c, struct qdq_error *err)
{
    if (!c->evaluation)
        return qdq_error_set(
            err, QDQ_NO_CALIBRATION, QDQ_AT_POINTER, "/task",
            "the task needs data to judge by, and no evaluation was sent");
    if (c->asked->task.kind == QDQ_TASK_METRIC &&
        (!c->work->judging || c->work->judging->metric < 0))
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, "/task/model",
                             "the metric was not sent");
    return QDQ_OK;
}

static enum qdq_code
begin(struct qdqi_task *task, const struct qdqi_attempt *a, struct qdq_error *err)
{
    const struct qdqi_context *c = a->context;
    struct qdqi_runtime *runtime = NULL;
    enum qdq_code code = check_work(c, err);
    if (!code)
        code = qdqi_engine_runtime(c->engine, &runtime, err);
    if (!code && c->asked->task.kind == QDQ_TASK_METRIC)
        code = qdqi_metric_open(c->work->judging, runtime, &task->judge.metric, err);
    if (!code)
        code = qdqi_judge_init(&task->judge, &c->asked->task, &c->original->info,
                               c->evaluation, task->arena, err);
    if (code)
        return code;
    task->judge.answers = &task->float_answers;
    code = judge_float(task, a, runtime, err);
    task->judge.answers = NULL;
    return code;
}

enum qdq_code
qdqi_task_begin(const struct qdqi_attempt *a, struct qdqi_task **ret,
                struct qdq_error *err)
{
    if (!a->context->asked->task.asked)
        return QDQ_OK;
    struct qdqi_task *task = calloc(1, sizeof *task);
    if (!task || !(task->arena = qdqi_arena_new())) {
        free(task);
        return qdqi_no_memory(err);
    }
    enum qdq_code code = begin(task, a, err);
    if (code)
        qdqi_task_close(&task);
    else
        *ret = task;
    return code;
}

void
qdqi_task_close(struct qdqi_task **task)
{
    if (!*task)
        return;
    qdqi_judge_fini(&(*task)->judge);
    free((*task)->float_answers.rows);
    free((*task)->result_answers.rows);
    qdqi_metric_close(&(*task)->judge.metric);
    qdqi_arena_free(&(*task)->arena);
    free(*task);
    *task = NULL;
}

/* --- the result ----------------------------------------------------------------- */

/* Opens the result in the target's runtime, if it runs here. */
static enum qdq_code
open_deployed(const struct qdqi_attempt *a, const struct qdq_model *quantized,
              struct opened *ret, struct qdq_task_report *to, struct qdq_error *err)
{
    const struct qdqi_deploy_options options = {0};
    struct qdqi_deploy deploy;
    struct qdq_error why = {0};
    if (a->float16.dtype == QDQI_BFLOAT16 || !qdqi_deployed_runs(a->context) ||
        qdqi_deployed_runtime(a->context, &deploy, &why) ||
        qdqi_deploy_model(&deploy, quantized, &options, &ret->deployed, &why))
        return QDQ_OK;
    to->deployed = true;
    to->runtime = qdqi_arena_strdup(a->arena, qdqi_deploy_name(&deploy));
    to->version = qdqi_arena_strdup(a->arena, deploy.ops->version(deploy.place));
    return to->runtime && to->version ? QDQ_OK : qdqi_no_memory(err);
}

/* Returns the name of the runtime that runs the engine's own sessions. */
static const char *
calibrating_runtime(void)
{
    const struct qdqi_deploy_ops *ops;
    for (size_t i = 0; (ops = qdqi_deploy_row(i)); i++)
        if (ops->calibrates)
            return ops->row->name;
    return "";
}

/* Opens the result, by the literal arithmetic where its runtime is not here. */
static enum qdq_code
open_result(const struct qdqi_attempt *a, const struct qdq_model *quantized,
            struct opened *ret, struct qdq_task_report *to, struct qdq_error *err)
{
    const struct qdqi_session_options options = {
        .dev = a->context->dev, .one_thread = qdqi_attempt_runs_fast(a)};
    struct qdqi_runtime *runtime;
    enum qdq_code code = open_deployed(a, quantized, ret, to, err);
    if (code || ret->deployed.ops)
        return code;
    if ((code = qdqi_engine_runtime(a->context->engine, &runtime, err)))
        return code;
    to->runtime = calibrating_runtime();
    to->version = qdqi_arena_strdup(a->arena, qdqi_runtime_version(runtime));
    return to->version ? qdqi_session_open(runtime, quantized, quantized->proto,
                                           &options, &ret->session, err)
                       : qdqi_no_memory(err);
}

/* Judges an open model by the attempt. *to gets what ran it. */
static enum qdq_code
judge_quantized(struct qdqi_task *task, const struct qdqi_attempt *a,
                const struct qdq_model *quantized, bool interval,
                struct qdq_task_report *to, struct qdq_error *err)
{
    struct opened opened = {0};
    enum qdq_code code = open_result(a, quantized, &opened, to, err);
    if (!code)
        code = judge(task, a, &opened, interval, &task->of_result, err);
    close_model(&opened);
    if (!code)
        task->drop = qdqi_quotient(task->of_float, fractions_of(task)) -
                     qdqi_quotient(task->of_result, fractions_of(task));
    return code;
}

static enum qdq_code
judge_result(struct qdqi_task *task, const struct qdqi_attempt *a,
             const struct qdqi_result *result, struct qdq_task_report *to,
             struct qdq_error *err)
{
    const struct qdq_work *work = a->context->work;
    const struct qdq_external data = {work->output_data_name, work->output_data};
    struct qdq_model *quantized = NULL;
    enum qdq_code code = qdq_model_open_files(
        work->output, &data, result->report->external_bytes > 0, &quantized, err);
    if (!code)
        code = judge_quantized(task, a, quantized, true, to, err);
    qdq_model_free(&quantized);
    return code;
}

enum qdq_code
qdqi_task_try(struct qdqi_task *task, const struct qdqi_attempt *a,
              const struct qdq_model *model, double *ret_drop, struct qdq_error *err)
{
    struct qdq_task_report unused;
    enum qdq_code code = judge_quantized(task, a, model, false, &unused, err);
    *ret_drop = code ? NAN : task->drop;
    return code;
}

enum qdq_code
qdqi_task_finish(struct qdqi_task *task, const struct qdqi_attempt *a,
                 struct qdqi_result *result, struct qdq_error *err)
{
    if (!task)
        return QDQ_OK;
    const size_t n = fractions_of(task);
    char processor[64];
    struct qdq_task_report *to = qdqi_arena_alloc(a->arena, sizeof *to);
    if (!to)
        return qdqi_no_memory(err);
    task->judge.answers = &task->result_answers;
    enum qdq_code code = judge_result(task, a, result, to, err);
    if (!code)
        code = qdqi_confusions(&task->float_answers, &task->result_answers, a->arena,
                               to, err);
    if (code)
        return code;
    qdqi_host_processor(processor, sizeof processor);
    const struct qdqi_interval interval =
        task->judge.task->once
            ? qdqi_jackknife(task->drop, task->of_float + 1, task->of_result + 1)
            : qdqi_bootstrap(task->of_float, task->of_result, n);
    to->kind = task->judge.task->kind;
    to->float_figure = qdqi_quotient(task->of_float, n);
    to->quantized = qdqi_quotient(task->of_result, n);
    to->drop = to->float_figure - to->quantized;
    to->low = interval.low;
    to->high = interval.high;
    to->samples = task->samples;
    to->processor = qdqi_arena_strdup(a->arena, processor);
    result->report->task = to;
    return to->processor ? QDQ_OK : qdqi_no_memory(err);
}
