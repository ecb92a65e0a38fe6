/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "run/operators/device_memory.h"

#include <string.h>

enum qdq_code
qdqi_device_enter(const struct qdqi_device *dev, struct qdq_error *err)
{
    return qdqi_cuda_use(dev->cuda, dev->device, err);
}

enum qdq_code
qdqi_device_check(const struct qdqi_device *dev, int status, struct qdq_error *err)
{
    return qdqi_cuda_check(dev->cuda, status,
                           qdqi_cuda_device(dev->cuda, dev->device)->name, err);
}

enum qdq_code
qdqi_device_settle(const struct qdqi_device *dev, int status, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(dev->cuda);
    return qdqi_device_check(dev, status ? status : gpu->stream_wait(NULL), err);
}

enum qdq_code
qdqi_device_alloc(const struct qdqi_device *dev, size_t bytes, void **ret,
                  struct qdq_error *err)
{
    return qdqi_device_check(
        dev, qdqi_cuda_functions(dev->cuda)->alloc(bytes + !bytes, ret), err);
}

void
qdqi_device_release(const struct qdqi_device *dev, void *memory)
{
    if (memory)
        qdqi_cuda_functions(dev->cuda)->release(memory);
}

/* Uses the default stream, on which nothing else is queued. */
enum qdq_code
qdqi_device_download(const struct qdqi_device *dev, void *host, const void *device,
                     size_t bytes, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(dev->cuda);
    return qdqi_device_settle(dev, bytes ? gpu->download(host, device, bytes, NULL) : 0,
                              err);
}

enum qdq_code
qdqi_device_upload(const struct qdqi_device *dev, void *device, const void *host,
                   size_t bytes, struct qdq_error *err)
{
    const struct qdqi_cuda_api *gpu = qdqi_cuda_functions(dev->cuda);
    return qdqi_device_settle(dev, bytes ? gpu->upload(device, host, bytes, NULL) : 0,
                              err);
}

/* Returns whether the runtime's message reports that device memory is exhausted. The
   phrases are those of CUDA, the runtime's memory pool, cuDNN and cuBLAS. */
static bool
speaks_of_memory(const char *text)
{
    static const char *const words[] = {"CUDA failure 2:", "Failed to allocate memory",
                                        "ALLOC_FAILED"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i]))
            return true;
    return false;
}

/* Every call to a lost device returns that it is lost, so waiting for a stream is a
   test. */
enum qdq_code
qdqi_device_classify_error(const struct qdqi_device *dev, struct qdq_error *err)
{
    struct qdq_error why = {0};
    int status = qdqi_cuda_functions(dev->cuda)->stream_wait(NULL);
    if (qdqi_device_check(dev, status, &why) == QDQ_DEVICE_LOST)
        *err = why;
    if (err->code == QDQ_RUN_FAILED && speaks_of_memory(err->text))
        err->code = QDQ_DEVICE_MEMORY;
    return err->code;
}

/* --- for operators -------------------------------------------------------- */

const char *
qdqi_device_provider(const struct qdqi_device *dev)
{
    return dev->runs_models ? "CUDAExecutionProvider" : NULL;
}

OrtStatusPtr
qdqi_device_stream(const struct qdqi_device *dev, const struct qdqi_kernel *kernel,
                   const OrtKernelContext *context, void **ret)
{
    *ret = NULL;
    return dev->runs_models
               ? kernel->op->api->KernelContext_GetGPUComputeStream(context, ret)
               : NULL;
}

OrtStatusPtr
qdqi_device_status(const struct qdqi_kernel *kernel, const struct qdq_error *fault)
{
    return fault->code ? kernel->op->api->CreateStatus(ORT_FAIL, fault->text) : NULL;
}
