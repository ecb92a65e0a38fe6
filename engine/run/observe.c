/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node of this operator has one input of any type, the attribute `slot`, and no
 * output. It reads the tensor where the runtime keeps it and updates its observer; the
 * runtime then frees the activation at once.
 */
#include "config.h"
#include "run/observe.h"

#include "rewrite/insert.h"

#include <stdio.h>
#include <stdlib.h>

struct kernel {
    const OrtApi *api;
    struct qdqi_observers *observers;
    size_t slot;
};

static const char *ORT_API_CALL
op_name(const OrtCustomOp *op)
{
    (void)op;
    return QDQI_OBSERVE;
}

static const char *ORT_API_CALL
op_provider(const OrtCustomOp *op)
{
    (void)op;
    return NULL; /* the CPU's */
}

static ONNXTensorElementDataType ORT_API_CALL
op_type(const OrtCustomOp *op, size_t i)
{
    (void)op;
    (void)i;
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED; /* any */
}

static size_t ORT_API_CALL
op_one(const OrtCustomOp *op)
{
    (void)op;
    return 1;
}

static size_t ORT_API_CALL
op_none(const OrtCustomOp *op)
{
    (void)op;
    return 0;
}

static OrtCustomOpInputOutputCharacteristic ORT_API_CALL
op_required(const OrtCustomOp *op, size_t i)
{
    (void)op;
    (void)i;
    return INPUT_OUTPUT_REQUIRED;
}

static OrtMemType ORT_API_CALL
op_memory(const OrtCustomOp *op, size_t i)
{
    (void)op;
    (void)i;
    return OrtMemTypeDefault;
}

static int ORT_API_CALL
op_arity(const OrtCustomOp *op)
{
    (void)op;
    return 1;
}

static int ORT_API_CALL
op_first_version(const OrtCustomOp *op)
{
    (void)op;
    return 1;
}

static int ORT_API_CALL
op_last_version(const OrtCustomOp *op)
{
    (void)op;
    return INT_MAX;
}

static OrtStatusPtr ORT_API_CALL
kernel_create(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
              void **ret)
{
    const struct qdqi_observe_op *self = (const struct qdqi_observe_op *)op;
    int64_t slot = -1;
    OrtStatusPtr status = api->KernelInfoGetAttribute_int64(info, "slot", &slot);
    if (status)
        return status;
    if (slot < 0 || (size_t)slot >= self->observers->n)
        return api->CreateStatus(ORT_INVALID_ARGUMENT, "Observe: no such slot");
    struct kernel *kernel = malloc(sizeof *kernel);
    if (!kernel)
        return api->CreateStatus(ORT_FAIL, "out of memory");
    *kernel = (struct kernel){api, self->observers, (size_t)slot};
    *ret = kernel;
    return NULL;
}

static void
observe_part(void *reached, size_t i)
{
    qdqi_reached_part(reached, i);
}

/* The number of its indices; 0 for a tensor without axes. */
static OrtStatusPtr
first_axis(const OrtApi *api, const OrtTensorTypeAndShapeInfo *shape, int64_t *ret)
{
    size_t rank;
    *ret = 0;
    OrtStatusPtr status = api->GetDimensionsCount(shape, &rank);
    return status || rank == 0 ? status : api->GetDimensions(shape, ret, 1);
}

/* A large tensor is shared over the runtime's own threads, of which this is one. */
static OrtStatusPtr
observe(const struct kernel *k, const OrtKernelContext *context, const OrtValue *value,
        const OrtTensorTypeAndShapeInfo *shape)
{
    ONNXTensorElementDataType type;
    void *data;
    size_t n;
    int64_t axis0;
    OrtStatusPtr status;
    if ((status = k->api->GetTensorElementType(shape, &type)) ||
        (status = k->api->GetTensorShapeElementCount(shape, &n)) ||
        (status = first_axis(k->api, shape, &axis0)))
        return status;
    if (type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
        char text[256];
        snprintf(text, sizeof text, "tensor '%.180s' is not float32",
                 k->observers->rows[k->slot].tensor);
        return k->api->CreateStatus(ORT_INVALID_ARGUMENT, text);
    }
    if ((status = k->api->GetTensorMutableData((OrtValue *)(uintptr_t)value, &data)))
        return status;
    struct qdqi_reached r = qdqi_reached(k->observers, k->slot, data, n, axis0);
    if (r.n_parts == 1)
        qdqi_reached_part(&r, 0);
    else
        status = k->api->KernelContext_ParallelFor(context, observe_part, r.n_parts,
                                                   r.n_parts, &r);
    if (!status)
        qdqi_reached_end(&r);
    return status;
}

static OrtStatusPtr ORT_API_CALL
kernel_compute(void *kernel, OrtKernelContext *context)
{
    const struct kernel *k = kernel;
    const OrtValue *value;
    OrtTensorTypeAndShapeInfo *shape;
    OrtStatusPtr status = k->api->KernelContext_GetInput(context, 0, &value);
    if (status || (status = k->api->GetTensorTypeAndShape(value, &shape)))
        return status;
    status = observe(k, context, value, shape);
    k->api->ReleaseTensorTypeAndShapeInfo(shape);
    return status;
}

static void ORT_API_CALL
kernel_destroy(void *kernel)
{
    free(kernel);
}

void
qdqi_observe_op_init(struct qdqi_observe_op *self, const OrtApi *api,
                     struct qdqi_observers *observers)
{
    self->api = api;
    self->observers = observers;
    self->op = (OrtCustomOp){
        .version = ORT_API_VERSION,
        .GetName = op_name,
        .GetExecutionProviderType = op_provider,
        .GetInputType = op_type,
        .GetInputTypeCount = op_one,
        .GetOutputType = op_type,
        .GetOutputTypeCount = op_none,
        .GetInputCharacteristic = op_required,
        .GetOutputCharacteristic = op_required,
        .GetInputMemoryType = op_memory,
        .GetVariadicInputMinArity = op_arity,
        .GetVariadicInputHomogeneity = op_arity,
        .GetVariadicOutputMinArity = op_arity,
        .GetVariadicOutputHomogeneity = op_arity,
        .GetStartVersion = op_first_version,
        .GetEndVersion = op_last_version,
        .CreateKernelV2 = kernel_create,
        .KernelComputeV2 = kernel_compute,
        .KernelDestroy = kernel_destroy,
    };
}
