/* SPDX-License-Identifier: Apache-2.0 */
/* Moment and Peak nodes have one float32 input and no output. A Moment node adds rows of its
   input to the moments of a layer, a Peak node finds the largest magnitude of each channel. */
#include "config.h"
#include "run/operators/operators.h"

#include "transform/rewrite/insert.h"

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

OrtStatusPtr
qdqi_moments_input(const struct qdqi_kernel *k, OrtKernelContext *context,
                   int64_t *dims, struct qdqi_patched *ret)
{
    struct qdqi_op_tensor t;
    size_t rank;
    OrtStatusPtr status = qdqi_op_input(k, context, 0, &t);
    if (status ||
        (status = qdqi_op_input_dims(k, context, 0, dims, QDQI_MOMENTS_RANK, &rank)))
        return status;
    *ret = (struct qdqi_patched){t.data, rank, dims};
    return NULL;
}

OrtStatusPtr
qdqi_moments_misfit(const struct qdqi_kernel *k)
{
    return k->op->api->CreateStatus(ORT_INVALID_ARGUMENT,
                                    "the input of a layer does not fit its weight, or "
                                    "there is no memory for a copy");
}

static OrtStatusPtr
observe(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    int64_t dims[QDQI_MOMENTS_RANK];
    struct qdqi_patched input;
    struct adding adding = {.kernel = k, .context = context};
    OrtStatusPtr status = qdqi_moments_input(k, context, dims, &input);
    if (status)
        return status;
    if (!qdqi_patches_add(k->op->state, k->slot, &input, share, &adding))
        return qdqi_moments_misfit(k);
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

/* --- peaks ------------------------------------------------------------------- */

static OrtStatusPtr
find_peaks(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    int64_t dims[QDQI_MOMENTS_RANK];
    struct qdqi_patched input;
    OrtStatusPtr status = qdqi_moments_input(k, context, dims, &input);
    if (status)
        return status;
    if (!qdqi_peaks_add(k->op->state, k->slot, input.data, input.rank, dims))
        return k->op->api->CreateStatus(ORT_INVALID_ARGUMENT,
                                        "the input of a layer does not fit its weight");
    return NULL;
}

void
qdqi_peaks_init(struct qdqi_op *op, const OrtApi *api, struct qdqi_all_peaks *peaks)
{
    *op = (struct qdqi_op){.api = api,
                           .name = QDQI_PEAK,
                           .type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                           .n_inputs = 1,
                           .state = peaks,
                           .n_slots = peaks->n,
                           .compute = find_peaks};
    qdqi_op_init(op);
}
