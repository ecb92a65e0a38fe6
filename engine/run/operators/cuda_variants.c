/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/operators/variants.h"

#include "run/operators/compare_cuda.h"
#include "run/operators/fake_cuda.h"
#include "run/operators/moments_cuda.h"
#include "run/operators/observe_cuda.h"

#include <stdlib.h>

/* The objects on the device; NULL: there are none of the host's, or the host's are used. */
struct state {
    struct qdqi_cuda_observers *observers;
    struct qdqi_cuda_moments *moments;
    struct qdqi_cuda_fakes *fakes;
    struct qdqi_cuda_comparisons *comparisons;
};

static void
close_state(void *state)
{
    struct state *s = state;
    qdqi_cuda_observers_close(&s->observers);
    qdqi_cuda_moments_close(&s->moments);
    qdqi_cuda_fakes_close(&s->fakes);
    qdqi_cuda_comparisons_close(&s->comparisons);
    free(s);
}

static enum qdq_code
open_state(const struct qdqi_op_objects *o, const struct qdqi_device *dev, void **ret,
           struct qdq_error *err)
{
    struct state *s = calloc(1, sizeof *s);
    enum qdq_code code = s ? QDQ_OK : qdqi_no_memory(err);
    if (!code && o->observers)
        code = qdqi_cuda_observers_open(o->observers, dev, &s->observers, err);
    if (!code && o->moments && !o->moments->holds)
        code = qdqi_cuda_moments_open(o->moments, dev, &s->moments, err);
    if (!code && o->fakes)
        code = qdqi_cuda_fakes_open(o->fakes, dev, &s->fakes, err);
    if (!code && o->comparisons)
        code = qdqi_cuda_comparisons_open(o->comparisons, dev, &s->comparisons, err);
    if (!code)
        *ret = s;
    else if (s)
        close_state(s);
    return code;
}

/* Operators without an object on the device are the host's. */
static size_t
init(const struct qdqi_op_objects *objects, void *state, const OrtApi *api,
     struct qdqi_op ops[QDQI_MOST_OPS])
{
    const struct state *s = state;
    const struct qdqi_op_objects on_host = {
        .moments = s->moments ? NULL : objects->moments, .peaks = objects->peaks};
    size_t n = qdqi_host_variants.init(&on_host, NULL, api, ops);
    if (s->observers)
        qdqi_observe_cuda_init(&ops[n++], api, s->observers);
    if (s->moments)
        qdqi_moments_cuda_init(&ops[n++], api, s->moments);
    if (s->fakes)
        qdqi_fake_cuda_init(&ops[n++], api, s->fakes);
    if (s->comparisons) {
        qdqi_compare_cuda_init(&ops[n++], api, s->comparisons);
        qdqi_pass_cuda_init(&ops[n++], api, s->comparisons);
    }
    return n;
}

static const struct qdq_error *
fault(const void *state)
{
    const struct state *s = state;
    const struct qdq_error *all[] = {s->observers ? &s->observers->fault : NULL,
                                     s->moments ? qdqi_cuda_moments_fault(s->moments)
                                                : NULL,
                                     s->fakes ? &s->fakes->fault : NULL,
                                     s->comparisons ? &s->comparisons->fault : NULL};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] && all[i]->code)
            return all[i];
    return NULL;
}

static enum qdq_code
end_run(void *state, struct qdq_error *err)
{
    struct state *s = state;
    return s->observers ? qdqi_cuda_observers_read_extremes(s->observers, err) : QDQ_OK;
}

static enum qdq_code
collect(void *state, struct qdq_error *err)
{
    struct state *s = state;
    enum qdq_code code = QDQ_OK;
    if (s->observers)
        code = qdqi_cuda_observers_collect(s->observers, err);
    if (!code && s->moments)
        code = qdqi_cuda_moments_collect(s->moments, err);
    if (!code && s->comparisons)
        code = qdqi_cuda_comparisons_collect(s->comparisons, err);
    return code;
}

static enum qdq_code
restore(void *state, struct qdq_error *err)
{
    struct state *s = state;
    return s->observers ? qdqi_cuda_observers_restore(s->observers, err) : QDQ_OK;
}

const struct qdqi_op_variants qdqi_cuda_variants = {
    .open = open_state,
    .close = close_state,
    .init = init,
    .fault = fault,
    .end_run = end_run,
    .collect = collect,
    .restore = restore,
};
