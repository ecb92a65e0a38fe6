/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes ranges from data: runs the model over the samples, with an Observe node at
 * each planned activation whose range is not given. The accumulators have a fixed size,
 * so memory does not grow with the number of samples.
 *
 * If the caller keeps observations, those of an earlier calibration are used tensor by
 * tensor in place of a run. All kinds of accumulators are then collected, so that a
 * later calibration by another method finds what it needs.
 *
 * The moments of the inputs of layers, where the spec asks for them, are collected in the
 * same runs and kept in the same file.
 */
#include "config.h"
#include "stages/calibrate/calibrate.h"

#include "files/data/tokens.h"
#include "stages/calibrate/moments.h"
#include "stages/calibrate/nonfinite.h"
#include "stages/calibrate/parallel.h"
#include "stages/attempt/observations_file.h"
#include "numbers/range/observations.h"
#include "stages/attempt/leave.h"
#include "transform/rewrite/blocked.h"
#include "transform/rewrite/insert.h"

#include <stdlib.h>
#include <string.h>

struct calibration {
    struct qdqi_attempt *attempt;
    const struct qdqi_method *method;
    bool *missing; /* by planned activation: whether it has no range */
    /* by planned activation: whether its observations are needed, and whether the model
       has to run for them; `wanted` is a subset of `needed` */
    bool *needed, *wanted;
    size_t n_missing, n_wanted;
    struct qdqi_observers observers;
    struct qdqi_collection moments;
    char *identity; /* identifies the observations; NULL when none are kept */
    struct qdqi_observations earlier;
    struct qdqi_observed all;
    /* the model is loaded, so a later lack of memory may be cured by smaller batches */
    bool began;
    int64_t every; /* sample is run, from the first on; 1: all are */
};

/* --- given ranges -------------------------------------------------------- */

/* Copies the ranges that the spec gives. *ret_missing is the number of activations
   that still need one. */
static enum qdq_code
copy_given_ranges(struct qdqi_attempt *a, bool *missing, size_t *ret_missing,
                  struct qdq_error *err)
{
    const struct qdq_calibration_spec *c = &a->spec->calibration;
    struct qdqi_map *given = qdqi_map_new(a->scratch);
    if (!given)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < c->n_ranges; i++)
        if (!qdqi_map_put(given, c->ranges[i].tensor, (void *)(uintptr_t)&c->ranges[i]))
            return qdqi_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < a->plan->view.n_tensors; i++) {
        const struct qdq_given_range *range =
            qdqi_map_get(given, a->plan->view.tensors[i]);
        const struct qdqi_planned_tensor *t = &a->plan->activations[i];
        missing[i] = !range && t->leader == i && !t->has_range;
        n += missing[i];
        if (range) {
            a->ranges[i] = (struct qdqi_range){range->min, range->max};
            a->methods[i] = "given";
        } else if (t->has_range) {
            a->ranges[i] = (struct qdqi_range){t->low, t->high};
            a->methods[i] = "operator";
        }
    }
    *ret_missing = n;
    return QDQ_OK;
}

/* --- running -------------------------------------------------------------- */

static enum qdq_code
report_progress(const struct qdqi_observed_run *w, struct qdq_error *err)
{
    return qdqi_attempt_progress(w->attempt, QDQ_STAGE_CALIBRATE,
                                 (uint64_t)w->all.samples,
                                 (uint64_t)qdqi_feed_samples(w->feed), err);
}

static enum qdq_code
observe_runs(struct qdqi_observed_run *w, int64_t every, struct qdq_error *err)
{
    const struct qdqi_input *inputs;
    int64_t samples;
    enum qdq_code code;
    for (;;) {
        if ((code = report_progress(w, err)) ||
            (code = qdqi_feed_next(w->feed, &inputs, &samples, err)) || samples == 0)
            return code;
        if (w->all.samples % every != 0)
            w->all.samples += samples;
        else if ((code = qdqi_observed_run_run(w, inputs, samples, err)))
            return code;
    }
}

/* Reads the inputs of the next run and starts their upload to the device. */
static enum qdq_code
upload_next(struct qdqi_observed_run *w, struct qdq_error *err)
{
    const struct qdqi_input *inputs;
    enum qdq_code code = qdqi_feed_next(w->feed, &inputs, &w->n_ahead, err);
    return code || w->n_ahead == 0
               ? code
               : qdqi_session_upload(w->session, inputs,
                                     w->attempt->model->info.n_inputs, err);
}

/* Runs the model on a device. During each run the inputs of the next one are read and
   uploaded. */
static enum qdq_code
observe_runs_ahead(struct qdqi_observed_run *w, struct qdq_error *err)
{
    const struct qdqi_input *inputs;
    enum qdq_code code = upload_next(w, err);
    w->read_ahead = upload_next;
    while (!code && w->n_ahead > 0) {
        int64_t samples = w->n_ahead;
        if ((code = report_progress(w, err)) ||
            (code = qdqi_session_next_inputs(w->session, &inputs, err)))
            break;
        code = qdqi_observed_run_run(w, inputs, samples, err);
    }
    return code ? code : report_progress(w, err);
}

static enum qdq_code
observe_all(struct calibration *c, struct qdqi_session *session, struct qdqi_feed *feed,
            struct qdq_error *err)
{
    const struct qdqi_attempt *a = c->attempt;
    const bool skips = a->spec->calibration.on_nonfinite == QDQ_NONFINITE_SKIP;
    struct qdqi_observed_run watch = {.attempt = c->attempt,
                                      .session = session,
                                      .feed = feed,
                                      .observers = &c->observers,
                                      .checked = skips ? c->needed : c->missing,
                                      .moments = &c->moments};
    enum qdq_code code = qdqi_observed_run_open(&watch, err);
    c->began = true;
    if (!code)
        code = a->context->dev ? observe_runs_ahead(&watch, err)
                               : observe_runs(&watch, c->every, err);
    if (!code)
        code = qdqi_session_collect(session, err);
    if (c->n_wanted > 0 || !c->earlier.bytes)
        c->all = watch.all;
    return code ? code : qdqi_observed_run_end(&watch, err);
}

static enum qdq_code
run_observed(struct calibration *c, struct qdqi_runtime *runtime,
             struct qdqi_feed *feed, struct qdq_error *err)
{
    struct qdqi_attempt *a = c->attempt;
    struct qdqi_session_options options = {
        .dev = a->context->dev,
        .observers = &c->observers,
        .moments = c->moments.all.n > 0 ? &c->moments.all : NULL,
        .unpacked = qdqi_attempt_is_large(a)};
    const Onnx__ModelProto *observed;
    struct qdqi_session *session = NULL;
    enum qdq_code code = qdqi_insert_observers(
        a->model, a->plan, c->wanted, c->observers.channels, c->moments.tensors,
        c->moments.all.n, a->scratch, &observed, err);
    if (!code)
        code = qdqi_session_open(runtime, a->model, observed, &options, &session, err);
    if (!code)
        code = observe_all(c, session, feed, err);
    qdqi_session_close(&session);
    return code;
}

/* Resets the observers and opens the feed again with a smaller batch. */
static enum qdq_code
restart(struct calibration *c, const struct qdqi_feed_options *options,
        struct qdqi_feed **feed, struct qdq_error *err)
{
    struct qdqi_attempt *a = c->attempt;
    struct qdqi_feed_options smaller = *options;
    smaller.batch = qdqi_attempt_batch(a);
    qdqi_observers_reset(&c->observers, c->wanted);
    qdqi_moments_restart(&c->moments);
    c->all = c->earlier.all;
    qdqi_feed_close(feed);
    return qdqi_feed_open(&a->fixed, a->context->dataset, &smaller, feed, err);
}

/* Makes the runs of a small model side by side. *ret_done is false where they are still to be
   made, one after the other. */
static enum qdq_code
run_side_by_side(struct calibration *c, struct qdqi_runtime *runtime,
                 const struct qdqi_feed_options *options, struct qdqi_feed **feed,
                 bool *ret_done, struct qdq_error *err)
{
    const struct qdqi_parallel runs = {.attempt = c->attempt,
                                       .wanted = c->wanted,
                                       .observers = &c->observers,
                                       .feed = *feed};
    *ret_done = false;
    if (c->moments.all.n > 0 || !qdqi_parallel_pays(&runs))
        return QDQ_OK;
    enum qdq_code code = qdqi_parallel_run(&runs, runtime, ret_done, err);
    if (!code && !*ret_done)
        return restart(c, options, feed, err);
    c->all = (struct qdqi_observed){.samples = qdqi_feed_samples(*feed)};
    return code;
}

/* Chooses the tensors that are observed in the runtime's own layout. A device has none, and
   moments need the plain one. */
static enum qdq_code
choose_layout(struct calibration *c, struct qdq_error *err)
{
    const struct qdqi_attempt *a = c->attempt;
    return a->context->dev || c->moments.all.n > 0
               ? QDQ_OK
               : qdqi_find_blocked(a->model, a->plan, c->wanted, a->scratch,
                                   &c->observers.channels, err);
}

/* Returns whether the plain layout may help: the runtime could not open or run the model
   with tensors observed in its own. They then no longer are. */
static bool
leave_blocks(struct calibration *c, enum qdq_code code, struct qdq_error *err)
{
    if (code != QDQ_RUN_FAILED || !c->observers.channels)
        return false;
    c->observers.channels = NULL;
    if (err)
        *err = (struct qdq_error){0};
    return true;
}

/* Runs the model: a small one with several samples side by side. Else, or where that fails,
   again in the plain layout, where that may help, and with half the batch each time that
   device memory is too small. */
static enum qdq_code
run_until_it_fits(struct calibration *c, struct qdqi_runtime *runtime,
                  const struct qdqi_feed_options *options, struct qdqi_feed **feed,
                  struct qdq_error *err)
{
    bool done;
    enum qdq_code code = run_side_by_side(c, runtime, options, feed, &done, err);
    while (!code && !done) {
        c->began = false;
        code = run_observed(c, runtime, *feed, err);
        if (!code ||
            (!leave_blocks(c, code, err) &&
             (!c->began || (code = qdqi_attempt_halve(c->attempt, code, err)))))
            return code;
        code = restart(c, options, feed, err);
    }
    return code;
}

static enum qdq_code
add_feed_warnings(const struct qdqi_attempt *a, const struct qdqi_feed *feed,
                  struct qdq_error *err)
{
    const struct qdq_warning *rows;
    const size_t n = qdqi_feed_warnings(feed, &rows);
    return qdqi_attempt_add_warnings(a, rows, n, err);
}

enum { TOKENS = 8192 }; /* of a decoder that are enough for moments */

/*
 * Returns which samples of a decoder are run for moments alone, where the spec does not say how
 * many: each of so many, spread over all, that TOKENS are. Positions of one text are alike, so more
 * of them change little, and a decoder is large.
 */
static int64_t
choose_every(const struct calibration *c, const struct qdqi_feed *feed)
{
    const struct qdqi_attempt *a = c->attempt;
    const size_t ids = qdqi_tokens_input(&a->fixed);
    if (c->n_wanted > 0 || a->spec->calibration.max_samples > 0 || a->context->dev ||
        ids == a->fixed.n_inputs || !qdqi_tokens_have_past(&a->fixed) ||
        qdqi_feed_run_samples(feed) != 1)
        return 1;
    const struct qdq_array *array =
        qdqi_feed_array(a->context->dataset, &a->fixed, ids);
    const int64_t length = array && array->rank > 0 ? array->shape[array->rank - 1] : 0;
    if (length < 1)
        return 1;
    const int64_t runs = (TOKENS + length - 1) / length;
    const int64_t every = qdqi_feed_samples(feed) / runs;
    return every > 1 ? every : 1;
}

/* Runs the model where activations have to be observed. The feed is opened in any
   case, because the data may be a reason for a warning. */
static enum qdq_code
feed_observers(struct calibration *c, struct qdq_error *err)
{
    struct qdqi_attempt *a = c->attempt;
    const struct qdq_calibration_spec *spec = &a->spec->calibration;
    const struct qdqi_feed_options options = {.batch = qdqi_attempt_batch(a),
                                              .max_samples = spec->max_samples};
    struct qdqi_runtime *runtime = NULL;
    struct qdqi_feed *feed = NULL;
    bool runs = c->n_wanted > 0 || c->moments.all.n > 0;
    enum qdq_code code =
        runs ? qdqi_engine_runtime(a->context->engine, &runtime, err) : QDQ_OK;
    if (!code &&
        !(code = qdqi_feed_open(&a->fixed, a->context->dataset, &options, &feed, err)))
        code = add_feed_warnings(a, feed, err);
    if (!code && runs) {
        c->every = choose_every(c, feed);
        code = qdqi_moments_begin(&c->moments,
                                  (qdqi_feed_samples(feed) + c->every - 1) / c->every,
                                  spec->on_nonfinite == QDQ_NONFINITE_SKIP, err);
    }
    if (!code && runs)
        code = choose_layout(c, err);
    if (!code && runs) {
        code = run_until_it_fits(c, runtime, &options, &feed, err);
        qdqi_moments_finish(&c->moments);
        if (!code && qdq_spec_rounds(a->spec))
            code = qdqi_moments_warn(&c->moments, err);
    }
    qdqi_feed_close(&feed);
    return code || c->n_missing + c->n_wanted == 0
               ? code
               : qdqi_attempt_observed(a, &c->all, err);
}

/* --- kept observations --------------------------------------------------- */

/*
 * Restores earlier observations and decides which activations have to be observed. The
 * same samples must be left out for all tensors and moments. Where samples may be skipped,
 * the earlier observations are therefore used only if they have all tensors and, if samples
 * were skipped, all moments. Where moments are lacking, everything is observed again beside
 * them, so that they are those of a job with nothing to restore.
 */
static enum qdq_code
restore_observations(struct calibration *c, struct qdq_error *err)
{
    struct qdqi_attempt *a = c->attempt;
    bool skips = a->spec->calibration.on_nonfinite == QDQ_NONFINITE_SKIP;
    if (!(c->identity = qdqi_observations_file_identity(a)))
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_observations_read(qdqi_observations_file(a), c->identity,
                                                a->scratch, &c->earlier, err);
    if (code)
        return code;
    size_t n = 0, lacking = 0;
    for (size_t i = 0; i < c->observers.n; i++) {
        n += c->needed[i];
        lacking += c->needed[i] &&
                   !qdqi_observations_have(&c->earlier, c->observers.rows[i].tensor);
    }
    const bool again = !qdqi_moments_are_kept(&c->moments, &c->earlier);
    if (skips && (lacking > 0 || (c->earlier.all.skipped > 0 && again)))
        qdqi_observations_fini(&c->earlier);
    if (again || (skips && !c->earlier.bytes))
        lacking = n;
    for (size_t i = 0; i < c->observers.n; i++) {
        c->wanted[i] = c->needed[i] &&
                       (again || !qdqi_observations_have(&c->earlier,
                                                         c->observers.rows[i].tensor));
        if (c->needed[i] && !c->wanted[i])
            qdqi_observations_restore(&c->earlier, &c->observers.rows[i]);
    }
    c->n_wanted = lacking;
    c->all = c->earlier.all;
    a->calibrated.reused = n - lacking;
    a->calibrated.observed = lacking;
    if (!again)
        qdqi_moments_reuse(&c->moments, &c->earlier);
    return QDQ_OK;
}

/* Writes the observations for later calibrations. Those of earlier ones stay. */
static enum qdq_code
write_observations(struct calibration *c, struct qdq_error *err)
{
    if (!c->identity || (c->n_wanted == 0 && c->moments.all.n == 0))
        return QDQ_OK;
    bool *added =
        qdqi_arena_array(c->attempt->scratch, c->observers.n + 1, sizeof *added);
    if (!added)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < c->observers.n; i++) {
        const struct qdqi_observer *o = &c->observers.rows[i];
        added[i] = c->wanted[i] && !qdqi_observations_have(&c->earlier, o->tensor) &&
                   (qdqi_extremes_empty(&o->all.extremes) ||
                    qdqi_extremes_finite(&o->all.extremes));
    }
    const struct qdqi_observed_rows rows = {&c->observers, added,
                                            qdqi_moments_new(&c->moments, &c->earlier),
                                            c->attempt->calibrated.peaks};
    return qdqi_observations_file_write(c->attempt, c->identity, &c->all, &c->earlier,
                                        &rows, err);
}

/* --- the whole calibration ----------------------------------------------- */

static struct qdqi_range
range_of(const struct calibration *c, size_t i)
{
    const struct qdqi_planned_tensor *t = &c->attempt->plan->activations[i];
    const struct qdqi_range_use use = {&c->attempt->spec->calibration, t->format,
                                       t->symmetric};
    return c->method->range(&c->observers.rows[i], &use);
}

/*
 * Computes the ranges of observed activations. *ret_unreached counts those without a value:
 * they are in a nested graph that no sample enters, or have no elements in any sample. Their
 * layers stay in float. NOT_OBSERVED where all of them are like that.
 */
static enum qdq_code
choose_ranges(struct calibration *c, size_t *ret_unreached, struct qdq_error *err)
{
    struct qdqi_attempt *a = c->attempt;
    const char *first = NULL; /* the first of them in the main graph */
    size_t n_reached = 0;
    *ret_unreached = 0;
    for (size_t i = 0; i < c->observers.n; i++) {
        const struct qdqi_observer *o = &c->observers.rows[i];
        if (!c->missing[i])
            continue;
        if (!qdqi_extremes_empty(&o->all.extremes)) {
            a->ranges[i] = range_of(c, i);
            a->methods[i] = c->method->name;
            n_reached++;
            continue;
        }
        if (!first && a->plan->activations[i].tensor->scope == 0)
            first = o->tensor;
        (*ret_unreached)++;
    }
    if (!first || n_reached > 0)
        return QDQ_OK;
    return qdq_error_set(err, QDQ_NOT_OBSERVED, QDQ_AT_TENSOR, first,
                         "tensor '%s' has no elements in any of %lld samples, nor has "
                         "any other tensor that is to be calibrated: add samples in "
                         "which it has some, or give its range in calibration.ranges",
                         first, (long long)a->calibrated.samples);
}

/* Returns whether activation i, or the activation whose range it shares, has a
   range. */
static bool
is_reached(const struct qdqi_attempt *a, size_t i)
{
    return a->methods[a->plan->activations[i].leader];
}

/* Returns whether all quantized inputs and outputs of the layer have a range. */
static bool
layer_is_reached(const struct qdqi_attempt *a, const struct qdq_layer *layer)
{
    for (size_t i = 0; i < layer->n_inputs; i++)
        if (!is_reached(a, layer->input_rows[i]))
            return false;
    for (size_t i = 0; i < layer->n_outputs; i++)
        if (!is_reached(a, layer->output_rows[i]))
            return false;
    return true;
}

/* Warns once, however many layers there are. The warning names the first. */
static enum qdq_code
warn_unreached(struct qdqi_attempt *a, const char *first, size_t n,
               struct qdq_error *err)
{
    if (n == 1)
        return qdqi_attempt_warn(
            a, err, "not_observed", first,
            "no sample comes to this layer, which is in a nested graph "
            "or has an input without elements: it stays in floating point. "
            "calibration.ranges may say the range of its input");
    return qdqi_attempt_warn(
        a, err, "not_observed", first,
        "no sample comes to %zu layers, which are in nested graphs or have "
        "inputs without elements: they stay in floating point, with the "
        "reason 'not observed'. calibration.ranges may say the ranges of "
        "their inputs",
        n);
}

static enum qdq_code
leave_unreached_in_float(struct qdqi_attempt *a, struct qdq_error *err)
{
    const struct qdq_plan_view *plan = &a->plan->view;
    const char **names = qdqi_arena_array(a->arena, plan->n_layers, sizeof *names);
    bool ok = names;
    size_t n = 0;
    for (size_t i = 0; ok && i < plan->n_layers; i++) {
        if (layer_is_reached(a, &plan->layers[i]))
            continue;
        ok = (names[n++] = qdqi_arena_strdup(a->arena, plan->layers[i].name));
    }
    ok = ok && (n == 0 || !warn_unreached(a, names[0], n, err));
    const struct qdqi_left left = {names, n, "not observed", true};
    return ok ? qdqi_attempt_leave(a, &left, err) : qdqi_no_memory(err);
}

/* Returns the observations that the report has and that a recipe begins with, whatever the
   method needs. */
static unsigned
other_needs(const struct qdqi_attempt *a)
{
    return a->context->work->histograms || a->spec->recipe >= QDQ_RECIPE_AUTO
               ? QDQI_NEEDS_HISTOGRAM
               : 0;
}

static enum qdq_code
calibrate(struct calibration *c, struct qdq_error *err)
{
    struct qdqi_attempt *a = c->attempt;
    const char *name = a->spec->calibration.method;
    bool kept = qdqi_attempt_keeps(a);
    size_t n_unreached = 0;
    c->method = qdqi_method_find(name);
    if (!c->method)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER,
                             "/calibration/method", "there is no method '%s'", name);
    if (!qdqi_observers_init(&c->observers, a->plan->view.tensors,
                             a->plan->view.n_tensors,
                             kept ? QDQI_NEEDS_ALL : c->method->needs | other_needs(a),
                             (size_t)a->context->engine->threads, a->scratch))
        return qdqi_no_memory(err);
    enum qdqi_dtype *dtypes =
        qdqi_arena_array(a->scratch, c->observers.n, sizeof *dtypes);
    struct qdqi_observers *observers = qdqi_arena_alloc(a->scratch, sizeof *observers);
    if (!dtypes || !observers)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < c->observers.n; i++)
        dtypes[i] = a->plan->activations[i].dtype;
    c->observers.dtypes = dtypes;
    enum qdq_code code = kept ? restore_observations(c, err) : QDQ_OK;
    if (!code && !(code = feed_observers(c, err)) &&
        !(code = write_observations(c, err)))
        code = choose_ranges(c, &n_unreached, err);
    *observers = c->observers;
    a->calibrated.observers = c->n_missing > 0 ? observers : NULL;
    qdqi_observations_fini(&c->earlier);
    return code || !n_unreached ? code : leave_unreached_in_float(a, err);
}

/*
 * Sets `needed` and `wanted`, before it is known what is kept. Moments need the observers of
 * tensors whose ranges are given, too: they leave out the samples in which an observed tensor is
 * not finite, and their last bits depend on what is observed beside them, because ONNX Runtime
 * does not fuse operators across an observed tensor.
 */
static void
choose_needed(struct calibration *c)
{
    const struct qdqi_attempt *a = c->attempt;
    const bool all = c->moments.all.n > 0;
    for (size_t i = 0; i < a->plan->view.n_tensors; i++) {
        const struct qdqi_planned_tensor *t = &a->plan->activations[i];
        c->needed[i] = c->wanted[i] =
            c->missing[i] || (all && t->leader == i && !t->has_range);
        c->n_wanted += c->wanted[i];
    }
}

enum qdq_code
qdqi_calibrate(struct qdqi_attempt *a, struct qdq_error *err)
{
    size_t n = a->plan->view.n_tensors, first = 0;
    struct calibration c = {
        .attempt = a,
        .missing = qdqi_arena_array(a->scratch, n, sizeof *c.missing),
        .needed = qdqi_arena_array(a->scratch, n, sizeof *c.needed),
        .wanted = qdqi_arena_array(a->scratch, n, sizeof *c.wanted)};
    a->ranges = qdqi_arena_array(a->arena, n, sizeof *a->ranges);
    a->methods = qdqi_arena_array(a->arena, n, sizeof *a->methods);
    if (!c.missing || !c.needed || !c.wanted || !a->ranges || !a->methods)
        return qdqi_no_memory(err);
    enum qdq_code code = copy_given_ranges(a, c.missing, &c.n_missing, err);
    if (!code)
        code = qdqi_moments_plan(a, &c.moments, err);
    if (code || (c.n_missing == 0 && c.moments.all.n == 0))
        return code;
    choose_needed(&c);
    if (c.n_missing == 0)
        return calibrate(&c, err);
    while (!c.missing[first])
        first++;
    const char *tensor = a->plan->view.tensors[first];
    if (!a->context->dataset)
        return qdq_error_set(err, QDQ_NO_CALIBRATION, QDQ_AT_TENSOR, tensor,
                             "tensor '%s' is to be quantized, but there is neither "
                             "calibration data nor a range for it in "
                             "calibration.ranges, and calibration.random_samples asks "
                             "for none",
                             tensor);
    return calibrate(&c, err);
}

/* Collects the moments beside the observers of the plan, whose ranges the attempt has. */
static enum qdq_code
collect_moments(struct qdqi_attempt *a, struct qdq_error *err)
{
    const size_t n = a->plan->view.n_tensors;
    struct calibration c = {
        .attempt = a,
        .missing = qdqi_arena_array(a->scratch, n, sizeof *c.missing),
        .needed = qdqi_arena_array(a->scratch, n, sizeof *c.needed),
        .wanted = qdqi_arena_array(a->scratch, n, sizeof *c.wanted)};
    if (!c.missing || !c.needed || !c.wanted)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_moments_plan(a, &c.moments, err);
    if (code || c.moments.all.n == 0)
        return code;
    choose_needed(&c);
    return calibrate(&c, err);
}

enum qdq_code
qdqi_calibrate_moments(struct qdqi_attempt *a, bool *ret, struct qdq_error *err)
{
    const struct qdqi_calibrated before = a->calibrated;
    const size_t n_warnings = a->warnings->list.n;
    /* AWQ has scaled the model and the moments alike, and does so once. */
    *ret = !a->spec->smooth_awq && qdqi_moments_are_stale(a);
    if (!*ret)
        return QDQ_OK;
    qdqi_attempt_forget_moments(a);
    a->is_trial = true; /* its progress is that of the stage that chose the plan */
    enum qdq_code code = collect_moments(a, err);
    a->is_trial = false;
    a->warnings->list.n = n_warnings; /* calibration has given the same */
    const int64_t inferences = a->calibrated.inferences;
    a->calibrated = before;
    a->calibrated.inferences = inferences;
    return code;
}
