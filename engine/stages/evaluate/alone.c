/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/alone.h"

#include "stages/evaluate/deployed.h"
#include "stages/evaluate/enough.h"
#include "stages/evaluate/judged.h"
#include "stages/evaluate/traced.h"
#include "qdq/targets.h"

enum { MOST = 16 << 20 }; /* bytes of the outputs that are kept for the evaluation */

bool
qdqi_compares_alone(const struct qdqi_job *job)
{
    const struct qdq_spec *spec = job->work->spec;
    const struct qdqi_deploy_ops *ops =
        qdqi_engine_ops(job->engine, spec->target->runtime);
    return ops && !ops->calibrates && ops->nodes && spec->evaluate != QDQ_NO &&
           !qdqi_asks_for_figures(spec) && job->work->dataset >= 0 && !job->dev &&
           !qdqi_halves_matter(job) && qdqi_deployed_runs(job);
}

void
qdqi_alone_widen(const struct qdqi_job *job, int64_t available,
                 struct qdqi_reference_runs *runs)
{
    struct qdqi_feed_options samples = {.batch = runs->samples.batch};
    if (!qdqi_compares_alone(job))
        return;
    qdqi_choose_samples(job, available, &samples);
    const int64_t end =
        samples.max_samples ? samples.first + samples.max_samples : available;
    const int64_t skipped = runs->samples.first - samples.first;
    if (skipped < 0 || skipped + runs->needed > end - samples.first)
        return;
    runs->samples = samples;
    runs->needed += skipped;
    runs->most = MOST;
}

/* A run of the result, whose failure costs the figures alone. */
struct one_run {
    const struct qdqi_output *outputs;
    size_t n;
    enum qdq_code code;
    struct qdq_error why;
};

static void
run_once(const struct qdqi_job *job, struct qdqi_feed *feed,
         const struct qdqi_deployed_model *deployed, const struct qdqi_input *inputs,
         struct one_run *r)
{
    r->code = qdqi_deployed_model_run(deployed, inputs, job->model->info.n_inputs,
                                      &r->outputs, &r->n, NULL, &r->why);
    if (r->code)
        r->code = qdqi_feed_name_samples(feed, r->code, &r->why);
}

/* Adds the outputs of a run to the figures. */
static void
add_run(struct qdqi_compared *to, const struct qdqi_kept_output *f, size_t n_f,
        const struct one_run *r, int64_t samples, bool *not_float)
{
    for (size_t i = 0; i < n_f; i++)
        not_float[i] = qdqi_is_known_and_not_float(f[i].dtype);
    for (size_t i = 0; i < n_f && i < r->n; i++) {
        const struct qdqi_output output = {.dtype = f[i].dtype,
                                           .rank = f[i].last ? 1 : 0,
                                           .shape = &f[i].last,
                                           .data = f[i].data,
                                           .n = f[i].n};
        struct qdqi_compared one = {to->metrics + i, to->measured + i, to->why + i};
        qdqi_compared_add(&one, &output, &r->outputs[i], 1, samples);
    }
}

static enum qdq_code
run_all(struct qdqi_job *job, const struct qdqi_reference *f, struct qdqi_feed *feed,
        const struct qdqi_deployed_model *deployed, struct qdqi_compared *to,
        bool *not_float, struct one_run *r, struct qdq_error *err)
{
    const struct qdqi_input *inputs;
    int64_t samples;
    for (size_t i = 0; i < f->n_runs; i++) {
        /* The progress of the stage is that of the runs in ONNX Runtime, which follow. */
        enum qdq_code code =
            qdqi_job_progress(job, QDQ_STAGE_EVALUATE, 0, (uint64_t)f->samples, err);
        if (code || (code = qdqi_feed_next(feed, &inputs, &samples, err)))
            return code;
        run_once(job, feed, deployed, inputs, r);
        if (r->code)
            return QDQ_OK;
        add_run(to, qdqi_reference_run(f, i), f->n_outputs, r, samples, not_float);
    }
    return QDQ_OK;
}

/* Fills in the report. */
static enum qdq_code
report(struct qdqi_job *job, const struct qdqi_compared *from, int64_t samples,
       const struct qdqi_deployed_model *deployed, struct qdq_error *err)
{
    const struct qdq_output_report *outputs;
    size_t n;
    enum qdq_code code = qdqi_compared_finish(job, from, &outputs, &n, err);
    if (code || (code = qdqi_deployed_report(job, outputs, n, err)))
        return code;
    job->report->view.evaluated_samples = samples;
    return qdqi_keep_nodes(job, deployed, err);
}

static enum qdq_code
compare(struct qdqi_job *job, const struct qdqi_reference *f,
        const struct qdqi_deployed_model *deployed, struct qdqi_compared *to,
        bool *not_float, struct qdqi_alone *ret, struct qdq_error *err)
{
    struct qdqi_feed *feed = NULL;
    struct one_run r = {0};
    enum qdq_code code =
        qdqi_feed_open(&job->fixed, job->dataset, &f->options, &feed, err);
    if (!code)
        code = run_all(job, f, feed, deployed, to, not_float, &r, err);
    qdqi_feed_close(&feed);
    if (code || r.code == QDQ_NO_MEMORY)
        return code ? code : qdqi_no_memory(err);
    if (r.code)
        return qdqi_deployed_warn(job, r.why.text, err);
    ret->has_figures = true;
    return report(job, to, f->samples, deployed, err);
}

/* Returns the outputs of the float model: those that the recipe has left, or new ones. */
static enum qdq_code
get_reference(struct qdqi_job *job, const struct qdqi_feed_options *samples,
              struct qdqi_reference **ret, struct qdq_error *err)
{
    const struct qdqi_reference_runs runs = {.samples = *samples, .most = MOST};
    *ret = qdqi_judged_take_reference(job, samples);
    return *ret ? QDQ_OK : qdqi_reference_open(job, &runs, ret, err);
}

enum qdq_code
qdqi_compare_alone(struct qdqi_job *job, const struct qdq_model *quantized,
                   const struct qdqi_feed_options *samples, struct qdqi_compared *to,
                   bool *not_float, struct qdqi_alone *ret, struct qdq_error *err)
{
    struct qdqi_reference *f = NULL;
    struct qdqi_deployed_model deployed = {0};
    *ret = (struct qdqi_alone){0};
    if (!qdqi_compares_alone(job))
        return QDQ_OK;
    enum qdq_code code = get_reference(job, samples, &f, err);
    if (!code && f->is_whole) {
        code = qdqi_deployed_open(job, quantized, &deployed, err);
        ret->has_run = !code;
        if (deployed.ops)
            code = compare(job, f, &deployed, to, not_float, ret, err);
    }
    qdqi_deployed_model_close(&deployed);
    qdqi_reference_close(&f);
    return code;
}
