/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/plausible/plausible.h"

#include "plan/gates/verdict.h"
#include "stages/slices/classes.h"
#include "stages/plausible/checks.h"

#include <math.h>
#include <string.h>

/* Makes the figures of a model, without any sample. */
static enum qdq_code
begin(const struct qdqi_attempt *a, const struct qdqi_probed *probed,
      struct qdqi_data_figures *f, struct qdq_error *err)
{
    const struct qdq_model *model = a->context->original;
    f->n_inputs = model->info.n_inputs;
    f->n_answers = model->info.n_outputs;
    f->n_probes = probed->n;
    f->inputs = qdqi_arena_array(f->arena, f->n_inputs, sizeof *f->inputs);
    f->answers = qdqi_arena_array(f->arena, f->n_answers, sizeof *f->answers);
    if (!f->inputs || !f->answers)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < f->n_inputs; i++)
        f->inputs[i] = (struct qdqi_input_figures){
            .name = model->info.inputs[i].name, .low = INFINITY, .high = -INFINITY};
    for (size_t i = 0; i < f->n_answers; i++) {
        f->answers[i].name = model->info.outputs[i].name;
        f->answers[i].lists_classes = qdqi_output_may_list_classes(model, i);
    }
    for (size_t i = 0; i < f->n_probes; i++)
        f->probes[i].probe = probed->probes[i];
    return QDQ_OK;
}

static enum qdq_code
run_all(const struct qdqi_attempt *a, struct qdqi_session *session,
        struct qdqi_feed *feed, struct qdqi_data_figures *f, struct qdq_error *err)
{
    const struct qdqi_input *inputs;
    const struct qdqi_output *outputs;
    int64_t samples;
    /* a single sample would be taken for all that there is */
    while (f->samples < 2 || !qdqi_time_is_up(a->context, a->spec->evaluate_seconds)) {
        size_t n;
        enum qdq_code code = qdqi_context_still_wanted(a->context, err);
        if (code || (code = qdqi_feed_next(feed, &inputs, &samples, err)) ||
            samples == 0 ||
            (code =
                 qdqi_session_run(session, inputs, f->n_inputs, &outputs, &n, err)) ||
            (code = qdqi_data_figures_add(f, (size_t)samples, inputs, outputs, err)))
            return code;
    }
    return QDQ_OK;
}

/* Runs the float model. */
static enum qdq_code
collect(const struct qdqi_attempt *a, struct qdqi_data_figures *f,
        struct qdq_error *err)
{
    const struct qdqi_feed_options samples = {.batch = 1,
                                              .max_samples = QDQI_MOST_PROBED_SAMPLES};
    const struct qdqi_session_options options = {
        .dev = a->context->dev, .one_thread = qdqi_attempt_runs_fast(a)};
    const struct qdq_model *model = a->context->original;
    struct qdqi_runtime *runtime = NULL;
    struct qdqi_session *session = NULL;
    struct qdqi_feed *feed = NULL;
    struct qdqi_probed probed;
    enum qdq_code code = qdqi_probe(model, f->arena, &probed, err);
    if (code || (code = begin(a, &probed, f, err)))
        return code;
    probed.model.graph = &probed.graph;
    code = qdqi_feed_open(&a->fixed, a->context->dataset, &samples, &feed, err);
    if (!code)
        code = qdqi_engine_runtime(a->context->engine, &runtime, err);
    if (!code)
        code =
            qdqi_session_open(runtime, model, &probed.model, &options, &session, err);
    if (!code)
        code = run_all(a, session, feed, f, err);
    qdqi_session_close(&session);
    qdqi_feed_close(&feed);
    return code;
}

#define LEAST_PERCENTILE 50.0

static enum qdq_code
warn_percentile(const struct qdqi_attempt *a, struct qdq_error *err)
{
    const struct qdq_calibration_spec *c = &a->spec->calibration;
    if (strcmp(c->method, "percentile") != 0 || c->percentile >= LEAST_PERCENTILE)
        return QDQ_OK;
    return qdqi_attempt_warn(
        a, err, QDQI_DATA_IMPLAUSIBLE, NULL,
        "/calibration/percentile: %.9g keeps less than half of the "
        "values of each activation; a share of 99 and more is usual",
        c->percentile);
}

static enum qdq_code
warn_all(const struct qdqi_attempt *a, const struct qdqi_data_figures *f,
         struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    struct qdqi_finding finding;
    for (size_t i = 0; !code && i < qdqi_data_checks(); i++)
        if (qdqi_data_check(f, i, &finding))
            code = qdqi_attempt_warn(a, err, QDQI_DATA_IMPLAUSIBLE, finding.node, "%s",
                                     finding.text);
    return code;
}

enum qdq_code
qdqi_warn_implausible(const struct qdqi_attempt *a, struct qdq_error *err)
{
    struct qdqi_data_figures figures = {.arena = qdqi_arena_new()};
    struct qdq_error why = {0};
    if (!figures.arena)
        return qdqi_no_memory(err);
    enum qdq_code code = warn_percentile(a, err);
    if (!code)
        code = collect(a, &figures, &why);
    if (code == QDQ_NO_MEMORY || code == QDQ_CANCELLED)
        (void)!qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    else
        code = warn_all(a, &figures, err);
    qdqi_arena_free(&figures.arena);
    return code;
}
