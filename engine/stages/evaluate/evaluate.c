/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the float and the quantized model side by side over samples, as the two halves
 * of one graph. It compares their outputs and those of each quantized layer and then
 * discards them. The quantized model is read from the bytes that were written.
 */
#include "config.h"
#include "stages/evaluate/evaluate.h"

#include "plan/gates/verdict.h"
#include "plan/placement/rules.h"
#include "ground/base/tasks.h"
#include "ground/base/unused.h"
#include "stages/evaluate/deployed_first.h"
#include "stages/evaluate/output_figures.h"
#include "stages/evaluate/deployed.h"
#include "stages/evaluate/judgement_warnings.h"
#include "stages/evaluate/kept_figures.h"
#include "stages/evaluate/literal.h"
#include "stages/evaluate/sample_choice.h"
#include "stages/evaluate/stopping.h"
#include "stages/evaluate/kernels/traced_kernels.h"

#include <stdint.h>
#include <string.h>

struct evaluation {
    struct qdqi_attempt *attempt;
    struct qdqi_result *result;
    struct qdq_model *quantized;
    struct qdqi_literal sessions; /* of the float model and the result */
    /* The literal arithmetic of the result is that of its nodes as deployed: it runs once, and
       layers are not compared. */
    bool is_as_deployed;
    /* the result as deployed; without ops when it does not run here */
    struct qdqi_deployed_model plain;
    /* a result with float16 in a plain session of ONNX Runtime, unless `plain` is that;
       without ops when there is none */
    struct qdqi_deployed_model halves;
    struct qdqi_feed_options samples;
    struct qdqi_feed *feed;
    struct qdqi_deployed_first alone; /* what the comparison before the sessions did */
    struct qdqi_output_figures literal, deployed, halved;
    bool *not_float; /* by output: has a known type that is not a floating-point type */
    bool keeps;      /* sums, for later jobs */
    uint64_t key;    /* of them */
};

static enum qdq_code
open_feed(struct evaluation *e, struct qdq_error *err)
{
    struct qdqi_attempt *a = e->attempt;
    const struct qdq_model_info *info = &a->fixed;
    struct qdq_dataset *data = qdqi_context_judging_data(a->context);
    e->samples = (struct qdqi_feed_options){.batch = qdqi_attempt_batch(a)};
    enum qdq_code code = qdqi_feed_open(info, data, &e->samples, &e->feed, err);
    if (code)
        return code;
    qdqi_choose_samples(a, qdqi_feed_available(e->feed), &e->samples);
    qdqi_feed_close(&e->feed);
    return qdqi_feed_open(info, data, &e->samples, &e->feed, err);
}

/* --- sessions ------------------------------------------------------------- */

static enum qdq_code
open_quantized(struct evaluation *e, struct qdq_error *err)
{
    const struct qdqi_attempt *a = e->attempt;
    const struct qdq_external data = {a->context->work->output_data_name,
                                      a->context->work->output_data};
    const bool split = e->result->report->external_bytes > 0;
    qdqi_release_unused();
    return qdq_model_open_files(a->context->work->output, &data, split, &e->quantized,
                                err);
}

/*
 * Opens the result of a decoder whose products are nodes of the runtime's. Beside the float model
 * in one graph, and once more as deployed, it would compute the same twice; and a language model
 * is large.
 */
static enum qdq_code
open_decoder(struct evaluation *e, struct qdq_error *err)
{
    const struct qdqi_attempt *a = e->attempt;
    if (a->spec->decoder != QDQ_DECODER_MATMULNBITS || e->alone.has_run ||
        a->spec->float_type != QDQ_FLOAT_KEEP || a->context->dev ||
        !qdqi_deployed_runs(a->context))
        return QDQ_OK;
    enum qdq_code code = qdqi_deployed_open(a, e->result, e->quantized, &e->plain, err);
    e->is_as_deployed = e->plain.ops;
    return code;
}

/* Returns on how many samples layers are compared: on all that the evaluation may take, where
   somebody asks for them, or where they are not many more. */
static int64_t
most_layer_samples(const struct evaluation *e)
{
    const struct qdqi_attempt *a = e->attempt;
    return a->context->dev || a->spec->evaluate == QDQ_YES ||
                   qdqi_asks_for_figures(a->spec) ||
                   qdqi_feed_samples(e->feed) < 2 * QDQI_LAYER_SAMPLES
               ? INT64_MAX
               : QDQI_LAYER_SAMPLES;
}

static enum qdq_code
open_sessions(struct evaluation *e, struct qdqi_runtime *runtime, struct qdq_error *err)
{
    struct qdqi_attempt *a = e->attempt;
    enum qdq_code code = open_decoder(e, err);
    const struct qdqi_literal_options options = {
        .behind_what_ifs = e->result->report->what_ifs > 0,
        .no_result =
            e->is_as_deployed
                ? "the result has nodes of its runtime in the place of pairs, and ran "
                  "as it is deployed alone"
                : NULL,
        .most_layer_samples = most_layer_samples(e)};
    if (!code)
        code = qdqi_literal_open(&e->sessions, a, e->quantized, runtime, &options, err);
    e->result->lacks_format = code == QDQ_RUN_FAILED && e->sessions.f &&
                              qdqi_plan_has_optional_format(a->plan);
    if (!code && !e->alone.has_run && !e->is_as_deployed)
        code = qdqi_deployed_open(a, e->result, e->quantized, &e->plain, err);
    if (code)
        return code;
    return qdqi_halves_open(a, e->quantized, &e->plain, &e->halves, err);
}

/* --- running -------------------------------------------------------------- */

/* A run of one batch through all models: the float model and the result by the literal
   arithmetic in one graph, and the result as deployed. */
struct run {
    struct evaluation *e;
    const struct qdqi_input *inputs;
    int64_t first, samples;
    const struct qdqi_output *f, *q, *deployed;
    size_t n, n_deployed;
    enum qdq_code code, deployed_code;
    struct qdq_error why, deployed_why;
};

static void
run_literally(void *arg)
{
    struct run *r = arg;
    r->code = qdqi_literal_run(&r->e->sessions, r->inputs, r->first, r->samples, &r->f,
                               &r->q, &r->n, &r->why);
}

static void
run_as_deployed(void *arg)
{
    struct run *r = arg;
    const size_t n_inputs = r->e->attempt->model->info.n_inputs;
    if (r->e->plain.ops)
        r->deployed_code =
            qdqi_deployed_model_run(&r->e->plain, r->inputs, n_inputs, &r->deployed,
                                    &r->n_deployed, NULL, &r->deployed_why);
}

/* Runs all models: at the same time where another runtime than that of the literal arithmetic has
   the result, whose thread is the calling one. */
static void
run_all(struct run *r)
{
    const struct qdqi_attempt *a = r->e->attempt;
    const bool side_by_side =
        r->e->plain.ops && !r->e->plain.ops->calibrates && !a->context->dev;
    const struct qdqi_tasks tasks = {
        .executor = a->context->engine->executor,
        .threads = side_by_side ? a->context->engine->threads : 1};
    qdqi_tasks_both(&tasks, run_as_deployed, run_literally, r);
}

/* Says that the result did not run as deployed: an error where the runtime is that of the float
   model, which ran, and a warning where the runtime may lack what the float model has. */
static enum qdq_code
tell_failed(const struct evaluation *e, const struct qdqi_deploy_ops *ops,
            enum qdq_code code, const struct qdq_error *why, struct qdq_error *err)
{
    if (code == QDQ_NO_MEMORY)
        return qdqi_no_memory(err);
    if (code != QDQ_RUN_FAILED || !ops->calibrates)
        return qdqi_deployed_warn(e->attempt, why->text, err);
    return qdq_error_set(err, QDQ_CANNOT_LOAD, QDQ_AT_NOTHING, NULL,
                         "the result is valid, and the runtime of target %s cannot run "
                         "it: %s",
                         e->attempt->spec->target->name, why->text);
}

/* Compares the outputs of the result as deployed. If it did not run, it is not measured. */
static enum qdq_code
compare_deployed(struct evaluation *e, struct run *r, int64_t samples,
                 struct qdq_error *err)
{
    const size_t n = r->n < r->n_deployed ? r->n : r->n_deployed;
    if (!e->plain.ops)
        return QDQ_OK;
    if (!r->deployed_code) {
        qdqi_output_figures_add(&e->deployed, r->f, r->deployed, n, samples, r->inputs);
        return QDQ_OK;
    }
    const struct qdqi_deploy_ops *ops = e->plain.ops;
    qdqi_deployed_model_close(&e->plain);
    enum qdq_code code =
        qdqi_feed_name_samples(e->feed, r->deployed_code, &r->deployed_why);
    return tell_failed(e, ops, code, &r->deployed_why, err);
}

/* Runs the result with float16 in a plain session. */
static enum qdq_code
compare_halves(struct evaluation *e, const struct qdqi_input *inputs,
               const struct qdqi_output *f, size_t n, int64_t samples,
               struct qdq_error *err)
{
    const struct qdqi_output *q;
    size_t n_q;
    if (!e->halves.ops)
        return QDQ_OK;
    enum qdq_code code = qdqi_deployed_model_run(
        &e->halves, inputs, e->attempt->model->info.n_inputs, &q, &n_q, NULL, err);
    if (code)
        return qdqi_feed_name_samples(e->feed, code, err);
    qdqi_output_figures_add(&e->halved, f, q, n < n_q ? n : n_q, samples, inputs);
    return QDQ_OK;
}

static enum qdq_code
compare_run(struct evaluation *e, const struct qdqi_input *inputs, int64_t samples,
            struct qdq_error *err)
{
    struct run r = {.e = e,
                    .inputs = inputs,
                    .first = qdqi_feed_run_first(e->feed),
                    .samples = samples};
    run_all(&r);
    enum qdq_code code = r.code;
    if (code) {
        (void)!qdq_error_set(err, code, r.why.kind, r.why.where, "%s", r.why.text);
        return qdqi_feed_name_samples(e->feed, code, err);
    }
    for (size_t i = 0; i < r.n; i++)
        e->not_float[i] = qdqi_is_known_and_not_float(r.f[i].dtype);
    if (!e->is_as_deployed)
        qdqi_output_figures_add(&e->literal, r.f, r.q, r.n, samples, inputs);
    if ((code = compare_deployed(e, &r, samples, err)))
        return code;
    return compare_halves(e, inputs, r.f, r.n, samples, err);
}

static enum qdq_code
warn_late(const struct evaluation *e, int64_t done, int64_t total,
          struct qdq_error *err)
{
    return qdqi_attempt_warn(
        e->attempt, err, "max_seconds_reached", NULL,
        "/evaluate/max_seconds: the evaluation ended after %lld of %lld "
        "samples",
        (long long)done, (long long)total);
}

/* Returns the figures that decide. */
static const struct qdqi_output_figures *
deciding_figures(const struct evaluation *e)
{
    return e->plain.ops ? &e->deployed : &e->literal;
}

/* Compares all samples, or as many as stand for all of them. */
static enum qdq_code
compare_all(struct evaluation *e, struct qdq_error *err)
{
    struct qdqi_attempt *a = e->attempt;
    struct qdq_report *report = e->result->report;
    const int64_t total = qdqi_feed_samples(e->feed);
    const struct qdqi_input *inputs;
    struct qdqi_stopping runs;
    int64_t samples, done = 0;
    enum qdq_code code = qdqi_stopping_init(&runs, a, &e->samples, &e->feed, err);
    while (!code) {
        if (done > 0 && done < total &&
            qdqi_time_is_up(a->context, a->spec->evaluate_seconds)) {
            code = warn_late(e, done, total, err);
            break;
        }
        if ((code = qdqi_attempt_progress(a, QDQ_STAGE_EVALUATE, (uint64_t)done,
                                          (uint64_t)total, err)) ||
            (code = qdqi_stopping_next(&runs, deciding_figures(e), &inputs, &samples,
                                       err)) ||
            samples == 0 || (code = compare_run(e, inputs, samples, err)))
            break;
        done += samples;
    }
    report->evaluated_samples = done;
    report->evaluated_of = total;
    report->evaluation_is_settled = runs.is_settled;
    report->evaluation_rule = runs.is_settled ? "settled"
                              : done < total  ? "max_seconds"
                                              : "all";
    return code || !runs.is_settled
               ? code
               : qdqi_attempt_progress(a, QDQ_STAGE_EVALUATE, (uint64_t)total,
                                       (uint64_t)total, err);
}

/* --- the report ----------------------------------------------------------- */

/* Reports the noise of each compared layer. Layers that no sample reached are left
   out. */
static enum qdq_code
report_layers(struct evaluation *e, struct qdq_error *err)
{
    struct qdq_layer_error *rows =
        qdqi_arena_array(e->attempt->arena, e->sessions.comparisons.n, sizeof *rows);
    if (!rows)
        return qdqi_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < e->sessions.comparisons.n; i++) {
        const struct qdqi_comparison *row = &e->sessions.comparisons.rows[i];
        if (row->runs > 0 && !row->differs)
            rows[n++] = (struct qdq_layer_error){e->sessions.layers[i],
                                                 qdqi_noise_db(&row->sums)};
    }
    e->result->report->layer_errors = rows;
    e->result->report->n_layer_errors = n;
    e->result->report->layer_samples = e->sessions.layer_samples;
    return QDQ_OK;
}

/* Reports the outputs and the quantized layers that have no figures, each with its
   reason. */
static enum qdq_code
report_unjudged(const struct evaluation *e, struct qdq_error *err)
{
    struct qdqi_attempt *a = e->attempt;
    const bool deployed = e->plain.ops || e->alone.has_figures;
    const struct qdqi_output_figures *outputs = deployed ? &e->deployed : &e->literal;
    const struct qdq_plan_view *plan = &a->plan->view;
    const struct qdq_model_info *info = &a->model->info;
    struct qdq_unjudged *rows =
        qdqi_arena_array(a->arena, info->n_outputs + plan->n_layers, sizeof *rows);
    size_t n = 0, at = 0;
    if (!rows)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < info->n_outputs; i++)
        if (outputs->why[i])
            rows[n++] =
                (struct qdq_unjudged){false, info->outputs[i].name, outputs->why[i],
                                      outputs->has_other_size[i]};
    for (size_t i = 0; i < plan->n_layers; i++) {
        const struct qdq_layer *layer = &plan->layers[i];
        bool differs = false;
        const char *why = !qdqi_layer_is_quantized(layer) ? NULL
                          : e->sessions.no_twin
                              ? e->sessions.no_twin
                              : qdqi_literal_hindrance(&e->sessions, layer);
        if (qdqi_layer_is_quantized(layer) && !why) {
            const struct qdqi_comparison *row = &e->sessions.comparisons.rows[at++];
            differs = row->differs;
            why = differs          ? qdqi_other_size
                  : row->runs == 0 ? "no sample reaches it"
                                   : NULL;
        }
        if (why)
            rows[n++] = (struct qdq_unjudged){true, layer->name, why, differs};
    }
    e->result->report->unjudged = rows;
    e->result->report->n_unjudged = n;
    return QDQ_OK;
}

/* Warns about outputs, or about layers, whose sizes differ: it counts them and names the
   first. */
static enum qdq_code
warn_sizes(const struct evaluation *e, bool of_layers, const char *code,
           const char *noun, struct qdq_error *err)
{
    const struct qdq_report *r = e->result->report;
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < r->n_unjudged; i++)
        if (r->unjudged[i].is_layer == of_layers && r->unjudged[i].has_other_size &&
            n++ == 0)
            first = r->unjudged[i].name;
    if (n == 0)
        return QDQ_OK;
    return qdqi_attempt_warn(
        e->attempt, err, code, first,
        "%s with another number of elements when quantized, because it "
        "depends on values, are not judged: %zu, this one first",
        noun, n);
}

/* Returns an error if the optimizations of ONNX Runtime break the result. */
static enum qdq_code
check_halves(const struct evaluation *e, struct qdq_error *err)
{
    const struct qdq_report *report = e->result->report;
    const bool is_plain = e->plain.ops && e->plain.ops->checks_float16;
    const struct qdq_output_report *ran;
    size_t n;
    if (!is_plain && !e->halves.ops)
        return QDQ_OK;
    enum qdq_code code = qdqi_output_figures_finish(
        e->attempt, is_plain ? &e->deployed : &e->halved, &ran, &n, err);
    return code ? code
                : qdqi_halves_check(e->attempt, report->outputs, report->n_outputs, ran,
                                    n, err);
}

static enum qdq_code
report_outputs(struct evaluation *e, struct qdq_error *err)
{
    struct qdqi_attempt *a = e->attempt;
    struct qdq_report *report = e->result->report;
    const struct qdq_output_report *deployed;
    size_t n;
    enum qdq_code code = qdqi_output_figures_finish(
        e->attempt, e->is_as_deployed ? &e->deployed : &e->literal, &report->outputs,
        &report->n_outputs, err);
    if (code)
        return code;
    if (e->plain.ops &&
        ((code = qdqi_output_figures_finish(e->attempt, &e->deployed, &deployed, &n,
                                            err)) ||
         (code = qdqi_deployed_report(a, e->result, deployed, n, err)) ||
         (code = qdqi_keep_nodes(e->result, &e->plain, err))))
        return code;
    e->result->not_float = e->not_float;
    if ((code = check_halves(e, err)) || (code = report_unjudged(e, err)) ||
        (code = warn_sizes(e, false, "outputs_not_judged", "outputs", err)))
        return code;
    return warn_sizes(e, true, "layers_not_compared", "layers", err);
}

/* --- kept sums ------------------------------------------------------------- */

/* Returns everything that the runs change. */
static struct qdqi_evaluated
evaluated(struct evaluation *e)
{
    const struct qdq_report *report = e->result->report;
    return (struct qdqi_evaluated){.samples = report->evaluated_samples,
                                   .of = report->evaluated_of,
                                   .is_settled = report->evaluation_is_settled,
                                   .n_outputs = e->attempt->model->info.n_outputs,
                                   .not_float = e->not_float,
                                   .literal = &e->literal,
                                   .deployed = &e->deployed,
                                   .comparisons = &e->sessions.comparisons,
                                   .layer_samples = &e->sessions.layer_samples};
}

/* Returns whether the sums are kept: the samples do not depend on the time, the result runs in the
   usual two ways, and nothing else needs its runs. */
static bool
keeps_sums(const struct evaluation *e)
{
    const struct qdqi_attempt *a = e->attempt;
    return qdqi_keeps_figures(a) && !e->alone.has_run && !e->is_as_deployed &&
           a->spec->evaluate_seconds == 0 && a->spec->decoder == QDQ_DECODER_AS_IS &&
           !a->spec->task.asked && !qdqi_halves_matter(a) &&
           e->result->report->what_ifs == 0;
}

/* Begins again with sums that have nothing. */
static enum qdq_code
clear_sums(struct evaluation *e, struct qdq_error *err)
{
    struct qdqi_attempt *a = e->attempt;
    memset(e->not_float, 0, a->model->info.n_outputs * sizeof *e->not_float);
    e->sessions = (struct qdqi_literal){0};
    enum qdq_code code =
        qdqi_output_figures_init(&e->literal, a->model, a->scratch, err);
    return code ? code
                : qdqi_output_figures_init(&e->deployed, a->model, a->scratch, err);
}

/* Takes the sums that an earlier job has kept. The result is opened as it is deployed, because its
   kernels are counted and it must load. *ret is false where the models are to run. */
static enum qdq_code
take_sums(struct evaluation *e, bool *ret, struct qdq_error *err)
{
    struct qdqi_attempt *a = e->attempt;
    struct qdq_report *report = e->result->report;
    const size_t n_warnings = a->warnings->list.n;
    *ret = false;
    e->keeps = keeps_sums(e);
    if (!e->keeps)
        return QDQ_OK;
    e->key =
        qdqi_kept_evaluation_key(a, e->quantized, &e->samples, most_layer_samples(e));
    enum qdq_code code = qdqi_literal_prepare(&e->sessions, a, e->quantized, err);
    struct qdqi_evaluated to = evaluated(e);
    if (!code)
        code = qdqi_kept_evaluation_take(a, e->key, &to, ret, err);
    if (!code && *ret)
        code = qdqi_deployed_open(a, e->result, e->quantized, &e->plain, err);
    if (code)
        return code;
    if (!*ret) {
        a->warnings->list.n = n_warnings;
        return clear_sums(e, err);
    }
    report->evaluated_samples = to.samples;
    report->evaluated_of = to.of;
    report->evaluation_is_settled = to.is_settled;
    report->evaluation_rule = to.is_settled ? "settled" : "all";
    return qdqi_attempt_progress(a, QDQ_STAGE_EVALUATE, (uint64_t)to.of,
                                 (uint64_t)to.of, err);
}

/* Keeps the sums of runs that came to their end. */
static enum qdq_code
keep_sums(struct evaluation *e, bool had_plain, struct qdq_error *err)
{
    struct qdqi_evaluated from = evaluated(e);
    if (!e->keeps || e->sessions.no_twin || had_plain != (e->plain.ops != NULL))
        return QDQ_OK;
    return qdqi_kept_evaluation_add(e->attempt, e->key, &from, err);
}

static enum qdq_code
run_sessions(struct evaluation *e, struct qdqi_runtime *runtime, bool *ret_again,
             struct qdq_error *err)
{
    bool is_kept = false;
    enum qdq_code code = take_sums(e, &is_kept, err);
    if (code || is_kept)
        return code;
    if ((code = open_sessions(e, runtime, err)))
        return code;
    const bool had_plain = e->plain.ops != NULL;
    code = compare_all(e, err);
    if (!code)
        code = qdqi_literal_collect(&e->sessions, err);
    if (!code)
        code = keep_sums(e, had_plain, err);
    *ret_again = code == QDQ_DEVICE_MEMORY &&
                 !(code = qdqi_attempt_halve_batch(e->attempt, e->feed, code, err));
    return code;
}

/* Leaves the process that judges, where no stage behind the evaluation needs it: no profile is asked
   for, and advice is for other results. A command's process ends then, so that its memory is not
   beside that of the sessions; a daemon's waits for the next job. */
static void
release_judge(const struct evaluation *e)
{
    const struct qdqi_attempt *a = e->attempt;
    if (e->alone.has_figures && qdqi_verdict(e->result->report) == QDQI_GOOD &&
        a->spec->profile.runs == 0)
        qdqi_engine_release_judges(a->context->engine);
}

/* Evaluates once. Sets *ret_again when device memory was too small and a smaller
   batch may fit. */
static enum qdq_code
evaluate(struct qdqi_attempt *a, struct qdqi_result *result,
         struct qdqi_runtime *runtime, bool *ret_again, struct qdq_error *err)
{
    size_t n = a->model->info.n_outputs;
    struct evaluation e = {.attempt = a,
                           .result = result,
                           .not_float =
                               qdqi_arena_array(a->scratch, n, sizeof *e.not_float)};
    enum qdq_code code = e.not_float ? QDQ_OK : qdqi_no_memory(err);
    if (code ||
        (code = qdqi_output_figures_init(&e.literal, a->model, a->scratch, err)) ||
        (code = qdqi_output_figures_init(&e.deployed, a->model, a->scratch, err)) ||
        (code = qdqi_output_figures_init(&e.halved, a->model, a->scratch, err)))
        return code;
    if (!(code = open_feed(&e, err)) && !(code = open_quantized(&e, err)))
        code = qdqi_compare_deployed_first(a, result, e.quantized, &e.samples,
                                           &e.deployed, e.not_float, &e.alone, err);
    if (!code) {
        release_judge(&e);
        code = run_sessions(&e, runtime, ret_again, err);
    }
    if (!code && !*ret_again && !(code = report_layers(&e, err)) &&
        !(code = report_outputs(&e, err)))
        code = qdqi_warn_of_judgement(a, result, e.samples.first, err);
    qdqi_literal_close(&e.sessions);
    qdqi_deployed_model_close(&e.plain);
    qdqi_deployed_model_close(&e.halves);
    qdq_model_free(&e.quantized);
    qdqi_feed_close(&e.feed);
    return code;
}

enum qdq_code
qdqi_evaluate(struct qdqi_attempt *a, struct qdqi_result *result,
              struct qdqi_runtime *runtime, struct qdq_error *err)
{
    bool again;
    enum qdq_code code;
    struct qdqi_stage_warnings *w = a->warnings;
    size_t n = w->list.n;
    do {
        again = false;
        code = evaluate(a, result, runtime, &again, err);
        /* The warnings of the failed attempt are discarded, except the last one,
           which says that the batch is smaller. */
        if (again)
            w->list.rows[n++] = w->list.rows[w->list.n - 1];
        if (again)
            w->list.n = n;
    } while (again);
    return code;
}
