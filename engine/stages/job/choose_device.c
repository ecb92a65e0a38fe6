/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the device on which a job's models run. This is the first step of a job. */
#include "config.h"
#include "stages/job/job.h"

#include "run/operators/device_memory.h"

/* Returns whether the job may run a model. If it may not, the choice `auto` does not
   touch the device. */
static bool
has_samples(const struct qdq_work *work)
{
    return work->dataset >= 0 || work->spec->calibration.random_samples > 0;
}

enum qdq_code
qdqi_job_choose_device(struct qdqi_job *job, struct qdq_error *err)
{
    struct qdq_engine *engine = job->engine;
    struct qdq_error why = {0};
    bool asked = job->work->spec->device == QDQ_DEVICE_CUDA;
    job->device = "cpu";
    if (!asked &&
        (job->work->spec->device == QDQ_DEVICE_CPU || !has_samples(job->work)))
        return QDQ_OK;
    enum qdq_code code = qdqi_engine_find_device(engine, &why);
    if (!code) {
        job->dev = engine->dev;
        job->device =
            qdqi_arena_printf(job->arena, "cuda:%d %s", engine->device,
                              qdqi_cuda_device(engine->cuda, engine->device)->name);
        return job->device ? QDQ_OK : qdqi_no_memory(err);
    }
    if (asked || code == QDQ_NO_MEMORY || code == QDQ_DEVICE_LOST)
        return qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    if (!engine->cuda_module || (!engine->device_chosen && !engine->has_device))
        return QDQ_OK;
    return qdqi_warn(&job->warnings, job->arena, err, "device_fallback", NULL,
                     "the model was run on the CPU: %s", why.text);
}

/* --- smaller batches ----------------------------------------------------- */

int64_t
qdqi_job_batch(const struct qdqi_job *job)
{
    int64_t asked = job->work->spec->calibration.batch;
    return job->batch && job->batch < asked ? job->batch : asked;
}

enum qdq_code
qdqi_job_halve_batch(struct qdqi_job *job, struct qdqi_feed *feed, enum qdq_code code,
                     struct qdq_error *err)
{
    int64_t batch = qdqi_job_batch(job);
    if (code != QDQ_DEVICE_MEMORY || batch <= 1 || !feed || !qdqi_feed_sample(feed, 0))
        return code;
    job->batch = batch / 2;
    if (err)
        *err = (struct qdq_error){0};
    return qdqi_warn(
        &job->warnings, job->arena, err, "batch_halved", NULL,
        "the GPU has not enough memory for %lld samples at once; %lld were "
        "run instead",
        (long long)batch, (long long)job->batch);
}

/* Opens a feed only to ask whether a run can take fewer samples. */
enum qdq_code
qdqi_job_halve(struct qdqi_job *job, enum qdq_code code, struct qdq_error *err)
{
    const struct qdqi_feed_options options = {.batch = qdqi_job_batch(job)};
    const struct qdqi_input *inputs;
    int64_t samples;
    struct qdqi_feed *feed = NULL;
    struct qdq_error why = {0};
    if (code != QDQ_DEVICE_MEMORY)
        return code;
    if (!qdqi_feed_open(&job->fixed, job->dataset, &options, &feed, &why) &&
        !qdqi_feed_next(feed, &inputs, &samples, &why))
        code = qdqi_job_halve_batch(job, feed, code, err);
    qdqi_feed_close(&feed);
    return code;
}
