/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/deployed_first.h"

#include "stages/evaluate/deployed.h"
#include "stages/evaluate/sample_choice.h"
#include "stages/evaluate/last_candidate.h"
#include "stages/evaluate/kernels/traced_kernels.h"

enum {
    MOST_KEPT_BYTES = 16 << 20
}; /* bytes of the outputs that are kept for the evaluation */

bool
qdqi_compares_deployed_first(const struct qdqi_attempt *a)
{
    const struct qdq_spec *spec = a->spec;
    const struct qdqi_deploy_ops *ops =
        qdqi_engine_ops(a->context->engine, spec->target->runtime);
    return ops && !ops->calibrates && ops->nodes && spec->evaluate != QDQ_NO &&
           !qdqi_asks_for_figures(spec) && a->context->work->dataset >= 0 &&
           !a->context->dev && !a->context->evaluation && !qdqi_halves_matter(a) &&
           a->float16.dtype != QDQI_BFLOAT16 && qdqi_deployed_runs(a->context);
}

void
qdqi_deployed_first_widen(const struct qdqi_attempt *a, int64_t available,
                          struct qdqi_reference_runs *runs)
{
    struct qdqi_feed_options samples = {.batch = runs->samples.batch};
    if (!qdqi_compares_deployed_first(a))
        return;
    qdqi_choose_samples(a, available, &samples);
    const int64_t end =
        samples.max_samples ? samples.first + samples.max_samples : available;
    const int64_t skipped = runs->samples.first - samples.first;
    if (skipped < 0 || skipped + runs->needed > end - samples.first)
        return;
    runs->samples = samples;
    runs->needed += skipped;
    runs->most = MOST_KEPT_BYTES;
}

/* A run of the result, whose failure costs the figures alone. */
struct one_run {
    const struct qdqi_output *outputs;
    size_t n;
    enum qdq_code code;
    struct qdq_error why;
};

static void
run_once(const struct qdqi_attempt *a, struct qdqi_feed *feed,
         const struct qdqi_deployed_model *deployed, const struct qdqi_input *inputs,
         struct one_run *r)
{
    r->code = qdqi_deployed_model_run(deployed, inputs, a->model->info.n_inputs,
                                      &r->outputs, &r->n, NULL, &r->why);
    if (r->code)
        r->code = qdqi_feed_name_samples(feed, r->code, &r->why);
}

/* Adds the outputs of a run to the figures. */
static void
add_run(struct qdqi_output_figures *to, const struct qdqi_kept_output *f, size_t n_f,
        const struct one_run *r, int64_t samples, const struct qdqi_input *inputs,
        bool *not_float)
{
    for (size_t i = 0; i < n_f; i++)
        not_float[i] = qdqi_is_known_and_not_float(f[i].dtype);
    for (size_t i = 0; i < n_f && i < r->n; i++) {
        const struct qdqi_output output = {.dtype = f[i].dtype,
                                           .rank = f[i].rank,
                                           .shape = f[i].shape,
                                           .data = f[i].data,
                                           .n = f[i].n};
        struct qdqi_output_figures one = {to->metrics + i, to->measured + i,
                                          to->why + i, to->has_other_size + i};
        qdqi_output_figures_add(&one, &output, &r->outputs[i], 1, samples, inputs);
    }
}

static enum qdq_code
run_all(const struct qdqi_attempt *a, const struct qdqi_reference *f,
        struct qdqi_feed *feed, const struct qdqi_deployed_model *deployed,
        struct qdqi_output_figures *to, bool *not_float, struct one_run *r,
        struct qdq_error *err)
{
    const struct qdqi_input *inputs;
    int64_t samples;
    for (size_t i = 0; i < f->n_runs; i++) {
        /* The progress of the stage is that of the runs in ONNX Runtime, which follow. */
        enum qdq_code code =
            qdqi_attempt_progress(a, QDQ_STAGE_EVALUATE, 0, (uint64_t)f->samples, err);
        if (code || (code = qdqi_feed_next(feed, &inputs, &samples, err)))
            return code;
        run_once(a, feed, deployed, inputs, r);
        if (r->code)
            return QDQ_OK;
        add_run(to, qdqi_reference_run(f, i), f->n_outputs, r, samples, inputs,
                not_float);
    }
    return QDQ_OK;
}

/* Fills in the report. */
static enum qdq_code
report(const struct qdqi_attempt *a, struct qdqi_result *result,
       const struct qdqi_output_figures *from, int64_t samples,
       const struct qdqi_deployed_model *deployed, struct qdq_error *err)
{
    const struct qdq_output_report *outputs;
    size_t n;
    enum qdq_code code = qdqi_output_figures_finish(a, from, &outputs, &n, err);
    if (code || (code = qdqi_deployed_report(a, result, outputs, n, err)))
        return code;
    result->report->evaluated_samples = samples;
    return qdqi_keep_nodes(result, deployed, err);
}

static enum qdq_code
compare(const struct qdqi_attempt *a, struct qdqi_result *result,
        const struct qdqi_reference *f, const struct qdqi_deployed_model *deployed,
        struct qdqi_output_figures *to, bool *not_float,
        struct qdqi_deployed_first *ret, struct qdq_error *err)
{
    struct qdqi_feed *feed = NULL;
    struct one_run r = {0};
    enum qdq_code code =
        qdqi_feed_open(&a->fixed, a->context->dataset, &f->options, &feed, err);
    if (!code)
        code = run_all(a, f, feed, deployed, to, not_float, &r, err);
    qdqi_feed_close(&feed);
    if (code || r.code == QDQ_NO_MEMORY)
        return code ? code : qdqi_no_memory(err);
    if (r.code)
        return qdqi_deployed_warn(a, r.why.text, err);
    ret->has_figures = true;
    return report(a, result, to, f->samples, deployed, err);
}

/* Returns the outputs of the float model: those that the recipe has left, or new ones. */
static enum qdq_code
get_reference(const struct qdqi_attempt *a, const struct qdqi_feed_options *samples,
              struct qdqi_reference **ret, struct qdq_error *err)
{
    const struct qdqi_reference_runs runs = {.samples = *samples,
                                             .most = MOST_KEPT_BYTES};
    *ret = qdqi_last_candidate_take_reference(a->context, samples);
    return *ret ? QDQ_OK : qdqi_reference_open(a, &runs, ret, err);
}

enum qdq_code
qdqi_compare_deployed_first(const struct qdqi_attempt *a, struct qdqi_result *result,
                            const struct qdq_model *quantized,
                            const struct qdqi_feed_options *samples,
                            struct qdqi_output_figures *to, bool *not_float,
                            struct qdqi_deployed_first *ret, struct qdq_error *err)
{
    struct qdqi_reference *f = NULL;
    struct qdqi_deployed_model deployed = {0};
    *ret = (struct qdqi_deployed_first){0};
    if (!qdqi_compares_deployed_first(a))
        return QDQ_OK;
    enum qdq_code code = get_reference(a, samples, &f, err);
    if (!code && f->is_whole) {
        code = qdqi_deployed_open(a, result, quantized, &deployed, err);
        ret->has_run = !code;
        if (deployed.ops)
            code = compare(a, result, f, &deployed, to, not_float, ret, err);
    }
    qdqi_deployed_model_close(&deployed);
    qdqi_reference_close(&f);
    return code;
}
