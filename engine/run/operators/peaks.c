/* SPDX-License-Identifier: Apache-2.0 */
/* A Peak node has one float32 input and no output. It finds the largest magnitude of each
   channel of its input. */
#include "config.h"
#include "run/operators/peaks.h"

#include "transform/rewrite/insert.h"

enum { MAX_RANK = 64 };

static OrtStatusPtr
observe(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    struct qdqi_all_peaks *all = k->op->state;
    int64_t dims[MAX_RANK];
    struct qdqi_op_tensor t;
    size_t rank;
    OrtStatusPtr status = qdqi_op_input(k, context, 0, &t);
    if (status || (status = qdqi_op_input_dims(k, context, 0, dims, MAX_RANK, &rank)))
        return status;
    if (!qdqi_peaks_add(all, k->slot, t.data, rank, dims))
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
                           .compute = observe};
    qdqi_op_init(op);
}
