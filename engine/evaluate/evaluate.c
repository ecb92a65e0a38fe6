/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source and result run side by side over samples; what comes out is compared and
 * dropped. The result is opened from the very bytes that were written.
 */
#include "config.h"
#include "stages.h"

#include "evaluate/gates.h"
#include "evaluate/metrics.h"

#include <string.h>

struct evaluation {
    struct qdqi_job *job;
    struct qdq_model *quantized;
    struct qdqi_session *f, *q;
    struct qdqi_feed *feed;
    struct qdqi_metrics *metrics; /* by output */
    bool *measured;               /* by output: float32 in every run */
    bool *differs;                /* by output: the two runs could not be compared */
    bool *not_float;              /* by output: no floating point at all */
};

void
qdqi_choose_samples(const struct qdqi_job *job, int64_t available,
                    struct qdqi_feed_options *options)
{
    int64_t wanted = job->work->spec->evaluate_samples;
    int64_t fresh = available - job->calibrated_samples;
    options->max_samples = wanted;
    if (fresh >= (wanted ? wanted : 1))
        options->first = job->calibrated_samples;
    else if (wanted && wanted < available)
        options->first = available - wanted;
}

static enum qdq_code
open_feed(struct evaluation *e, struct qdq_error *err)
{
    struct qdqi_job *job = e->job;
    struct qdqi_feed_options options = {.batch = job->work->spec->calibration.batch};
    const struct qdq_model_info *info = &job->fixed;
    enum qdq_code code = qdqi_feed_open(info, job->dataset, &options, &e->feed, err);
    if (code)
        return code;
    qdqi_choose_samples(job, qdqi_feed_available(e->feed), &options);
    qdqi_feed_close(&e->feed);
    return qdqi_feed_open(info, job->dataset, &options, &e->feed, err);
}

static enum qdq_code
open_sessions(struct evaluation *e, struct qdqi_runtime *runtime, struct qdq_error *err)
{
    struct qdqi_job *job = e->job;
    const struct qdqi_session_options options = {.threads = job->engine->threads};
    enum qdq_code code;
    if ((code = qdq_model_open(job->work->output, &e->quantized, err)) ||
        (code = qdqi_session_open(runtime, job->original, job->original->proto,
                                  &options, &e->f, err)))
        return code;
    return qdqi_session_open(runtime, e->quantized, e->quantized->proto, &options,
                             &e->q, err);
}

/* A type that is known, and not a floating one. */
static bool
is_no_float(enum qdqi_dtype dtype)
{
    const char *name = qdqi_dtype_name((int)dtype);
    return *name && strncmp(name, "float", 5) != 0 && strcmp(name, "bfloat16") != 0;
}

static enum qdq_code
compare_run(struct evaluation *e, const struct qdqi_input *inputs, int64_t samples,
            struct qdq_error *err)
{
    const struct qdqi_output *f, *q;
    size_t n, n_q, n_inputs = e->job->model->info.n_inputs;
    enum qdq_code code;
    if ((code = qdqi_session_run(e->f, inputs, n_inputs, &f, &n, err)) ||
        (code = qdqi_session_run(e->q, inputs, n_inputs, &q, &n_q, err)))
        return code;
    for (size_t i = 0; i < n && i < n_q; i++) {
        e->not_float[i] = is_no_float(f[i].dtype);
        if (f[i].dtype != QDQI_FLOAT32 || q[i].dtype != QDQI_FLOAT32 ||
            f[i].n != q[i].n) {
            e->differs[i] = true;
            continue;
        }
        size_t last = f[i].rank ? (size_t)f[i].shape[f[i].rank - 1] : 0;
        qdqi_metrics_update(&e->metrics[i], f[i].data, q[i].data, f[i].n, samples,
                            last);
        e->measured[i] = true;
    }
    return QDQ_OK;
}

static enum qdq_code
compare_all(struct evaluation *e, struct qdq_error *err)
{
    const struct qdqi_input *inputs;
    int64_t samples, done = 0, total = qdqi_feed_samples(e->feed);
    enum qdq_code code;
    for (;;) {
        if ((code = qdqi_job_progress(e->job, QDQ_STAGE_EVALUATE, (uint64_t)done,
                                      (uint64_t)total, err)) ||
            (code = qdqi_feed_next(e->feed, &inputs, &samples, err)) || samples == 0 ||
            (code = compare_run(e, inputs, samples, err)))
            break;
        done += samples;
    }
    e->job->report->view.evaluated_samples = done;
    return code;
}

static enum qdq_code
report_outputs(struct evaluation *e, struct qdq_error *err)
{
    const struct qdq_model_info *info = &e->job->model->info;
    struct qdq_output_report *outputs =
        qdqi_arena_array(e->job->arena, info->n_outputs, sizeof *outputs);
    if (!outputs)
        return qdqi_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < info->n_outputs; i++)
        if (e->measured[i] && !e->differs[i])
            qdqi_metrics_finish(&e->metrics[i], info->outputs[i].name, &outputs[n++]);
    e->job->report->view.outputs = outputs;
    e->job->report->view.n_outputs = n;
    return qdqi_gates_judge(&e->job->work->spec->accept, info, e->not_float,
                            &e->job->report->view, e->job->arena, err);
}

enum qdq_code
qdqi_evaluate(struct qdqi_job *job, struct qdqi_runtime *runtime, struct qdq_error *err)
{
    size_t n = job->model->info.n_outputs;
    struct evaluation e = {
        .job = job,
        .metrics = qdqi_arena_array(job->scratch, n, sizeof *e.metrics),
        .measured = qdqi_arena_array(job->scratch, n, sizeof *e.measured),
        .differs = qdqi_arena_array(job->scratch, n, sizeof *e.differs),
        .not_float = qdqi_arena_array(job->scratch, n, sizeof *e.not_float)};
    if (!e.metrics || !e.measured || !e.differs || !e.not_float)
        return qdqi_no_memory(err);
    enum qdq_code code;
    if (!(code = open_feed(&e, err)) && !(code = open_sessions(&e, runtime, err)) &&
        !(code = compare_all(&e, err)))
        code = report_outputs(&e, err);
    qdqi_session_close(&e.f);
    qdqi_session_close(&e.q);
    qdq_model_free(&e.quantized);
    qdqi_feed_close(&e.feed);
    return code;
}
