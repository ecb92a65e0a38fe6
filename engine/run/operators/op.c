/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/operators/op.h"

#include <limits.h>
#include <stdlib.h>

enum { MAX_RANK = 64 };

OrtStatusPtr
qdqi_op_no_memory(const OrtApi *api)
{
    return api->CreateStatus(ORT_FAIL, "out of memory");
}

/* --- callbacks of the runtime -------------------------------------------- */

static const struct qdqi_op *
op_of(const OrtCustomOp *op)
{
    return (const struct qdqi_op *)op;
}

static const char *ORT_API_CALL
op_name(const OrtCustomOp *op)
{
    return op_of(op)->name;
}

static const char *ORT_API_CALL
op_provider(const OrtCustomOp *op)
{
    return op_of(op)->provider;
}

static ONNXTensorElementDataType ORT_API_CALL
op_type(const OrtCustomOp *op, size_t i)
{
    (void)i;
    return op_of(op)->type;
}

static size_t ORT_API_CALL
op_inputs(const OrtCustomOp *op)
{
    return op_of(op)->n_inputs;
}

static size_t ORT_API_CALL
op_outputs(const OrtCustomOp *op)
{
    return op_of(op)->n_outputs;
}

static OrtCustomOpInputOutputCharacteristic ORT_API_CALL
op_required(const OrtCustomOp *op, size_t i)
{
    (void)op;
    (void)i;
    return INPUT_OUTPUT_REQUIRED;
}

static OrtMemType ORT_API_CALL
op_default_memory(const OrtCustomOp *op, size_t i)
{
    (void)op;
    (void)i;
    return OrtMemTypeDefault;
}

static int ORT_API_CALL
op_one(const OrtCustomOp *op)
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

/* Maps the output to input 0. */
static size_t ORT_API_CALL
one_place(int **inputs, int **outputs)
{
    static const int first = 0;
    *inputs = *outputs = (int *)(uintptr_t)&first;
    return 1;
}

static void ORT_API_CALL
release_places(int *inputs, int *outputs)
{
    (void)inputs;
    (void)outputs;
}

/* Sets *ret to whether each axis has a size or a symbolic name. ONNX Runtime reports
   a tensor of unknown rank like one without axes, and an unknown size as 0. */
static OrtStatusPtr
has_known_shape(const OrtApi *api, const OrtTensorTypeAndShapeInfo *shape, bool *ret)
{
    int64_t dims[MAX_RANK];
    const char *names[MAX_RANK];
    size_t rank;
    *ret = false;
    OrtStatusPtr status = api->GetDimensionsCount(shape, &rank);
    if (status || rank == 0 || rank > MAX_RANK)
        return status;
    if ((status = api->GetDimensions(shape, dims, rank)) ||
        (status = api->GetSymbolicDimensions(shape, names, rank)))
        return status;
    *ret = true;
    for (size_t i = 0; i < rank; i++)
        *ret = *ret && (dims[i] > 0 || (names[i] && *names[i]));
    return NULL;
}

/* Gives the output the shape of input 0. */
static OrtStatusPtr ORT_API_CALL
infer_shape(const OrtCustomOp *op, OrtShapeInferContext *context)
{
    const OrtApi *api = op_of(op)->api;
    OrtTensorTypeAndShapeInfo *shape; /* owned by the context */
    bool known = false;
    OrtStatusPtr status = api->ShapeInferContext_GetInputTypeShape(context, 0, &shape);
    if (status || (status = has_known_shape(api, shape, &known)) || !known)
        return status;
    return api->ShapeInferContext_SetOutputTypeShape(context, 0, shape);
}

static OrtStatusPtr ORT_API_CALL
kernel_create(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info,
              void **ret)
{
    int64_t slot = -1;
    OrtStatusPtr status = api->KernelInfoGetAttribute_int64(info, "slot", &slot);
    if (status)
        return status;
    if (slot < 0 || (size_t)slot >= op_of(op)->n_slots)
        return api->CreateStatus(ORT_INVALID_ARGUMENT, "there is no such slot");
    struct qdqi_kernel *kernel = malloc(sizeof *kernel);
    if (!kernel)
        return qdqi_op_no_memory(api);
    *kernel = (struct qdqi_kernel){op_of(op), (size_t)slot};
    *ret = kernel;
    return NULL;
}

static OrtStatusPtr ORT_API_CALL
kernel_compute(void *kernel, OrtKernelContext *context)
{
    const struct qdqi_kernel *k = kernel;
    return k->op->compute(k, context);
}

static void ORT_API_CALL
kernel_destroy(void *kernel)
{
    free(kernel);
}

void
qdqi_op_init(struct qdqi_op *op)
{
    op->op = (OrtCustomOp){
        .version = ORT_API_VERSION,
        .GetName = op_name,
        .GetExecutionProviderType = op_provider,
        .GetInputType = op_type,
        .GetInputTypeCount = op_inputs,
        .GetOutputType = op_type,
        .GetOutputTypeCount = op_outputs,
        .GetInputCharacteristic = op_required,
        .GetOutputCharacteristic = op_required,
        .GetInputMemoryType = op_default_memory,
        .GetVariadicInputMinArity = op_one,
        .GetVariadicInputHomogeneity = op_one,
        .GetVariadicOutputMinArity = op_one,
        .GetVariadicOutputHomogeneity = op_one,
        .GetStartVersion = op_one,
        .GetEndVersion = op_last_version,
        .CreateKernelV2 = kernel_create,
        .KernelComputeV2 = kernel_compute,
        .KernelDestroy = kernel_destroy,
    };
    if (op->n_outputs > 0)
        op->op.InferOutputShapeFn = infer_shape;
    if (op->memory == QDQI_OP_INPLACE) {
        op->op.GetMayInplace = one_place;
        op->op.ReleaseMayInplace = release_places;
    }
    if (op->memory == QDQI_OP_ALIAS) {
        op->op.GetAliasMap = one_place;
        op->op.ReleaseAliasMap = release_places;
    }
}

/* --- functions for kernels ----------------------------------------------- */

/* Sets *ret to the size of the first axis, or to 0 for a tensor without axes. */
static OrtStatusPtr
first_axis(const OrtApi *api, const OrtTensorTypeAndShapeInfo *shape, int64_t *ret)
{
    size_t rank;
    *ret = 0;
    OrtStatusPtr status = api->GetDimensionsCount(shape, &rank);
    return status || rank == 0 ? status : api->GetDimensions(shape, ret, 1);
}

OrtStatusPtr
qdqi_op_input(const struct qdqi_kernel *kernel, OrtKernelContext *context, size_t i,
              struct qdqi_op_tensor *ret)
{
    const OrtApi *api = kernel->op->api;
    const OrtValue *value;
    OrtTensorTypeAndShapeInfo *shape;
    OrtStatusPtr status = api->KernelContext_GetInput(context, i, &value);
    if (status || (status = api->GetTensorTypeAndShape(value, &shape)))
        return status;
    if (!(status = api->GetTensorElementType(shape, &ret->type)) &&
        !(status = api->GetTensorShapeElementCount(shape, &ret->n)))
        status = first_axis(api, shape, &ret->axis0);
    api->ReleaseTensorTypeAndShapeInfo(shape);
    return status ? status
                  : api->GetTensorMutableData((OrtValue *)(uintptr_t)value, &ret->data);
}

OrtStatusPtr
qdqi_op_input_dims(const struct qdqi_kernel *kernel, OrtKernelContext *context,
                   size_t i, int64_t *dims, size_t max, size_t *ret_rank)
{
    const OrtApi *api = kernel->op->api;
    const OrtValue *value;
    OrtTensorTypeAndShapeInfo *shape;
    OrtStatusPtr status = api->KernelContext_GetInput(context, i, &value);
    if (status || (status = api->GetTensorTypeAndShape(value, &shape)))
        return status;
    if (!(status = api->GetDimensionsCount(shape, ret_rank)) && *ret_rank > max)
        status = api->CreateStatus(ORT_INVALID_ARGUMENT, "too many axes");
    if (!status)
        status = api->GetDimensions(shape, dims, *ret_rank);
    api->ReleaseTensorTypeAndShapeInfo(shape);
    return status;
}

OrtStatusPtr
qdqi_op_output(const struct qdqi_kernel *kernel, OrtKernelContext *context, size_t i,
               void **ret)
{
    OrtValue *output;
    int64_t dims[MAX_RANK];
    size_t rank;
    OrtStatusPtr status = qdqi_op_input_dims(kernel, context, i, dims, MAX_RANK, &rank);
    if (status || (status = kernel->op->api->KernelContext_GetOutput(context, i, dims,
                                                                     rank, &output)))
        return status;
    return kernel->op->api->GetTensorMutableData(output, ret);
}

OrtStatusPtr
qdqi_op_parallel_for(const struct qdqi_kernel *kernel, const OrtKernelContext *context,
                     void (*do_part)(void *arg, size_t i), size_t n, void *arg)
{
    if (n > 1)
        return kernel->op->api->KernelContext_ParallelFor(context, do_part, n, n, arg);
    do_part(arg, 0);
    return NULL;
}
