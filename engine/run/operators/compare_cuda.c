/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/operators/compare_cuda.h"

#include "ground/base/arena.h"
#include "ground/base/dtype.h"
#include "run/operators/operators.h"

#include <stdlib.h>

/* --- opening -------------------------------------------------------------- */

static enum qdq_code
make_sums(struct qdqi_cuda_comparisons *c, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(c->dev->cuda);
    size_t n = c->host->n;
    void *memory;
    enum qdq_code code = qdqi_device_alloc(c->dev, n * sizeof *c->sums, &memory, err);
    if (code)
        return code;
    c->sums = memory;
    if ((code = qdqi_device_alloc(c->dev, gpu->sums_workspace(), &memory, err)))
        return code;
    c->workspace = memory;
    return qdqi_device_settle(c->dev, gpu->sums_init(c->sums, n, NULL), err);
}

enum qdq_code
qdqi_cuda_comparisons_open(struct qdqi_comparisons *comparisons,
                           const struct qdqi_device *dev,
                           struct qdqi_cuda_comparisons **ret, struct qdq_error *err)
{
    struct qdqi_cuda_comparisons *c = calloc(1, sizeof *c);
    if (!c)
        return qdqi_no_memory(err);
    c->host = comparisons;
    c->dev = dev;
    c->downloaded = calloc(comparisons->n + 1, sizeof *c->downloaded);
    enum qdq_code code = c->downloaded ? make_sums(c, err) : qdqi_no_memory(err);
    if (code)
        qdqi_cuda_comparisons_close(&c);
    else
        *ret = c;
    return code;
}

void
qdqi_cuda_comparisons_close(struct qdqi_cuda_comparisons **cuda_comparisons)
{
    struct qdqi_cuda_comparisons *c = *cuda_comparisons;
    if (!c)
        return;
    qdqi_device_release(c->dev, c->sums);
    qdqi_device_release(c->dev, c->workspace);
    free(c->downloaded);
    free(c);
    *cuda_comparisons = NULL;
}

enum qdq_code
qdqi_cuda_comparisons_collect(struct qdqi_cuda_comparisons *c, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(c->dev->cuda);
    size_t n = c->host->n;
    enum qdq_code code =
        qdqi_device_download(c->dev, c->downloaded, c->sums, n * sizeof *c->sums, err);
    if (code)
        return code;
    for (size_t i = 0; i < n; i++) {
        c->host->rows[i].sums.signal += c->downloaded[i].signal;
        c->host->rows[i].sums.noise += c->downloaded[i].noise;
    }
    return qdqi_device_settle(c->dev, gpu->sums_init(c->sums, n, NULL), err);
}

/* --- Compare -------------------------------------------------------------- */

static void *
host_copy(const struct qdqi_cuda_comparisons *c, const struct qdqi_op_tensor *t,
          struct qdq_error *err)
{
    size_t size = t->n * qdqi_dtype_size((int)t->type);
    void *copy = malloc(size + 1);
    if (!copy)
        (void)!qdqi_no_memory(err);
    else if (qdqi_device_download(c->dev, copy, t->data, size, err)) {
        free(copy);
        copy = NULL;
    }
    return copy;
}

/*
 * Adds a comparison of a float32 and a float16 tensor on the host. The CUDA kernel
 * compares tensors of one type only, but a model that was converted to float16 has such
 * pairs.
 */
static enum qdq_code
add_mixed(struct qdqi_cuda_comparisons *c, size_t slot, const struct qdqi_op_tensor *f,
          const struct qdqi_op_tensor *q, void *stream, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(c->dev->cuda);
    enum qdq_code code = qdqi_device_check(c->dev, gpu->stream_wait(stream), err);
    if (code)
        return code;
    void *a = host_copy(c, f, err), *b = a ? host_copy(c, q, err) : NULL;
    if (b)
        qdqi_compare_add(&c->host->rows[slot].sums, (enum qdqi_dtype)f->type, a,
                         (enum qdqi_dtype)q->type, b, f->n);
    free(a);
    free(b);
    return err->code;
}

static enum qdq_code
add(struct qdqi_cuda_comparisons *c, size_t slot, const struct qdqi_op_tensor *f,
    const struct qdqi_op_tensor *q, void *stream, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(c->dev->cuda);
    if (f->type != q->type)
        return add_mixed(c, slot, f, q, stream, err);
    return qdqi_device_check(c->dev,
                             gpu->sums_update((int)f->type, f->data, q->data, f->n,
                                              &c->sums[slot], c->workspace, stream),
                             err);
}

static OrtStatusPtr
compare_cuda(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    struct qdqi_cuda_comparisons *c = k->op->state;
    struct qdqi_op_tensor f, q;
    bool may;
    void *stream;
    OrtStatusPtr status =
        qdqi_compared_inputs(k, context, &c->host->rows[k->slot], &f, &q, &may);
    if (status || !may || (status = qdqi_device_stream(c->dev, k, context, &stream)))
        return status;
    c->fault = (struct qdq_error){0};
    (void)!add(c, k->slot, &f, &q, stream, &c->fault);
    return qdqi_device_status(k, &c->fault);
}

void
qdqi_compare_cuda_init(struct qdqi_op *op, const OrtApi *api,
                       struct qdqi_cuda_comparisons *cuda_comparisons)
{
    qdqi_compare_init(op, api, cuda_comparisons->host);
    op->provider = qdqi_device_provider(cuda_comparisons->dev);
    op->state = cuda_comparisons;
    op->compute = compare_cuda;
}

/* --- Pass ----------------------------------------------------------------- */

static OrtStatusPtr
pass_cuda(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    struct qdqi_cuda_comparisons *c = k->op->state;
    struct qdqi_op_tensor input;
    void *output, *stream;
    OrtStatusPtr status;
    if ((status = qdqi_op_input(k, context, 0, &input)) ||
        (status = qdqi_op_output(k, context, 0, &output)) ||
        (status = qdqi_device_stream(c->dev, k, context, &stream)))
        return status;
    if (output == input.data || input.n == 0)
        return NULL;
    c->fault = (struct qdq_error){0};
    size_t size = input.n * qdqi_dtype_size((int)input.type);
    int copied =
        qdqi_cuda_functions(c->dev->cuda)->copy(output, input.data, size, stream);
    (void)!qdqi_device_check(c->dev, copied, &c->fault);
    return qdqi_device_status(k, &c->fault);
}

void
qdqi_pass_cuda_init(struct qdqi_op *op, const OrtApi *api,
                    struct qdqi_cuda_comparisons *cuda_comparisons)
{
    qdqi_pass_init(op, api);
    op->provider = qdqi_device_provider(cuda_comparisons->dev);
    op->state = cuda_comparisons;
    op->compute = pass_cuda;
}
