/* SPDX-License-Identifier: Apache-2.0 */
/* A Moment node has one float32 input and no output. It adds rows of its input to the
   moments of a layer. */
#include "config.h"
#include "run/moments.h"

#include "rewrite/insert.h"

enum { MAX_RANK = 64 };

struct adding {
    const struct qdqi_kernel *kernel;
    OrtKernelContext *context;
    OrtStatusPtr status;
};

/* Shares work over the runtime's threads. */
static void
share(void *arg, void (*do_part)(void *part_arg, size_t i), size_t n, void *part_arg)
{
    struct adding *a = arg;
    if (!a->status)
        a->status = qdqi_op_parallel_for(a->kernel, a->context, do_part, n, part_arg);
}

static OrtStatusPtr
observe(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    const OrtApi *api = k->op->api;
    int64_t dims[MAX_RANK];
    struct qdqi_op_tensor t;
    struct adding adding = {.kernel = k, .context = context};
    size_t rank;
    OrtStatusPtr status = qdqi_op_input(k, context, 0, &t);
    if (status || (status = qdqi_op_input_dims(k, context, 0, dims, MAX_RANK, &rank)))
        return status;
    const struct qdqi_patched input = {t.data, rank, dims};
    if (!qdqi_patches_add(k->op->state, k->slot, &input, share, &adding))
        return api->CreateStatus(ORT_INVALID_ARGUMENT,
                                 "the input of a layer does not fit its weight, or "
                                 "there is no memory for a copy");
    return adding.status;
}

void
qdqi_moments_init(struct qdqi_op *op, const OrtApi *api, struct qdqi_moments *moments)
{
    *op = (struct qdqi_op){.api = api,
                           .name = QDQI_MOMENT,
                           .type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                           .n_inputs = 1,
                           .state = moments,
                           .n_slots = moments->n,
                           .compute = observe};
    qdqi_op_init(op);
}
