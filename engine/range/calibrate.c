/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From data to ranges: the model runs once over the samples, with an Observe node at
 * each planned activation whose range was not given. Accumulators have a fixed size, so
 * memory does not grow with samples.
 */
#include "config.h"
#include "stages.h"

#include "range/finite.h"
#include "rewrite/insert.h"

#include <string.h>

/* Takes the ranges given by hand; *ret_missing: how many activations have none. */
static enum qdq_code
take_given(struct qdqi_job *job, bool *missing, size_t *ret_missing,
           struct qdq_error *err)
{
    const struct qdq_calibration_spec *c = &job->work->spec->calibration;
    struct qdqi_map *given = qdqi_map_new(job->scratch);
    if (!given)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < c->n_ranges; i++)
        if (!qdqi_map_put(given, c->ranges[i].tensor, (void *)(uintptr_t)&c->ranges[i]))
            return qdqi_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; i < job->plan->view.n_tensors; i++) {
        const struct qdq_given_range *range =
            qdqi_map_get(given, job->plan->view.tensors[i]);
        missing[i] = !range;
        n += !range;
        if (range) {
            job->ranges[i] = (struct qdqi_range){range->min, range->max};
            job->methods[i] = "given";
        }
    }
    *ret_missing = n;
    return QDQ_OK;
}

static enum qdq_code
observe_all(struct qdqi_job *job, struct qdqi_session *session, struct qdqi_feed *feed,
            struct qdqi_observers *observers, struct qdq_error *err)
{
    struct qdqi_watch watch = {
        .job = job, .session = session, .feed = feed, .observers = observers};
    const struct qdqi_input *inputs;
    int64_t samples, done = 0, total = qdqi_feed_samples(feed);
    enum qdq_code code = qdqi_watch_open(&watch, err);
    while (!code) {
        if ((code = qdqi_job_progress(job, QDQ_STAGE_CALIBRATE, (uint64_t)done,
                                      (uint64_t)total, err)) ||
            (code = qdqi_feed_next(feed, &inputs, &samples, err)) || samples == 0)
            break;
        code = qdqi_watch_run(&watch, inputs, done, samples, err);
        done += samples;
    }
    job->calibrated_samples = done;
    return code ? code : qdqi_watch_end(&watch, done, err);
}

static enum qdq_code
run_observed(struct qdqi_job *job, const bool *missing,
             struct qdqi_observers *observers, struct qdq_error *err)
{
    const struct qdq_calibration_spec *c = &job->work->spec->calibration;
    const struct qdqi_feed_options options = {.batch = c->batch,
                                              .max_samples = c->max_samples};
    struct qdqi_session_options session_options = {.threads = job->engine->threads,
                                                   .observers = observers};
    const Onnx__ModelProto *observed;
    struct qdqi_runtime *runtime = NULL;
    struct qdqi_feed *feed = NULL;
    struct qdqi_session *session = NULL;
    enum qdq_code code = qdqi_engine_runtime(job->engine, &runtime, err);
    if (code ||
        (code = qdqi_feed_open(&job->fixed, job->dataset, &options, &feed, err)) ||
        (code = qdqi_job_take_warnings(job, feed, err)) ||
        (code = qdqi_insert_observers(job->model, job->plan, missing, job->scratch,
                                      &observed, err)) ||
        (code = qdqi_session_open(runtime, job->model, observed, &session_options,
                                  &session, err)))
        goto out;
    code = observe_all(job, session, feed, observers, err);
out:
    qdqi_session_close(&session);
    qdqi_feed_close(&feed);
    return code;
}

static enum qdq_code
take_observed(struct qdqi_job *job, const struct qdqi_method *method,
              const bool *missing, const struct qdqi_observers *observers,
              struct qdq_error *err)
{
    const struct qdq_calibration_spec *spec = &job->work->spec->calibration;
    for (size_t i = 0; i < observers->n; i++) {
        const struct qdqi_observer *o = &observers->rows[i];
        if (!missing[i])
            continue;
        if (qdqi_extremes_empty(&o->all.extremes))
            return qdq_error_set(err, QDQ_NOT_OBSERVED, QDQ_AT_TENSOR, o->tensor,
                                 "tensor '%s' was not reached by any of %lld samples",
                                 o->tensor, (long long)job->calibrated_samples);
        job->ranges[i] = method->range(o, spec);
        job->methods[i] = method->name;
    }
    return QDQ_OK;
}

static enum qdq_code
calibrate(struct qdqi_job *job, const bool *missing, struct qdq_error *err)
{
    const char *name = job->work->spec->calibration.method;
    const struct qdqi_method *method = qdqi_method_find(name);
    struct qdqi_observers observers;
    if (!method)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER,
                             "/calibration/method", "there is no method '%s'", name);
    if (!qdqi_observers_init(&observers, job->plan->view.tensors,
                             job->plan->view.n_tensors, method->needs,
                             (size_t)job->engine->threads, job->scratch))
        return qdqi_no_memory(err);
    enum qdq_code code = run_observed(job, missing, &observers, err);
    return code ? code : take_observed(job, method, missing, &observers, err);
}

enum qdq_code
qdqi_calibrate(struct qdqi_job *job, struct qdq_error *err)
{
    size_t n = job->plan->view.n_tensors, n_missing = 0;
    bool *missing = qdqi_arena_array(job->scratch, n, sizeof *missing);
    job->ranges = qdqi_arena_array(job->arena, n, sizeof *job->ranges);
    job->methods = qdqi_arena_array(job->arena, n, sizeof *job->methods);
    if (!missing || !job->ranges || !job->methods)
        return qdqi_no_memory(err);
    enum qdq_code code = take_given(job, missing, &n_missing, err);
    if (code || n_missing == 0)
        return code;
    size_t first = 0;
    while (!missing[first])
        first++;
    const char *tensor = job->plan->view.tensors[first];
    if (!job->dataset)
        return qdq_error_set(err, QDQ_NO_CALIBRATION, QDQ_AT_TENSOR, tensor,
                             "tensor '%s' is to be quantized, but there is neither "
                             "calibration data nor a range for it in "
                             "calibration.ranges, and calibration.random_samples asks "
                             "for none",
                             tensor);
    return calibrate(job, missing, err);
}
