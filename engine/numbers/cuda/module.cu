/* SPDX-License-Identifier: Apache-2.0 */
/* The module's table: devices, memory and streams, with CUDA's runtime, and the
   kernels. */
#include "numbers/cuda/api.h"

#include <cuda_runtime.h>
#include <stdio.h>

namespace
{

/* --- statuses --------------------------------------------------------------- */

enum qdqi_cuda_fault
fault(int status)
{
    switch (status) {
    case cudaSuccess:
        return QDQI_CUDA_FINE;
    case cudaErrorStubLibrary:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorUnsupportedPtxVersion: {
        int driver = 0;
        if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
            return QDQI_CUDA_NO_DRIVER;
        return QDQI_CUDA_OLD_DRIVER;
    }
    case cudaErrorInitializationError:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceNotLicensed:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorOperatingSystem:
    case cudaErrorNotPermitted:
    case cudaErrorNotSupported:
    case cudaErrorSystemNotReady:
        return QDQI_CUDA_NO_DEVICE;
    case cudaErrorMemoryAllocation:
        return QDQI_CUDA_MEMORY;
    /* After one of these errors every later call of the process fails. */
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorCudartUnloading:
    case cudaErrorUnknown:
        return QDQI_CUDA_LOST;
    default:
        return QDQI_CUDA_OTHER;
    }
}

const char *
text(int status)
{
    return cudaGetErrorString((cudaError_t)status);
}

/* Returns the status of a call and clears it, because the runtime would report it
   again to the next launch. */
int
clear_status(cudaError_t status)
{
    if (status != cudaSuccess)
        cudaGetLastError();
    return status;
}

/* --- devices ---------------------------------------------------------------- */

int
versions(int *driver, int *built)
{
    *built = CUDART_VERSION;
    return clear_status(cudaDriverGetVersion(driver));
}

int
count(int *n)
{
    return clear_status(cudaGetDeviceCount(n));
}

int
describe(int device, struct qdqi_cuda_device *ret)
{
    struct cudaDeviceProp p;
    cudaError_t status = cudaGetDeviceProperties(&p, device);
    if (status != cudaSuccess)
        return clear_status(status);
    *ret = qdqi_cuda_device{};
    snprintf(ret->name, sizeof ret->name, "%.*s", (int)sizeof ret->name - 1, p.name);
    ret->major = p.major;
    ret->minor = p.minor;
    ret->multiprocessors = p.multiProcessorCount;
    ret->memory = p.totalGlobalMem;
    return cudaSuccess;
}

/* The device is initialized with the first call of a thread. */
int
use(int device)
{
    static thread_local int initialized = -1;
    cudaError_t status = cudaSetDevice(device);
    if (status == cudaSuccess && device != initialized)
        status = cudaFree(NULL);
    if (status == cudaSuccess)
        initialized = device;
    return clear_status(status);
}

/* --- memory ----------------------------------------------------------------- */

int
alloc(size_t bytes, void **ret)
{
    return clear_status(cudaMalloc(ret, bytes));
}

int
release(void *memory)
{
    return clear_status(cudaFree(memory));
}

int
alloc_host(size_t bytes, void **ret)
{
    return clear_status(cudaHostAlloc(ret, bytes, cudaHostAllocDefault));
}

int
release_host(void *memory)
{
    return clear_status(cudaFreeHost(memory));
}

int
upload(void *device, const void *host, size_t bytes, void *stream)
{
    return clear_status(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice,
                                        (cudaStream_t)stream));
}

int
download(void *host, const void *device, size_t bytes, void *stream)
{
    return clear_status(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost,
                                        (cudaStream_t)stream));
}

int
copy(void *to, const void *from, size_t bytes, void *stream)
{
    return clear_status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                        (cudaStream_t)stream));
}

int
clear(void *memory, size_t bytes, void *stream)
{
    return clear_status(cudaMemsetAsync(memory, 0, bytes, (cudaStream_t)stream));
}

/* --- streams ---------------------------------------------------------------- */

int
stream_open(void **ret)
{
    return clear_status(
        cudaStreamCreateWithFlags((cudaStream_t *)ret, cudaStreamNonBlocking));
}

int
stream_close(void *stream)
{
    return clear_status(cudaStreamDestroy((cudaStream_t)stream));
}

int
stream_wait(void *stream)
{
    return clear_status(cudaStreamSynchronize((cudaStream_t)stream));
}

int
event_open(void **ret)
{
    return clear_status(cudaEventCreate((cudaEvent_t *)ret));
}

int
event_close(void *event)
{
    return clear_status(cudaEventDestroy((cudaEvent_t)event));
}

int
event_record(void *event, void *stream)
{
    return clear_status(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream));
}

int
event_await(void *event, void *stream)
{
    return clear_status(
        cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0));
}

int
event_wait(void *event)
{
    return clear_status(cudaEventSynchronize((cudaEvent_t)event));
}

int
event_seconds(void *from, void *to, double *ret)
{
    float milliseconds = 0;
    cudaError_t status = cudaEventSynchronize((cudaEvent_t)to);
    if (status == cudaSuccess)
        status =
            cudaEventElapsedTime(&milliseconds, (cudaEvent_t)from, (cudaEvent_t)to);
    *ret = (double)milliseconds / 1000;
    return clear_status(status);
}

const struct qdqi_cuda_api api = {
    .version = QDQI_CUDA_VERSION,
    .is_host = false,
    .fault = fault,
    .text = text,
    .versions = versions,
    .count = count,
    .describe = describe,
    .use = use,
    .alloc = alloc,
    .release = release,
    .alloc_host = alloc_host,
    .release_host = release_host,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .stream_wait = stream_wait,
    .upload = upload,
    .download = download,
    .copy = copy,
    .clear = clear,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .event_await = event_await,
    .event_wait = event_wait,
    .event_seconds = event_seconds,
    .extremes_init = qdqi_cuda_extremes_init,
    .extremes_update = qdqi_cuda_extremes_update,
    .extremes_each = qdqi_cuda_extremes_each,
    .histogram_init = qdqi_cuda_histogram_init,
    .histogram_update = qdqi_cuda_histogram_update,
    .histogram_continue = qdqi_cuda_histogram_continue,
    .histogram_extremes = qdqi_cuda_histogram_extremes,
    .fake = qdqi_cuda_fake,
    .sums_workspace = qdqi_cuda_sums_workspace,
    .sums_init = qdqi_cuda_sums_init,
    .sums_update = qdqi_cuda_sums_update,
    .moment_gather = qdqi_cuda_moment_gather,
    .moment_add = qdqi_cuda_moment_add,
};

} // namespace

extern "C" __attribute__((visibility("default"))) const struct qdqi_cuda_api *
qdqi_cuda_module(void)
{
    return &api;
}
