/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/operators/staging.h"

#include "ground/base/arena.h"

#include <stdlib.h>
#include <string.h>

enum { N_SLOTS = 2, ALIGNED = 256 };

/* The inputs of one run, one after the other. */
struct slot {
    unsigned char *pinned, *device;
    size_t room; /* capacity of both memories in bytes */
    void *event; /* recorded when the upload is complete */
    struct qdqi_input *inputs;
    int64_t *shapes;
    size_t n_inputs, n_shapes; /* capacities of `inputs` and `shapes` */
};

struct qdqi_staging {
    const struct qdqi_device *dev;
    void *stream;
    struct slot slots[N_SLOTS];
    size_t first, n; /* the slots that were filled and not yet returned */
    const struct qdqi_input *taken; /* the inputs that were returned last */
};

/* --- opening -------------------------------------------------------------- */

static const struct qdqi_cuda_api *
functions(const struct qdqi_staging *s)
{
    return qdqi_cuda_functions(s->dev->cuda);
}

enum qdq_code
qdqi_staging_open(const struct qdqi_device *dev, struct qdqi_staging **ret,
                  struct qdq_error *err)
{
    struct qdqi_staging *s = calloc(1, sizeof *s);
    if (!s)
        return qdqi_no_memory(err);
    s->dev = dev;
    int status = functions(s)->stream_open(&s->stream);
    for (size_t i = 0; !status && i < N_SLOTS; i++)
        status = functions(s)->event_open(&s->slots[i].event);
    enum qdq_code code = qdqi_device_check(dev, status, err);
    if (code)
        qdqi_staging_close(&s);
    else
        *ret = s;
    return code;
}

static void
free_memory(struct qdqi_staging *s, struct slot *slot)
{
    qdqi_device_release(s->dev, slot->device);
    if (slot->pinned)
        functions(s)->release_host(slot->pinned);
    slot->pinned = slot->device = NULL;
    slot->room = 0;
}

void
qdqi_staging_close(struct qdqi_staging **staging)
{
    struct qdqi_staging *s = *staging;
    if (!s)
        return;
    if (s->stream)
        /* the stream reads memory that is released below */
        functions(s)->stream_wait(s->stream);
    for (size_t i = 0; i < N_SLOTS; i++) {
        free_memory(s, &s->slots[i]);
        if (s->slots[i].event)
            functions(s)->event_close(s->slots[i].event);
        free(s->slots[i].inputs);
        free(s->slots[i].shapes);
    }
    if (s->stream)
        functions(s)->stream_close(s->stream);
    free(s);
    *staging = NULL;
}

/* --- uploading ----------------------------------------------------------- */

static size_t
aligned(size_t size)
{
    return (size + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* Makes the slot large enough. No copy from or to the slot is under way. */
static enum qdq_code
make_room(struct qdqi_staging *s, struct slot *slot, size_t bytes,
          struct qdq_error *err)
{
    void *pinned, *device;
    if (bytes <= slot->room)
        return QDQ_OK;
    free_memory(s, slot);
    enum qdq_code code = qdqi_device_alloc(s->dev, bytes, &device, err);
    if (code)
        return code;
    slot->device = device;
    code = qdqi_device_check(s->dev, functions(s)->alloc_host(bytes, &pinned), err);
    if (code)
        return code;
    slot->pinned = pinned;
    slot->room = bytes;
    return QDQ_OK;
}

static enum qdq_code
make_views(struct slot *slot, size_t inputs, size_t shapes, struct qdq_error *err)
{
    if (inputs > slot->n_inputs || !slot->inputs) {
        free(slot->inputs);
        slot->n_inputs = inputs;
        slot->inputs = calloc(inputs + 1, sizeof *slot->inputs);
    }
    if (shapes > slot->n_shapes || !slot->shapes) {
        free(slot->shapes);
        slot->n_shapes = shapes;
        slot->shapes = calloc(shapes + 1, sizeof *slot->shapes);
    }
    return slot->inputs && slot->shapes ? QDQ_OK : qdqi_no_memory(err);
}

/* Copies the inputs to the pinned memory and makes views of where they will be in
   device memory. */
static void
fill(struct slot *slot, const struct qdqi_input *inputs, size_t n)
{
    int64_t *shape = slot->shapes;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        slot->inputs[i] = inputs[i];
        slot->inputs[i].data = slot->device + at;
        slot->inputs[i].shape = shape;
        if (inputs[i].rank)
            memcpy(shape, inputs[i].shape, inputs[i].rank * sizeof *shape);
        if (inputs[i].size)
            memcpy(slot->pinned + at, inputs[i].data, inputs[i].size);
        shape += inputs[i].rank;
        at += aligned(inputs[i].size);
    }
}

enum qdq_code
qdqi_staging_upload(struct qdqi_staging *s, const struct qdqi_input *inputs, size_t n,
                    struct qdq_error *err)
{
    struct slot *slot = &s->slots[(s->first + s->n) % N_SLOTS];
    size_t bytes = 0, shapes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += aligned(inputs[i].size);
        shapes += inputs[i].rank;
    }
    enum qdq_code code;
    if (s->n == N_SLOTS)
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_NOTHING, NULL,
                             "inputs were sent, and none were taken");
    if ((code = make_room(s, slot, bytes, err)) ||
        (code = make_views(slot, n, shapes, err)))
        return code;
    fill(slot, inputs, n);
    int status =
        bytes ? functions(s)->upload(slot->device, slot->pinned, bytes, s->stream) : 0;
    if (!status)
        status = functions(s)->event_record(slot->event, s->stream);
    s->n++;
    return qdqi_device_check(s->dev, status, err);
}

/* Waits on the host, because the stream on which the runtime will read the inputs is
   not known. The wait is short: the upload ran during the run before. */
enum qdq_code
qdqi_staging_next(struct qdqi_staging *s, const struct qdqi_input **ret,
                  struct qdq_error *err)
{
    struct slot *slot = &s->slots[s->first];
    if (s->n == 0)
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_NOTHING, NULL,
                             "no inputs were sent");
    enum qdq_code code =
        qdqi_device_check(s->dev, functions(s)->event_wait(slot->event), err);
    s->first = (s->first + 1) % N_SLOTS;
    s->n--;
    *ret = s->taken = slot->inputs;
    return code;
}

bool
qdqi_staging_owns(const struct qdqi_staging *s, const struct qdqi_input *inputs)
{
    return inputs && inputs == s->taken;
}
