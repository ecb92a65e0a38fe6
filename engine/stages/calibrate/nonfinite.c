/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/calibrate/nonfinite.h"

#include "ground/base/tasks.h"
#include "stages/attempt/float_outputs.h"

#include <stdio.h>
#include <string.h>

enum { NAMED = 8 }; /* about how many samples the warning names */

static bool
may_skip(const struct qdqi_observed_run *w)
{
    return w->attempt->spec->calibration.on_nonfinite == QDQ_NONFINITE_SKIP;
}

enum qdq_code
qdqi_observed_run_open(struct qdqi_observed_run *w, struct qdq_error *err)
{
    const struct qdqi_observers *o = w->observers;
    return qdqi_observers_init(&w->saved, w->attempt->plan->view.tensors, o->n,
                               o->needs, 1, w->attempt->scratch)
               ? QDQ_OK
               : qdqi_no_memory(err);
}

/* Sets the observers back to the state that was saved last. */
static enum qdq_code
restore_observers(struct qdqi_observed_run *w, struct qdq_error *err)
{
    qdqi_observers_copy(w->observers, &w->saved);
    return qdqi_session_restore(w->session, err);
}

/* A run of the model, and the reading of the next batch at the same time. */
struct running {
    struct qdqi_observed_run *w;
    const struct qdqi_input *inputs;
    const struct qdqi_output *outputs;
    size_t n_outputs;
    struct qdq_error run_err, read_err;
};

static void
run_session(void *arg)
{
    struct running *r = arg;
    (void)!qdqi_session_run(r->w->session, r->inputs,
                            r->w->attempt->model->info.n_inputs, &r->outputs,
                            &r->n_outputs, &r->run_err);
}

static void
read_ahead(void *arg)
{
    struct running *r = arg;
    (void)!r->w->read_ahead(r->w, &r->read_err);
}

static enum qdq_code
copy_error(const struct qdq_error *why, struct qdq_error *err)
{
    if (why->code && err)
        *err = *why;
    return why->code;
}

/* Runs the model. *ret is the first tensor with a NaN or an infinity, or NULL. */
static enum qdq_code
run(struct running *r, int64_t samples, bool reads_ahead, const char **ret,
    struct qdq_error *err)
{
    struct qdqi_observed_run *w = r->w;
    const struct qdq_engine *engine = w->attempt->context->engine;
    const struct qdqi_tasks tasks = {.executor = engine->executor,
                                     .threads = engine->threads};
    *ret = NULL;
    if (!qdqi_observers_begin(w->observers, samples))
        return qdqi_no_memory(err);
    qdqi_moments_expect(w->moments, samples);
    w->attempt->calibrated.inferences++;
    if (reads_ahead)
        qdqi_tasks_both(&tasks, run_session, read_ahead, r);
    else
        run_session(r);
    enum qdq_code code = copy_error(&r->run_err, err);
    if (!code && may_skip(w))
        code = qdqi_session_collect(w->session, err);
    for (size_t i = 0; !code && !*ret && i < w->observers->n; i++) {
        const struct qdqi_observer *o = &w->observers->rows[i];
        const struct qdqi_extremes *e = &o->all.extremes;
        if (w->checked[i] && !qdqi_extremes_empty(e) && !qdqi_extremes_finite(e))
            *ret = o->tensor;
    }
    return code ? code : qdqi_moments_settle(w->moments, !*ret, err);
}

/* Skips samples first … first + n - 1, which cannot be run one by one, or fails with
   NONFINITE, as the spec says. */
static enum qdq_code
skip_or_fail(struct qdqi_observed_run *w, const char *tensor, int64_t first, int64_t n,
             struct qdq_error *err)
{
    char part[80];
    if (!may_skip(w))
        return qdq_error_set(err, QDQ_NONFINITE, QDQ_AT_TENSOR, tensor,
                             "tensor '%s' holds a NaN or an infinity in %s %lld%s, so "
                             "it has no range: give one in calibration.ranges (that of "
                             "a mask, for example), leave the layers that read it in "
                             "float by entries of layers, or have such samples left "
                             "out by calibration.on_nonfinite",
                             tensor, n > 1 ? "the batch from sample" : "sample",
                             (long long)first, n > 1 ? " on" : "");
    if (w->all.skipped < NAMED) {
        char *which = w->all.which;
        size_t used = strlen(which);
        snprintf(part, sizeof part, n > 1 ? "%s%lld to %lld" : "%s%lld",
                 used ? ", " : "", (long long)first, (long long)(first + n - 1));
        snprintf(which + used, sizeof w->all.which - used, "%s", part);
    }
    w->all.skipped += n;
    return restore_observers(w, err);
}

/* Runs each sample of the batch alone, beginning with the observers that were saved
   last. */
static enum qdq_code
run_each(struct qdqi_observed_run *w, struct qdqi_feed *feed, int64_t first,
         int64_t samples, struct qdq_error *err)
{
    enum qdq_code code = restore_observers(w, err);
    for (int64_t i = 0; !code && i < samples; i++) {
        struct running r = {.w = w, .inputs = qdqi_feed_sample(feed, i)};
        const char *tensor;
        code = run(&r, 1, false, &tensor, err);
        code = qdqi_name_samples(first + i, 1, code, err);
        if (!code && tensor)
            code = skip_or_fail(w, tensor, first + i, 1, err);
        if (!code)
            qdqi_observers_copy(&w->saved, w->observers);
    }
    return code;
}

/* Handles a batch with a sample that is not finite: finds that sample if the feed
   can give out single samples, or else rejects the whole batch. */
static enum qdq_code
find_nonfinite(struct qdqi_observed_run *w, struct qdqi_feed *feed, const char *tensor,
               int64_t first, int64_t samples, struct qdq_error *err)
{
    return samples > 1 && qdqi_feed_sample(feed, 0)
               ? run_each(w, feed, first, samples, err)
               : skip_or_fail(w, tensor, first, samples, err);
}

/* Does the same when the feed has already read the next batch: a second feed reads
   this batch again. */
static enum qdq_code
find_nonfinite_in_past_batch(struct qdqi_observed_run *w, const char *tensor,
                             int64_t first, int64_t samples, struct qdq_error *err)
{
    const struct qdqi_feed_options options = {samples, first, samples};
    const struct qdqi_input *inputs;
    struct qdqi_feed *feed = NULL;
    int64_t got;
    enum qdq_code code = qdqi_feed_open(
        &w->attempt->fixed, w->attempt->context->dataset, &options, &feed, err);
    if (!code && !(code = qdqi_feed_next(feed, &inputs, &got, err)))
        code = find_nonfinite(w, feed, tensor, first, samples, err);
    qdqi_feed_close(&feed);
    return code;
}

enum qdq_code
qdqi_observed_run_run(struct qdqi_observed_run *w, const struct qdqi_input *inputs,
                      int64_t samples, struct qdq_error *err)
{
    struct running r = {.w = w, .inputs = inputs};
    const char *tensor;
    int64_t first = w->all.samples;
    if (may_skip(w))
        qdqi_observers_copy(&w->saved, w->observers);
    w->all.samples += samples;
    enum qdq_code code = run(&r, samples, w->read_ahead, &tensor, err);
    code = qdqi_name_samples(first, samples, code, err);
    if (!code)
        qdqi_attempt_put_outputs(w->attempt, first, samples, r.outputs, r.n_outputs);
    if (!code && tensor)
        code = w->read_ahead
                   ? find_nonfinite_in_past_batch(w, tensor, first, samples, err)
                   : find_nonfinite(w, w->feed, tensor, first, samples, err);
    return code ? code : copy_error(&r.read_err, err);
}

enum qdq_code
qdqi_observed_run_end(const struct qdqi_observed_run *w, struct qdq_error *err)
{
    if (w->all.skipped == 0 || w->all.skipped < w->all.samples)
        return QDQ_OK;
    return qdq_error_set(err, QDQ_NONFINITE, QDQ_AT_NOTHING, NULL,
                         "a tensor holds a NaN or an infinity in every one of %lld "
                         "samples, so none is left to calibrate with",
                         (long long)w->all.samples);
}

enum qdq_code
qdqi_attempt_observed(struct qdqi_attempt *a, const struct qdqi_observed *all,
                      struct qdq_error *err)
{
    a->calibrated.samples = all->samples;
    a->calibrated.skipped = all->skipped;
    if (all->skipped == 0)
        return QDQ_OK;
    return qdqi_attempt_warn(
        a, err, "sample_skipped", NULL,
        "%lld of %lld samples were left out, where a tensor held a NaN or "
        "an infinity: %s%s",
        (long long)all->skipped, (long long)all->samples, all->which,
        all->skipped > NAMED ? " and others" : "");
}
