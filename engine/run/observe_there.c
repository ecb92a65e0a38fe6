/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/observe_there.h"

#include "run/observe.h"

#include <stdlib.h>

struct qdqi_visit {
    size_t slot, samples;
};

enum { MIN_ROOM = 1 << 12 }; /* initial capacity in samples, for all tensors together */

/* --- opening -------------------------------------------------------------- */

static enum qdq_code
make_room(struct qdqi_observing *o, size_t samples, struct qdq_error *err)
{
    size_t most = samples > o->host->n ? samples : o->host->n;
    qdqi_place_release(o->place, o->samples);
    o->samples = NULL;
    o->room = 0;
    free(o->taken);
    free(o->visits);
    o->taken = calloc(most + 1, sizeof *o->taken);
    o->visits = calloc(samples + 1, sizeof *o->visits);
    if (!o->taken || !o->visits)
        return qdqi_no_memory(err);
    void *memory;
    enum qdq_code code =
        qdqi_place_alloc(o->place, samples * sizeof *o->samples, &memory, err);
    if (!code) {
        o->samples = memory;
        o->room = samples;
    }
    return code;
}

static enum qdq_code
make_accumulators(struct qdqi_observing *o, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(o->place->cuda);
    bool counts = o->host->needs & QDQI_NEEDS_HISTOGRAM;
    size_t n = o->host->n;
    void *memory;
    enum qdq_code code =
        qdqi_place_alloc(o->place, n * sizeof *o->extremes, &memory, err);
    if (code)
        return code;
    o->extremes = memory;
    if (counts &&
        (code = qdqi_place_alloc(o->place, n * sizeof *o->histograms, &memory, err)))
        return code;
    o->histograms = counts ? memory : NULL;
    int status = gpu->extremes_init(o->extremes, n, NULL);
    if (!status && counts)
        status = gpu->histogram_init(o->histograms, n, NULL);
    return qdqi_place_check(o->place, status ? status : gpu->stream_wait(NULL), err);
}

enum qdq_code
qdqi_observing_open(struct qdqi_observers *observers, const struct qdqi_place *place,
                    struct qdqi_observing **ret, struct qdq_error *err)
{
    struct qdqi_observing *o = calloc(1, sizeof *o);
    if (!o)
        return qdqi_no_memory(err);
    o->host = observers;
    o->place = place;
    enum qdq_code code = make_accumulators(o, err);
    if (!code && observers->needs & QDQI_NEEDS_AVERAGE)
        code = make_room(o, MIN_ROOM, err);
    else if (!code && !(o->taken = calloc(observers->n + 1, sizeof *o->taken)))
        code = qdqi_no_memory(err);
    if (code)
        qdqi_observing_close(&o);
    else
        *ret = o;
    return code;
}

void
qdqi_observing_close(struct qdqi_observing **observing)
{
    struct qdqi_observing *o = *observing;
    if (!o)
        return;
    qdqi_place_release(o->place, o->extremes);
    qdqi_place_release(o->place, o->histograms);
    qdqi_place_release(o->place, o->samples);
    free(o->taken);
    free(o->visits);
    free(o);
    *observing = NULL;
}

/* --- from the device and back --------------------------------------------- */

/* Downloads the extremes of single samples and adds them to the averages in the
   order in which they were observed. */
static enum qdq_code
take_samples(struct qdqi_observing *o, struct qdq_error *err)
{
    enum qdq_code code = qdqi_place_download(o->place, o->taken, o->samples,
                                             o->used * sizeof *o->samples, err);
    const struct qdqi_extremes *at = o->taken;
    for (size_t i = 0; !code && i < o->n_visits; i++) {
        const struct qdqi_visit *v = &o->visits[i];
        qdqi_observer_average(&o->host->rows[v->slot], at, v->samples);
        at += v->samples;
    }
    o->used = o->n_visits = 0;
    return code;
}

enum qdq_code
qdqi_observing_take(struct qdqi_observing *o, struct qdq_error *err)
{
    size_t n = o->host->n;
    enum qdq_code code = o->used > 0 ? take_samples(o, err) : QDQ_OK;
    if (!code)
        code = qdqi_place_download(o->place, o->taken, o->extremes,
                                   n * sizeof *o->extremes, err);
    for (size_t i = 0; !code && i < n; i++)
        qdqi_extremes_merge(&o->host->rows[i].all.extremes, &o->taken[i]);
    return code;
}

/* Observers without extremes on the device keep the host's histogram, which came
   from elsewhere. */
enum qdq_code
qdqi_observing_collect(struct qdqi_observing *o, struct qdq_error *err)
{
    struct qdqi_cuda_histogram h;
    enum qdq_code code = qdqi_observing_take(o, err);
    for (size_t i = 0; !code && o->histograms && i < o->host->n; i++) {
        if (qdqi_extremes_empty(&o->taken[i]))
            continue;
        code = qdqi_place_download(o->place, &h, &o->histograms[i], sizeof h, err);
        if (!code)
            *o->host->rows[i].all.histogram = h.histogram;
    }
    return code;
}

enum qdq_code
qdqi_observing_restore(struct qdqi_observing *o, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < o->host->n; i++)
        o->taken[i] = o->host->rows[i].all.extremes;
    code = qdqi_place_upload(o->place, o->extremes, o->taken,
                             o->host->n * sizeof *o->extremes, err);
    for (size_t i = 0; !code && o->histograms && i < o->host->n; i++) {
        const struct qdqi_cuda_histogram h = {
            .histogram = *o->host->rows[i].all.histogram,
            .extremes = o->host->rows[i].all.extremes,
            .piece = QDQI_NO_EXTREMES,
        };
        code = qdqi_place_upload(o->place, &o->histograms[i], &h, sizeof h, err);
    }
    o->used = o->n_visits = 0;
    return code;
}

/* --- the operator --------------------------------------------------------- */

/* Appends the extremes of each sample of the tensor to those of earlier tensors. */
static enum qdq_code
log_samples(struct qdqi_observing *o, size_t slot, const struct qdqi_reached *r,
            void *stream, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(o->place->cuda);
    enum qdq_code code = QDQ_OK;
    if (o->room - o->used < r->samples) {
        code = qdqi_place_check(o->place, gpu->stream_wait(stream), err);
        if (!code)
            code = take_samples(o, err);
        if (!code && o->room < r->samples)
            code = make_room(o, r->samples, err);
        if (code)
            return code;
    }
    struct qdqi_extremes *at = o->samples + o->used;
    size_t each = r->n / r->samples;
    int status = gpu->extremes_init(at, r->samples, stream);
    for (size_t k = 0; !status && k < r->samples; k++)
        status = gpu->extremes_update((int)r->dtype,
                                      (const unsigned char *)r->data +
                                          k * each * qdqi_dtype_size(r->dtype),
                                      each, &at[k], stream);
    o->visits[o->n_visits++] = (struct qdqi_visit){slot, r->samples};
    o->used += r->samples;
    return qdqi_place_check(o->place, status, err);
}

static enum qdq_code
accumulate(struct qdqi_observing *o, size_t slot, const struct qdqi_reached *r,
           void *stream, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(o->place->cuda);
    int status, type = (int)r->dtype;
    r->observer->runs++;
    if (r->n == 0)
        return QDQ_OK;
    if (o->histograms) {
        struct qdqi_cuda_histogram *h = &o->histograms[slot];
        status = gpu->histogram_update(type, r->data, r->n, h, stream);
        if (!status)
            status =
                gpu->copy(&o->extremes[slot], &h->extremes, sizeof h->extremes, stream);
    } else
        status = gpu->extremes_update(type, r->data, r->n, &o->extremes[slot], stream);
    enum qdq_code code = qdqi_place_check(o->place, status, err);
    return code || !o->samples ? code : log_samples(o, slot, r, stream, err);
}

static OrtStatusPtr
observe_there(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    struct qdqi_observing *o = k->op->state;
    struct qdqi_op_tensor t;
    enum qdqi_dtype dtype;
    void *stream;
    OrtStatusPtr status = qdqi_observed_input(k, context, o->host, &t, &dtype);
    if (status || (status = qdqi_place_stream(o->place, k, context, &stream)))
        return status;
    struct qdqi_reached r = qdqi_reached(o->host, k->slot, dtype, t.data, t.n, t.axis0);
    o->fault = (struct qdq_error){0};
    (void)!accumulate(o, k->slot, &r, stream, &o->fault);
    return qdqi_place_status(k, &o->fault);
}

void
qdqi_observe_there_init(struct qdqi_op *op, const OrtApi *api,
                        struct qdqi_observing *observing)
{
    qdqi_observe_init(op, api, observing->host);
    op->provider = qdqi_place_provider(observing->place);
    op->state = observing;
    op->compute = observe_there;
}
