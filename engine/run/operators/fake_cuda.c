/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/operators/fake_cuda.h"

#include "ground/base/arena.h"
#include "run/operators/operators.h"

#include <stdlib.h>
#include <string.h>

/* The device memory of one FakeQuant. */
struct qdqi_uploaded {
    float *chosen;            /* NULL: not uploaded */
    const float *host_chosen; /* which it is a copy of */
    float *scales;            /* in device memory */
    int32_t *zero_points;     /* in device memory; NULL when all are 0 */
    size_t room;              /* capacity of both, in values */
    /* The host's values at the time of the upload: */
    float *host_scales;
    int32_t *host_zero_points;
    size_t n;
    size_t elements; /* elements of the tensor */
};

/* --- opening -------------------------------------------------------------- */

enum qdq_code
qdqi_cuda_fakes_open(const struct qdqi_fakes *fakes, const struct qdqi_device *dev,
                     struct qdqi_cuda_fakes **ret, struct qdq_error *err)
{
    struct qdqi_cuda_fakes *f = calloc(1, sizeof *f);
    if (f)
        f->rows = calloc(fakes->n + 1, sizeof *f->rows);
    if (!f || !f->rows) {
        free(f);
        return qdqi_no_memory(err);
    }
    f->host = fakes;
    f->dev = dev;
    *ret = f;
    return QDQ_OK;
}

static void
free_uploaded(const struct qdqi_device *dev, struct qdqi_uploaded *s)
{
    qdqi_device_release(dev, s->chosen);
    qdqi_device_release(dev, s->scales);
    qdqi_device_release(dev, s->zero_points);
    free(s->host_scales);
    free(s->host_zero_points);
    *s = (struct qdqi_uploaded){0};
}

void
qdqi_cuda_fakes_close(struct qdqi_cuda_fakes **cuda_fakes)
{
    struct qdqi_cuda_fakes *f = *cuda_fakes;
    if (!f)
        return;
    for (size_t i = 0; i < f->host->n; i++)
        free_uploaded(f->dev, &f->rows[i]);
    free(f->rows);
    free(f);
    *cuda_fakes = NULL;
}

/* --- scales --------------------------------------------------------------- */

/* Returns the number of scales of a tensor with that many elements. */
static size_t
count_scales(const struct qdqi_fake *f, size_t elements)
{
    if (f->block == 0)
        return f->channels;
    size_t blocks = (f->channels + f->block - 1) / f->block;
    return elements / f->channels / f->inner * blocks * f->inner;
}

static bool
is_uploaded(const struct qdqi_uploaded *s, const struct qdqi_fake *f, size_t elements)
{
    return s->scales && s->elements == elements && !s->zero_points == !f->zero_points &&
           memcmp(s->host_scales, f->scales, s->n * sizeof *f->scales) == 0 &&
           (!f->zero_points || memcmp(s->host_zero_points, f->zero_points,
                                      s->n * sizeof *f->zero_points) == 0);
}

/* Expands one value per block to one value per element: the CUDA kernel supports
   channels but not blocks. */
static void
expand_blocks(const struct qdqi_fake *f, const void *from, void *to, size_t elements)
{
    const uint32_t *values = from; /* floats or int32; both have 4 bytes */
    uint32_t *expanded = to;
    size_t blocks = (f->channels + f->block - 1) / f->block;
    for (size_t i = 0; i < elements; i++) {
        size_t row = i / f->inner, c = row % f->channels;
        expanded[i] = values[(row / f->channels * blocks + c / f->block) * f->inner +
                             i % f->inner];
    }
}

_Static_assert(sizeof(float) == sizeof(uint32_t) && sizeof(int32_t) == sizeof(uint32_t),
               "scales and zero points are expanded alike");

/* Uploads n values. With blocks it uploads one value for each element of the tensor. */
static enum qdq_code
upload_values(const struct qdqi_device *dev, const struct qdqi_fake *f,
              const void *values, size_t n, size_t elements, void *to,
              struct qdq_error *err)
{
    if (f->block == 0)
        return qdqi_device_upload(dev, to, values, n * sizeof(uint32_t), err);
    uint32_t *all = calloc(elements + 1, sizeof *all);
    if (!all)
        return qdqi_no_memory(err);
    expand_blocks(f, values, all, elements);
    enum qdq_code code = qdqi_device_upload(dev, to, all, elements * sizeof *all, err);
    free(all);
    return code;
}

static enum qdq_code
make_room(const struct qdqi_device *dev, struct qdqi_uploaded *s, size_t n, size_t room,
          bool zero_points, struct qdq_error *err)
{
    void *scales = NULL, *points = NULL;
    if (s->scales && s->room >= room && s->n == n && !s->zero_points == !zero_points)
        return QDQ_OK;
    free_uploaded(dev, s);
    s->host_scales = calloc(n + 1, sizeof *s->host_scales);
    s->host_zero_points = calloc(n + 1, sizeof *s->host_zero_points);
    if (!s->host_scales || !s->host_zero_points)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_device_alloc(dev, room * sizeof *s->scales, &scales, err);
    s->scales = scales;
    if (!code && zero_points)
        code = qdqi_device_alloc(dev, room * sizeof *s->zero_points, &points, err);
    s->zero_points = points;
    s->n = n;
    s->room = room;
    return code;
}

/* Uploads scales and zero points if they changed. Overwriting is safe: earlier runs
   have ended, and the values do not change within a run. */
static enum qdq_code
upload_scales(const struct qdqi_device *dev, struct qdqi_uploaded *s,
              const struct qdqi_fake *f, size_t elements, struct qdq_error *err)
{
    if (is_uploaded(s, f, elements))
        return QDQ_OK;
    size_t n = count_scales(f, elements);
    enum qdq_code code =
        make_room(dev, s, n, f->block ? elements : n, f->zero_points != NULL, err);
    if (!code)
        code = upload_values(dev, f, f->scales, n, elements, s->scales, err);
    if (!code && f->zero_points)
        code = upload_values(dev, f, f->zero_points, n, elements, s->zero_points, err);
    if (code) {
        free_uploaded(dev, s);
        return code;
    }
    memcpy(s->host_scales, f->scales, n * sizeof *f->scales);
    if (f->zero_points)
        memcpy(s->host_zero_points, f->zero_points, n * sizeof *f->zero_points);
    s->elements = elements;
    return QDQ_OK;
}

/* Uploads the numbers that were chosen for a constant, if that was not done. */
static enum qdq_code
upload_chosen(const struct qdqi_device *dev, struct qdqi_uploaded *s,
              const struct qdqi_fake *f, size_t elements, struct qdq_error *err)
{
    void *memory;
    if (s->chosen && s->host_chosen == f->chosen && s->elements == elements)
        return QDQ_OK;
    free_uploaded(dev, s);
    enum qdq_code code =
        qdqi_device_alloc(dev, elements * sizeof *s->chosen, &memory, err);
    if (code)
        return code;
    s->chosen = memory;
    s->host_chosen = f->chosen;
    s->elements = elements;
    return qdqi_device_upload(dev, memory, f->chosen, elements * sizeof *s->chosen,
                              err);
}

/* --- the operator --------------------------------------------------------- */

static enum qdq_code
quantize(struct qdqi_cuda_fakes *f, size_t slot, const struct qdqi_op_tensor *t,
         void *to, void *stream, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(f->dev->cuda);
    const struct qdqi_fake *fake = &f->host->rows[slot];
    struct qdqi_uploaded *sent = &f->rows[slot];
    if (t->n == 0 || (!fake->on && t->data == to))
        return QDQ_OK;
    enum qdq_code code = QDQ_OK;
    if (fake->on)
        code = fake->chosen ? upload_chosen(f->dev, sent, fake, t->n, err)
                            : upload_scales(f->dev, sent, fake, t->n, err);
    if (code)
        return code;
    if (!fake->on || fake->chosen)
        return qdqi_device_check(f->dev,
                                 gpu->copy(to, fake->on ? sent->chosen : t->data,
                                           t->n * sizeof(float), stream),
                                 err);
    struct qdqi_grid grid = {
        .format = fake->format,
        .outer = t->n / fake->channels / fake->inner,
        .channels = fake->channels,
        .inner = fake->inner,
        .scales = sent->scales,
        .zero_points = sent->zero_points,
    };
    if (fake->block) {
        grid.outer = grid.inner = 1;
        grid.channels = t->n;
    }
    return qdqi_device_check(f->dev,
                             gpu->fake(QDQI_FLOAT32, &grid, t->data, to, stream), err);
}

static OrtStatusPtr
fake_cuda(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    struct qdqi_cuda_fakes *f = k->op->state;
    struct qdqi_op_tensor t;
    void *to, *stream;
    OrtStatusPtr status =
        qdqi_faked_tensors(k, context, &f->host->rows[k->slot], &t, &to);
    if (status || (status = qdqi_device_stream(f->dev, k, context, &stream)))
        return status;
    f->fault = (struct qdq_error){0};
    (void)!quantize(f, k->slot, &t, to, stream, &f->fault);
    return qdqi_device_status(k, &f->fault);
}

void
qdqi_fake_cuda_init(struct qdqi_op *op, const OrtApi *api,
                    struct qdqi_cuda_fakes *cuda_fakes)
{
    qdqi_fake_init(op, api, cuda_fakes->host);
    op->provider = qdqi_device_provider(cuda_fakes->dev);
    op->state = cuda_fakes;
    op->compute = fake_cuda;
}
