/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/operators/observe_cuda.h"

#include "run/operators/operators.h"

#include <stdlib.h>

struct qdqi_visit {
    size_t slot, samples;
};

enum { MIN_ROOM = 1 << 12 }; /* initial capacity in samples, for all tensors together */

/* --- opening -------------------------------------------------------------- */

/* Allocates pinned memory for downloads of n extremes. */
static enum qdq_code
make_downloaded(struct qdqi_cuda_observers *o, size_t n, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(o->dev->cuda);
    void *memory = NULL;
    if (o->downloaded)
        gpu->release_host(o->downloaded);
    int status = gpu->alloc_host((n + 1) * sizeof *o->downloaded, &memory);
    o->downloaded = memory;
    return qdqi_device_check(o->dev, status, err);
}

static enum qdq_code
make_room(struct qdqi_cuda_observers *o, size_t samples, struct qdq_error *err)
{
    size_t most = samples > o->host->n ? samples : o->host->n;
    qdqi_device_release(o->dev, o->samples);
    o->samples = NULL;
    o->room = 0;
    free(o->visits);
    o->visits = calloc(samples + 1, sizeof *o->visits);
    if (!o->visits)
        return qdqi_no_memory(err);
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(o->dev->cuda);
    void *memory;
    enum qdq_code code = make_downloaded(o, most, err);
    if (!code)
        code = qdqi_device_alloc(o->dev, samples * sizeof *o->samples, &memory, err);
    if (code)
        return code;
    o->samples = memory;
    o->room = samples;
    return qdqi_device_settle(o->dev, gpu->extremes_init(o->samples, samples, NULL),
                              err);
}

static enum qdq_code
make_accumulators(struct qdqi_cuda_observers *o, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(o->dev->cuda);
    bool counts = o->host->needs & QDQI_NEEDS_HISTOGRAM;
    size_t n = o->host->n;
    void *memory;
    enum qdq_code code =
        qdqi_device_alloc(o->dev, n * sizeof *o->extremes, &memory, err);
    if (code)
        return code;
    o->extremes = memory;
    if (counts &&
        (code = qdqi_device_alloc(o->dev, n * sizeof *o->histograms, &memory, err)))
        return code;
    o->histograms = counts ? memory : NULL;
    int status = gpu->extremes_init(o->extremes, n, NULL);
    if (!status && counts)
        status = gpu->histogram_init(o->histograms, n, NULL);
    return qdqi_device_settle(o->dev, status, err);
}

enum qdq_code
qdqi_cuda_observers_open(struct qdqi_observers *observers,
                         const struct qdqi_device *dev,
                         struct qdqi_cuda_observers **ret, struct qdq_error *err)
{
    struct qdqi_cuda_observers *o = calloc(1, sizeof *o);
    if (!o)
        return qdqi_no_memory(err);
    o->host = observers;
    o->dev = dev;
    enum qdq_code code = make_accumulators(o, err);
    if (!code && observers->needs & QDQI_NEEDS_AVERAGE)
        code = make_room(o, MIN_ROOM, err);
    else if (!code)
        code = make_downloaded(o, observers->n, err);
    if (code)
        qdqi_cuda_observers_close(&o);
    else
        *ret = o;
    return code;
}

void
qdqi_cuda_observers_close(struct qdqi_cuda_observers **cuda_observers)
{
    struct qdqi_cuda_observers *o = *cuda_observers;
    if (!o)
        return;
    qdqi_device_release(o->dev, o->extremes);
    qdqi_device_release(o->dev, o->histograms);
    qdqi_device_release(o->dev, o->samples);
    if (o->downloaded)
        qdqi_cuda_functions(o->dev->cuda)->release_host(o->downloaded);
    free(o->visits);
    free(o);
    *cuda_observers = NULL;
}

/* --- from the device and back --------------------------------------------- */

/* Makes the extremes of single samples empty. */
static enum qdq_code
forget_samples(struct qdqi_cuda_observers *o, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(o->dev->cuda);
    int status = gpu->extremes_init(o->samples, o->used, NULL);
    o->used = o->n_visits = 0;
    return qdqi_device_settle(o->dev, status, err);
}

/* Downloads the extremes of single samples and adds them to the averages in the
   order in which they were observed. */
static enum qdq_code
read_samples(struct qdqi_cuda_observers *o, struct qdq_error *err)
{
    enum qdq_code code = qdqi_device_download(o->dev, o->downloaded, o->samples,
                                              o->used * sizeof *o->samples, err);
    const struct qdqi_extremes *at = o->downloaded;
    for (size_t i = 0; !code && i < o->n_visits; i++) {
        const struct qdqi_visit *v = &o->visits[i];
        qdqi_observer_average(&o->host->rows[v->slot], at, v->samples);
        at += v->samples;
    }
    return code ? code : forget_samples(o, err);
}

enum qdq_code
qdqi_cuda_observers_read_extremes(struct qdqi_cuda_observers *o, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(o->dev->cuda);
    size_t n = o->host->n;
    enum qdq_code code = o->used > 0 ? read_samples(o, err) : QDQ_OK;
    int status = 0;
    if (!code && o->histograms)
        status = gpu->histogram_extremes(o->histograms, n, o->downloaded, NULL);
    else if (!code && n > 0)
        status =
            gpu->download(o->downloaded, o->extremes, n * sizeof *o->extremes, NULL);
    if (!code)
        code = qdqi_device_settle(o->dev, status, err);
    for (size_t i = 0; !code && i < n; i++)
        qdqi_extremes_merge(&o->host->rows[i].all.extremes, &o->downloaded[i]);
    return code;
}

/* Observers without extremes on the device keep the host's histogram, which came
   from elsewhere. */
enum qdq_code
qdqi_cuda_observers_collect(struct qdqi_cuda_observers *o, struct qdq_error *err)
{
    enum qdq_code code = qdqi_cuda_observers_read_extremes(o, err);
    for (size_t i = 0; !code && o->histograms && i < o->host->n; i++) {
        if (qdqi_extremes_empty(&o->downloaded[i]))
            continue;
        struct qdqi_histogram *h = o->host->rows[i].all.histogram;
        code = qdqi_device_download(o->dev, h, &o->histograms[i].histogram, sizeof *h,
                                    err);
    }
    return code;
}

enum qdq_code
qdqi_cuda_observers_restore(struct qdqi_cuda_observers *o, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < o->host->n; i++)
        o->downloaded[i] = o->host->rows[i].all.extremes;
    code = qdqi_device_upload(o->dev, o->extremes, o->downloaded,
                              o->host->n * sizeof *o->extremes, err);
    for (size_t i = 0; !code && o->histograms && i < o->host->n; i++) {
        const struct qdqi_cuda_histogram h = {
            .histogram = *o->host->rows[i].all.histogram,
            .extremes = o->host->rows[i].all.extremes,
            .piece = QDQI_NO_EXTREMES,
        };
        code = qdqi_device_upload(o->dev, &o->histograms[i], &h, sizeof h, err);
    }
    return code ? code : forget_samples(o, err);
}

/* --- the operator --------------------------------------------------------- */

/* Appends the extremes of each sample of the tensor to those of earlier tensors. */
static enum qdq_code
append_samples(struct qdqi_cuda_observers *o, size_t slot, const struct qdqi_reached *r,
               void *stream, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(o->dev->cuda);
    enum qdq_code code = QDQ_OK;
    if (o->room - o->used < r->samples) {
        code = qdqi_device_check(o->dev, gpu->stream_wait(stream), err);
        if (!code)
            code = read_samples(o, err);
        if (!code && o->room < r->samples)
            code = make_room(o, r->samples, err);
        if (code)
            return code;
    }
    int status = gpu->extremes_each((int)r->dtype, r->data, r->n / r->samples,
                                    r->samples, o->samples + o->used, stream);
    o->visits[o->n_visits++] = (struct qdqi_visit){slot, r->samples};
    o->used += r->samples;
    return qdqi_device_check(o->dev, status, err);
}

static enum qdq_code
accumulate(struct qdqi_cuda_observers *o, size_t slot, const struct qdqi_reached *r,
           void *stream, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(o->dev->cuda);
    int status, type = (int)r->dtype;
    bool is_first = r->observer->runs++ == 0;
    if (r->n == 0)
        return QDQ_OK;
    if (o->histograms)
        status = (is_first ? gpu->histogram_update : gpu->histogram_continue)(
            type, r->data, r->n, &o->histograms[slot], stream);
    else
        status = gpu->extremes_update(type, r->data, r->n, &o->extremes[slot], stream);
    enum qdq_code code = qdqi_device_check(o->dev, status, err);
    return code || !o->samples ? code : append_samples(o, slot, r, stream, err);
}

static OrtStatusPtr
observe_cuda(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    struct qdqi_cuda_observers *o = k->op->state;
    struct qdqi_op_tensor t;
    enum qdqi_dtype dtype;
    void *stream;
    OrtStatusPtr status = qdqi_observed_input(k, context, o->host, &t, &dtype);
    if (status || (status = qdqi_device_stream(o->dev, k, context, &stream)))
        return status;
    struct qdqi_reached r = qdqi_reached(o->host, k->slot, dtype, t.data, t.n, t.axis0);
    o->fault = (struct qdq_error){0};
    (void)!accumulate(o, k->slot, &r, stream, &o->fault);
    return qdqi_device_status(k, &o->fault);
}

void
qdqi_observe_cuda_init(struct qdqi_op *op, const OrtApi *api,
                       struct qdqi_cuda_observers *cuda_observers)
{
    qdqi_observe_init(op, api, cuda_observers->host);
    op->provider = qdqi_device_provider(cuda_observers->dev);
    op->state = cuda_observers;
    op->compute = observe_cuda;
}
