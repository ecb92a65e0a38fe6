/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node of this operator has one input of any type and no output. It reads the tensor
 * where the runtime keeps it and updates its observer; the runtime then frees the
 * activation at once.
 */
#include "config.h"
#include "run/observe.h"

#include "rewrite/insert.h"

#include <stdio.h>

static void
observe_part(void *reached, size_t i)
{
    qdqi_reached_part(reached, i);
}

/* A large tensor is shared over the runtime's threads. */
static OrtStatusPtr
observe(const struct qdqi_kernel *k, OrtKernelContext *context)
{
    struct qdqi_observers *observers = k->op->state;
    struct qdqi_op_tensor t;
    OrtStatusPtr status = qdqi_op_input(k, context, 0, &t);
    if (status)
        return status;
    enum qdqi_dtype wanted =
        observers->dtypes ? observers->dtypes[k->slot] : QDQI_FLOAT32;
    if ((int)t.type != (int)wanted) { /* ONNX Runtime's values are ONNX's */
        char text[256];
        snprintf(text, sizeof text, "tensor '%.180s' is not %s",
                 observers->rows[k->slot].tensor, qdqi_dtype_name((int)wanted));
        return k->op->api->CreateStatus(ORT_INVALID_ARGUMENT, text);
    }
    struct qdqi_reached r =
        qdqi_reached(observers, k->slot, wanted, t.data, t.n, t.axis0);
    status = qdqi_op_share(k, context, observe_part, r.n_parts, &r);
    if (!status)
        qdqi_reached_end(&r);
    return status;
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
