/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An Observe node has one input of any type and no output. It updates its observer from
 * the tensor in ONNX Runtime's memory; the runtime can then free the activation at
 * once. Where the tensor may be in blocks, the node has another name and an output, which
 * nothing reads (transform/rewrite/blocked.h).
 */
#include "config.h"
#include "run/operators/operators.h"

#include "transform/rewrite/blocked.h"
#include "transform/rewrite/insert.h"

#include <stdio.h>

static void
observe_part(void *reached, size_t i)
{
    qdqi_reached_part(reached, i);
}

OrtStatusPtr
qdqi_observed_input(const struct qdqi_kernel *k, OrtKernelContext *context,
                    const struct qdqi_observers *observers, struct qdqi_op_tensor *ret,
                    enum qdqi_dtype *ret_dtype)
{
    OrtStatusPtr status = qdqi_op_input(k, context, 0, ret);
    if (status)
        return status;
    *ret_dtype = observers->dtypes ? observers->dtypes[k->slot] : QDQI_FLOAT32;
    /* ONNX Runtime's element types have the numbers of ONNX's */
    if ((int)ret->type == (int)*ret_dtype)
        return NULL;
    char text[256];
    snprintf(text, sizeof text, "tensor '%.180s' is not %s",
             observers->rows[k->slot].tensor, qdqi_dtype_name((int)*ret_dtype));
    return k->op->api->CreateStatus(ORT_INVALID_ARGUMENT, text);
}

/* Updates the observer. Threads of the runtime share the work on a large tensor. */
static OrtStatusPtr
observe(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    struct qdqi_observers *observers = k->op->state;
    struct qdqi_op_tensor t;
    enum qdqi_dtype dtype;
    OrtStatusPtr status = qdqi_observed_input(k, context, observers, &t, &dtype);
    if (status)
        return status;
    struct qdqi_reached r =
        qdqi_reached(observers, k->slot, dtype, t.data, t.n, t.axis0);
    status = qdqi_op_parallel_for(k, context, observe_part, r.n_parts, &r);
    if (!status)
        qdqi_reached_end(&r);
    return status;
}

/* Fails if the tensor has not as many channels as the model says: then some of them would
   only pad a block. */
static OrtStatusPtr
check_channels(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    const struct qdqi_observers *observers = k->op->state;
    int64_t dims[4];
    size_t rank;
    OrtStatusPtr status = qdqi_op_input_dims(k, context, 0, dims, 4, &rank);
    if (status || (rank == 4 && dims[1] == (int64_t)observers->channels[k->slot]))
        return status;
    return k->op->api->CreateStatus(ORT_INVALID_ARGUMENT,
                                    "an observed tensor has unknown channels");
}

/* Updates the observer from a tensor that may be in blocks. */
static OrtStatusPtr
observe_blocked(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    OrtStatusPtr status = check_channels(k, context);
    return status ? status : observe(k, context);
}

void
qdqi_observe_blocked_init(struct qdqi_op *op, const OrtApi *api,
                          struct qdqi_observers *observers)
{
    *op = (struct qdqi_op){.api = api,
                           .name = QDQI_OBSERVE_BLOCKED,
                           .type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                           .n_inputs = 1,
                           .n_outputs = 1,
                           .memory = QDQI_OP_ALIAS,
                           .state = observers,
                           .n_slots = observers->n,
                           .compute = observe_blocked};
    qdqi_op_init(op);
}

void
qdqi_observe_init(struct qdqi_op *op, const OrtApi *api,
                  struct qdqi_observers *observers)
{
    *op = (struct qdqi_op){.api = api,
                           .name = QDQI_OBSERVE,
                           .type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED,
                           .n_inputs = 1,
                           .state = observers,
                           .n_slots = observers->n,
                           .compute = observe};
    qdqi_op_init(op);
}
