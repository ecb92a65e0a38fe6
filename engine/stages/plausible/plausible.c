/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/plausible/plausible.h"

#include "plan/gates/verdict.h"
#include "stages/attempt/float_outputs.h"
#include "stages/attempt/kept_times.h"
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

/* The float model with probes, and its part that makes them: each opened when it is needed. */
struct runs {
    const struct qdqi_attempt *attempt;
    struct qdqi_probed probed;
    struct qdqi_session *whole, *front;
    struct qdqi_output *outputs; /* those that the job has, and then the probes */
};

static enum qdq_code
open_session(const struct runs *r, const Onnx__ModelProto *model,
             struct qdqi_session **ret, struct qdq_error *err)
{
    const struct qdqi_attempt *a = r->attempt;
    const struct qdqi_session_options options = {
        .dev = a->context->dev, .one_thread = qdqi_attempt_runs_fast(a)};
    struct qdqi_runtime *runtime = NULL;
    enum qdq_code code =
        *ret ? QDQ_OK : qdqi_engine_runtime(a->context->engine, &runtime, err);
    return code || *ret ? code
                        : qdqi_session_open(runtime, a->context->original, model,
                                            &options, ret, err);
}

/* Puts the probes behind outputs that the job has. */
static enum qdq_code
add_probes(struct runs *r, const struct qdqi_input *inputs,
           const struct qdqi_output *kept, size_t n, struct qdq_error *err)
{
    const struct qdqi_output *probes;
    size_t n_probes;
    memcpy(r->outputs, kept, n * sizeof *kept);
    enum qdq_code code = open_session(r, &r->probed.front, &r->front, err);
    if (!code)
        code = qdqi_session_run(r->front, inputs,
                                r->attempt->context->original->info.n_inputs, &probes,
                                &n_probes, err);
    if (!code)
        memcpy(r->outputs + n, probes, n_probes * sizeof *probes);
    return code;
}

/* Makes the outputs of the model, and the probes where they are looked at. */
static enum qdq_code
run_once(struct runs *r, const struct qdqi_data_figures *f,
         const struct qdqi_input *inputs, int64_t first, int64_t samples,
         const struct qdqi_output **ret, struct qdq_error *err)
{
    const struct qdqi_output *kept =
        qdqi_float_outputs_of(r->attempt->context->float_outputs, first, samples);
    const bool probes = f->n_probes > 0 && f->samples < QDQI_SAMPLES_WITH_PROBES;
    size_t n;
    *ret = kept && probes ? r->outputs : kept;
    if (kept && (!probes || r->probed.front_graph.n_node > 0))
        return probes ? add_probes(r, inputs, kept, f->n_answers, err) : QDQ_OK;
    enum qdq_code code = open_session(r, &r->probed.model, &r->whole, err);
    return code ? code : qdqi_session_run(r->whole, inputs, f->n_inputs, ret, &n, err);
}

static enum qdq_code
run_all(struct runs *r, struct qdqi_feed *feed, struct qdqi_data_figures *f,
        struct qdq_error *err)
{
    const struct qdqi_attempt *a = r->attempt;
    const struct qdqi_input *inputs;
    const struct qdqi_output *outputs;
    int64_t samples;
    /* a single sample would be taken for all that there is */
    while (f->samples < 2 || !qdqi_time_is_up(a->context, a->spec->evaluate_seconds)) {
        enum qdq_code code = qdqi_context_still_wanted(a->context, err);
        if (code || (code = qdqi_feed_next(feed, &inputs, &samples, err)) ||
            samples == 0 ||
            (code = run_once(r, f, inputs, qdqi_feed_run_first(feed), samples, &outputs,
                             err)) ||
            (code = qdqi_data_figures_add(f, (size_t)samples, inputs, outputs, err)))
            return code;
    }
    return QDQ_OK;
}

/* Looks at the data, and at what the float model makes of them. */
static enum qdq_code
collect(const struct qdqi_attempt *a, struct qdqi_data_figures *f,
        struct qdq_error *err)
{
    const struct qdqi_feed_options samples = {.batch = 1,
                                              .max_samples = QDQI_MOST_PROBED_SAMPLES};
    const struct qdq_model *model = a->context->original;
    struct runs r = {.attempt = a};
    struct qdqi_feed *feed = NULL;
    enum qdq_code code = qdqi_probe(model, f->arena, &r.probed, err);
    if (code || (code = begin(a, &r.probed, f, err)))
        return code;
    r.outputs =
        qdqi_arena_array(f->arena, f->n_answers + f->n_probes + 1, sizeof *r.outputs);
    if (!r.outputs)
        return qdqi_no_memory(err);
    code = qdqi_feed_open(&a->fixed, a->context->dataset, &samples, &feed, err);
    if (!code)
        code = run_all(&r, feed, f, err);
    qdqi_session_close(&r.whole);
    qdqi_session_close(&r.front);
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

/* --- kept findings ------------------------------------------------------------ */

/* Returns the key of the findings, which depend on the data and the float model alone. */
static uint64_t
key_of_findings(const struct qdqi_attempt *a)
{
    enum { FINDINGS = 1 };
    return qdqi_kept_key_add(qdqi_kept_key_of_data(a), FINDINGS);
}

/* Warns as an earlier job of the same model and data did. *ret is false where none tells. The words are
   each warning's node, which may be empty, and its text. */
static enum qdq_code
warn_as_before(const struct qdqi_attempt *a, bool *ret, struct qdq_error *err)
{
    struct qdqi_kept_times *kept = NULL;
    const char *const *words;
    size_t n;
    enum qdq_code code =
        qdqi_keeps_figures(a) ? qdqi_kept_times_get(a, &kept, err) : QDQ_OK;
    *ret = !code && kept &&
           qdqi_kept_times_take_words(kept, key_of_findings(a), &words, &n) &&
           n % 2 == 0;
    for (size_t i = 0; !code && *ret && i < n; i += 2)
        code = qdqi_attempt_warn(a, err, QDQI_DATA_IMPLAUSIBLE,
                                 *words[i] ? words[i] : NULL, "%s", words[i + 1]);
    return code;
}

/* Keeps the warnings from that one on. */
static enum qdq_code
keep_findings(const struct qdqi_attempt *a, size_t first, struct qdq_error *err)
{
    const struct qdqi_warnings *list = &a->warnings->list;
    struct qdqi_kept_times *kept = NULL;
    const char **words =
        qdqi_arena_array(a->scratch, 2 * (list->n - first) + 1, sizeof *words);
    size_t n = 0;
    if (!qdqi_keeps_figures(a) || a->spec->evaluate_seconds > 0)
        return QDQ_OK;
    enum qdq_code code =
        words ? qdqi_kept_times_get(a, &kept, err) : qdqi_no_memory(err);
    for (size_t i = first; !code && i < list->n; i++) {
        words[n++] = list->rows[i].node ? list->rows[i].node : "";
        words[n++] = list->rows[i].detail;
    }
    return code ? code
                : qdqi_kept_times_add_words(kept, key_of_findings(a), words, n, err);
}

/* Looks at the data, and warns. Data that cannot be looked at leave nothing behind. */
static enum qdq_code
look(const struct qdqi_attempt *a, struct qdqi_data_figures *figures,
     struct qdq_error *err)
{
    const size_t first = a->warnings->list.n;
    struct qdq_error why = {0};
    const enum qdq_code failed = collect(a, figures, &why);
    if (failed == QDQ_NO_MEMORY || failed == QDQ_CANCELLED)
        return qdq_error_set(err, failed, why.kind, why.where, "%s", why.text);
    const enum qdq_code code = warn_all(a, figures, err);
    return code || failed ? code : keep_findings(a, first, err);
}

enum qdq_code
qdqi_warn_implausible(const struct qdqi_attempt *a, struct qdq_error *err)
{
    struct qdqi_data_figures figures = {.arena = qdqi_arena_new()};
    bool is_known = false;
    if (!figures.arena)
        return qdqi_no_memory(err);
    enum qdq_code code = warn_percentile(a, err);
    if (!code)
        code = warn_as_before(a, &is_known, err);
    if (!code && !is_known)
        code = look(a, &figures, err);
    qdqi_arena_free(&figures.arena);
    return code;
}
