/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the device on which a job's models run. This is the first step of a job. */
#include "config.h"
#include "stages/attempt/attempt.h"

#include "run/operators/device_memory.h"

/* Returns whether the job may run a model. If it may not, the choice `auto` does not
   touch the device. */
static bool
has_samples(const struct qdqi_context *c)
{
    return c->work->dataset >= 0 || c->asked->calibration.random_samples > 0;
}

enum qdq_code
qdqi_choose_device(const struct qdqi_attempt *a, struct qdqi_context *c,
                   struct qdqi_arena *arena, struct qdq_error *err)
{
    struct qdq_engine *engine = c->engine;
    struct qdq_error why = {0};
    bool asked = a->spec->device == QDQ_DEVICE_CUDA;
    c->device = "cpu";
    if (!asked && (a->spec->device == QDQ_DEVICE_CPU || !has_samples(c)))
        return QDQ_OK;
    enum qdq_code code = qdqi_engine_find_device(engine, &why);
    if (!code) {
        c->dev = engine->dev;
        c->device =
            qdqi_arena_printf(arena, "cuda:%d %s", engine->device,
                              qdqi_cuda_device(engine->cuda, engine->device)->name);
        return c->device ? QDQ_OK : qdqi_no_memory(err);
    }
    if (asked || code == QDQ_NO_MEMORY || code == QDQ_DEVICE_LOST)
        return qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    if (!engine->cuda_module || (!engine->device_chosen && !engine->has_device))
        return QDQ_OK;
    return qdqi_attempt_warn(a, err, "device_fallback", NULL,
                             "the model was run on the CPU: %s", why.text);
}

/* --- smaller batches ----------------------------------------------------- */

int64_t
qdqi_attempt_batch(const struct qdqi_attempt *a)
{
    int64_t asked = a->spec->calibration.batch;
    return a->batch && a->batch < asked ? a->batch : asked;
}

enum qdq_code
qdqi_attempt_halve_batch(struct qdqi_attempt *a, struct qdqi_feed *feed,
                         enum qdq_code code, struct qdq_error *err)
{
    int64_t batch = qdqi_attempt_batch(a);
    if (code != QDQ_DEVICE_MEMORY || batch <= 1 || !feed || !qdqi_feed_sample(feed, 0))
        return code;
    a->batch = batch / 2;
    if (err)
        *err = (struct qdq_error){0};
    return qdqi_attempt_warn(
        a, err, "batch_halved", NULL,
        "the GPU has not enough memory for %lld samples at once; %lld were "
        "run instead",
        (long long)batch, (long long)a->batch);
}

/* Opens a feed only to ask whether a run can take fewer samples. */
enum qdq_code
qdqi_attempt_halve(struct qdqi_attempt *a, enum qdq_code code, struct qdq_error *err)
{
    const struct qdqi_feed_options options = {.batch = qdqi_attempt_batch(a)};
    const struct qdqi_input *inputs;
    int64_t samples;
    struct qdqi_feed *feed = NULL;
    struct qdq_error why = {0};
    if (code != QDQ_DEVICE_MEMORY)
        return code;
    if (!qdqi_feed_open(&a->fixed, a->context->dataset, &options, &feed, &why) &&
        !qdqi_feed_next(feed, &inputs, &samples, &why))
        code = qdqi_attempt_halve_batch(a, feed, code, err);
    qdqi_feed_close(&feed);
    return code;
}
