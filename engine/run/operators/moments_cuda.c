/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/operators/moments_cuda.h"

#include "ground/base/arena.h"
#include "run/operators/operators.h"

#include <stdlib.h>

/* The moments of one slot. */
struct slot {
    struct qdqi_cuda_moment moment;
    size_t n_pending;
};

struct qdqi_cuda_moments {
    struct qdqi_moments *host;
    const struct qdqi_device *dev;
    struct slot *slots;
    struct qdq_error fault; /* the error of the last operator that failed */
};

_Static_assert((int)QDQI_CUDA_MOMENT_ROWS == (int)QDQI_MOMENT_ROWS &&
                   (int)QDQI_CUDA_AXES == (int)QDQI_PATCH_AXES,
               "the kernels have the host's limits");

/* --- opening -------------------------------------------------------------- */

static size_t
n_products(const struct qdqi_cuda_moment *m)
{
    return m->groups * qdqi_moment_products(m->k);
}

/* Empties a slot, but for pending rows. */
static int
clear(const struct qdqi_cuda_api *gpu, const struct qdqi_cuda_moment *m)
{
    int status = gpu->clear(m->products, n_products(m) * sizeof *m->products, NULL);
    if (!status)
        status = gpu->clear(m->sums, m->groups * m->k * sizeof *m->sums, NULL);
    return status ? status : gpu->clear(m->rows, m->groups * sizeof *m->rows, NULL);
}

/* The columns behind the end of a block stay zeros. */
static enum qdq_code
open_slot(const struct qdqi_device *dev, const struct qdqi_patches *p, struct slot *s,
          struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(dev->cuda);
    const struct qdqi_moment *host = p->moments;
    struct qdqi_cuda_moment *m = &s->moment;
    *m = (struct qdqi_cuda_moment){
        .groups = p->groups, .k = host->k, .block = host->block, .tile = host->tile};
    m->blocks = (m->k + m->block - 1) / m->block;
    m->tiles = (m->block + m->tile - 1) / m->tile;
    size_t pending = m->groups * QDQI_MOMENT_ROWS * m->blocks * m->tiles * m->tile;
    struct {
        void *memory;
        size_t bytes;
    } parts[] = {{NULL, n_products(m) * sizeof *m->products},
                 {NULL, m->groups * m->k * sizeof *m->sums},
                 {NULL, m->groups * sizeof *m->rows},
                 {NULL, pending * sizeof *m->pending}};
    enum { N_PARTS = sizeof parts / sizeof *parts };
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < N_PARTS && !code; i++)
        code = qdqi_device_alloc(dev, parts[i].bytes, &parts[i].memory, err);
    m->products = parts[0].memory;
    m->sums = parts[1].memory;
    m->rows = parts[2].memory;
    m->pending = parts[3].memory;
    if (code)
        return code;
    int status = clear(gpu, m);
    if (!status)
        status = gpu->clear(m->pending, parts[3].bytes, NULL);
    return qdqi_device_check(dev, status, err);
}

static void
close_slot(const struct qdqi_device *dev, struct slot *s)
{
    qdqi_device_release(dev, s->moment.products);
    qdqi_device_release(dev, s->moment.sums);
    qdqi_device_release(dev, s->moment.rows);
    qdqi_device_release(dev, s->moment.pending);
}

enum qdq_code
qdqi_cuda_moments_open(struct qdqi_moments *moments, const struct qdqi_device *dev,
                       struct qdqi_cuda_moments **ret, struct qdq_error *err)
{
    struct qdqi_cuda_moments *m = calloc(1, sizeof *m);
    if (!m || !(m->slots = calloc(moments->n + 1, sizeof *m->slots))) {
        free(m);
        return qdqi_no_memory(err);
    }
    m->host = moments;
    m->dev = dev;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < moments->n && !code; i++)
        code = open_slot(dev, moments->rows[i], &m->slots[i], err);
    if (!code)
        code = qdqi_device_check(dev, qdqi_cuda_functions(dev->cuda)->stream_wait(NULL),
                                 err);
    if (code)
        qdqi_cuda_moments_close(&m);
    else
        *ret = m;
    return code;
}

void
qdqi_cuda_moments_close(struct qdqi_cuda_moments **cuda_moments)
{
    struct qdqi_cuda_moments *m = *cuda_moments;
    if (!m)
        return;
    for (size_t i = 0; i < m->host->n; i++)
        close_slot(m->dev, &m->slots[i]);
    free(m->slots);
    free(m);
    *cuda_moments = NULL;
}

const struct qdq_error *
qdqi_cuda_moments_fault(const struct qdqi_cuda_moments *m)
{
    return &m->fault;
}

/* --- from the device ------------------------------------------------------ */

/* Adds the moment of one group. `products` and `sums` have room for it. */
static enum qdq_code
collect_group(const struct qdqi_cuda_moments *m, const struct slot *s, size_t group,
              float *products, double *sums, struct qdqi_moment *to,
              struct qdq_error *err)
{
    size_t k = s->moment.k, n = qdqi_moment_products(k);
    uint64_t rows;
    enum qdq_code code = qdqi_device_download(
        m->dev, products, s->moment.products + group * n, n * sizeof *products, err);
    if (!code)
        code = qdqi_device_download(m->dev, sums, s->moment.sums + group * k,
                                    k * sizeof *sums, err);
    if (!code)
        code = qdqi_device_download(m->dev, &rows, s->moment.rows + group, sizeof rows,
                                    err);
    if (code)
        return code;
    for (size_t i = 0; i < n; i++)
        to->products[i] += products[i];
    for (size_t i = 0; i < k; i++)
        to->sums[i] += sums[i];
    to->rows += rows;
    return QDQ_OK;
}

static enum qdq_code
collect_slot(const struct qdqi_cuda_moments *m, size_t i, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(m->dev->cuda);
    struct slot *s = &m->slots[i];
    float *products = calloc(qdqi_moment_products(s->moment.k) + 1, sizeof *products);
    double *sums = calloc(s->moment.k + 1, sizeof *sums);
    enum qdq_code code =
        products && sums
            ? qdqi_device_check(m->dev, gpu->moment_add(&s->moment, s->n_pending, NULL),
                                err)
            : qdqi_no_memory(err);
    s->n_pending = 0;
    for (size_t g = 0; g < s->moment.groups && !code; g++)
        code =
            collect_group(m, s, g, products, sums, &m->host->rows[i]->moments[g], err);
    free(products);
    free(sums);
    return code ? code : qdqi_device_check(m->dev, clear(gpu, &s->moment), err);
}

enum qdq_code
qdqi_cuda_moments_collect(struct qdqi_cuda_moments *m, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < m->host->n && !code; i++)
        code = collect_slot(m, i, err);
    return code;
}

/* --- the operator --------------------------------------------------------- */

struct adding {
    struct qdqi_cuda_moments *moments;
    struct slot *slot;
    void *stream;
    struct qdqi_cuda_window window;
    struct qdqi_cuda_rows rows; /* that are still to be copied */
    int status;
};

static struct qdqi_cuda_window
window_of(const struct qdqi_patches *p, const struct qdqi_geometry *g)
{
    struct qdqi_cuda_window w = {.axes = (unsigned)p->window.axes};
    for (size_t i = 0; i < p->window.axes; i++) {
        w.kernel[i] = (size_t)p->window.kernel[i];
        w.out[i] = (size_t)g->out[i];
        w.stride[i] = p->window.stride[i];
        w.dilation[i] = p->window.dilation[i];
        w.begin[i] = g->begin[i];
        w.in[i] = g->in[i];
    }
    w.elements = g ? g->channels * g->plane : 0;
    return w;
}

/* Copies the rows of all pieces, and adds the pending rows when they are full. */
static void
take_pieces(struct adding *a)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(a->moments->dev->cuda);
    struct slot *s = a->slot;
    if (!a->status && a->rows.n > 0)
        a->status = gpu->moment_gather(&a->window, &s->moment, &a->rows, a->stream);
    s->n_pending += a->rows.n;
    if (s->n_pending == QDQI_MOMENT_ROWS) {
        if (!a->status)
            a->status = gpu->moment_add(&s->moment, s->n_pending, a->stream);
        s->n_pending = 0;
    }
    a->rows.n = a->rows.n_pieces = 0;
    a->rows.at = s->n_pending;
}

/* All samples of an input have the same numbers of positions and of wanted rows. */
static void
take_sample(void *arg, const struct qdqi_patched_sample *sample)
{
    struct adding *a = arg;
    if (a->rows.n_pieces == 0)
        a->window = window_of(sample->patches, sample->geometry);
    a->rows.positions = sample->positions;
    a->rows.wanted = sample->wanted;
    for (size_t first = 0, n; !a->status && first < sample->wanted; first += n) {
        size_t room = QDQI_MOMENT_ROWS - a->slot->n_pending - a->rows.n;
        size_t left = sample->wanted - first;
        n = left < room ? left : room;
        a->rows.pieces[a->rows.n_pieces++] =
            (struct qdqi_cuda_piece){sample->data, first, n, sample->offset};
        a->rows.n += n;
        if (n == room || a->rows.n_pieces == QDQI_CUDA_PIECES)
            take_pieces(a);
    }
}

static OrtStatusPtr
add_moments(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    struct qdqi_cuda_moments *m = k->op->state;
    struct adding adding = {.moments = m, .slot = &m->slots[k->slot]};
    int64_t dims[QDQI_MOMENTS_RANK];
    struct qdqi_patched input = {.dims = dims};
    OrtStatusPtr status = qdqi_moments_input(k, context, dims, &input);
    if (status || (status = qdqi_device_stream(m->dev, k, context, &adding.stream)))
        return status;
    m->fault = (struct qdq_error){0};
    adding.rows.at = adding.slot->n_pending;
    if (!qdqi_patches_each(m->host, k->slot, &input, take_sample, &adding))
        return qdqi_moments_misfit(k);
    take_pieces(&adding);
    (void)!qdqi_device_check(m->dev, adding.status, &m->fault);
    return qdqi_device_status(k, &m->fault);
}

void
qdqi_moments_cuda_init(struct qdqi_op *op, const OrtApi *api,
                       struct qdqi_cuda_moments *cuda_moments)
{
    qdqi_moments_init(op, api, cuda_moments->host);
    op->provider = qdqi_device_provider(cuda_moments->dev);
    op->state = cuda_moments;
    op->compute = add_moments;
}
