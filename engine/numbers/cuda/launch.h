/* SPDX-License-Identifier: Apache-2.0 */
/* Code that the kernels share: vectors, loops over data, grids. Only for nvcc. */
#ifndef QDQI_NUMBERS_CUDA_LAUNCH_H
#define QDQI_NUMBERS_CUDA_LAUNCH_H

#include "numbers/cuda/kernels.h"

#include <cuda_runtime.h>

/* --- elements --------------------------------------------------------------- */

/* 16 bytes that are read and written at once. */
template <typename T> struct alignas(16) qdqi_vector {
    T at[16 / sizeof(T)];
};

__device__ __forceinline__ float
qdqi_load(float x)
{
    return x;
}

__device__ __forceinline__ float
qdqi_load(uint16_t half)
{
    return qdqi_cuda_widened(half);
}

__device__ __forceinline__ void
qdqi_store(float x, float *ret)
{
    *ret = x;
}

__device__ __forceinline__ void
qdqi_store(float x, uint16_t *ret)
{
    *ret = qdqi_cuda_narrowed(x);
}

/* --- loops ------------------------------------------------------------------ */

__device__ __forceinline__ size_t
qdqi_thread(void)
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ size_t
qdqi_threads(void)
{
    return (size_t)gridDim.x * blockDim.x;
}

/* Number of vectors whose reads a thread starts before it uses the first one. */
enum { QDQI_IN_FLIGHT = 4 };

/* Calls take(element) for elements of n: all of them, if the caller is each of `step` threads
   in turn, with i from 0 to step - 1. There are 8 threads or more. */
template <typename T, typename Take>
__device__ __forceinline__ void
qdqi_share(const T *data, size_t n, size_t i, size_t step, Take take)
{
    enum { WIDTH = 16 / sizeof(T) };
    const struct qdqi_cuda_span span = qdqi_cuda_span_of((uintptr_t)data, n, sizeof(T));
    const qdqi_vector<T> *body = (const qdqi_vector<T> *)(data + span.head);
    if (i < span.head)
        take(data[i]);
    if (i < span.tail)
        take(data[n - span.tail + i]);
    for (; i + (QDQI_IN_FLIGHT - 1) * step < span.vectors; i += QDQI_IN_FLIGHT * step) {
        qdqi_vector<T> v[QDQI_IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < QDQI_IN_FLIGHT; k++)
            v[k] = body[i + k * step];
#pragma unroll
        for (int k = 0; k < QDQI_IN_FLIGHT; k++)
#pragma unroll
            for (int j = 0; j < WIDTH; j++)
                take(v[k].at[j]);
    }
    for (; i < span.vectors; i += step) {
        qdqi_vector<T> v = body[i];
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            take(v.at[j]);
    }
}

/* Calls take(element) for each of n elements. All threads of the grid take part. */
template <typename T, typename Take>
__device__ __forceinline__ void
qdqi_each(const T *data, size_t n, Take take)
{
    qdqi_share(data, n, qdqi_thread(), qdqi_threads(), take);
}

/* --- extremes --------------------------------------------------------------- */

enum { QDQI_WARP = 32 };

__device__ __forceinline__ int32_t
qdqi_key_of(float x)
{
    return qdqi_cuda_key_of_bits(__float_as_uint(x));
}

__device__ __forceinline__ int32_t
qdqi_key_of(uint16_t half)
{
    return qdqi_cuda_key_of_half(half);
}

__device__ __forceinline__ int32_t
qdqi_key_widened(int32_t key, float)
{
    return key;
}

__device__ __forceinline__ int32_t
qdqi_key_widened(int32_t key, uint16_t)
{
    return qdqi_cuda_key_widened(key);
}

/* Reduces over the warp's threads; every thread gets the result. */
__device__ __forceinline__ void
qdqi_reduce_warp(int32_t *min_key, int32_t *max_key)
{
#pragma unroll
    for (int lanes = QDQI_WARP / 2; lanes > 0; lanes /= 2) {
        *min_key = min(*min_key, __shfl_xor_sync(~0u, *min_key, lanes));
        *max_key = max(*max_key, __shfl_xor_sync(~0u, *max_key, lanes));
    }
}

/* Merges the keys of the block's threads, whole warps of them, with *e. The elements are of
   type T. */
template <typename T>
__device__ __forceinline__ void
qdqi_merge_keys(int32_t min_key, int32_t max_key, struct qdqi_extremes *e)
{
    __shared__ int32_t mins[QDQI_WARP], maxs[QDQI_WARP]; /* for as many warps */
    const unsigned lane = threadIdx.x % QDQI_WARP, warp = threadIdx.x / QDQI_WARP;
    const unsigned warps = blockDim.x / QDQI_WARP;
    qdqi_reduce_warp(&min_key, &max_key);
    if (lane == 0) {
        mins[warp] = min_key;
        maxs[warp] = max_key;
    }
    __syncthreads();
    if (warp > 0)
        return;
    min_key = lane < warps ? mins[lane] : INT32_MAX;
    max_key = lane < warps ? maxs[lane] : INT32_MIN;
    qdqi_reduce_warp(&min_key, &max_key);
    if (lane > 0 || min_key > max_key)
        return;
    atomicMin(&e->min, qdqi_key_widened(min_key, T()));
    atomicMax(&e->max, qdqi_key_widened(max_key, T()));
}

/* --- grids ------------------------------------------------------------------ */

/* Sets the numbers of the current device's multiprocessors and of the threads that each of
   them has. They are asked for once. Returns false when the device cannot be queried. */
static inline bool
qdqi_device_size(int *ret_multiprocessors, int *ret_threads)
{
    static thread_local int known = -1, multiprocessors, threads;
    int device;
    if (cudaGetDevice(&device) != cudaSuccess)
        return false;
    if (device != known &&
        (cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount,
                                device) != cudaSuccess ||
         cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor,
                                device) != cudaSuccess))
        return false;
    known = device;
    *ret_multiprocessors = multiprocessors;
    *ret_threads = threads;
    return true;
}

/*
 * Returns the number of blocks for n elements when each thread should get `each` of
 * them. It is at most the number of blocks that can run at the same time, with at most
 * `per_multiprocessor` on each multiprocessor: threads loop, so no block has to wait
 * for another one to end. Returns 0 when the device cannot be queried.
 */
static inline unsigned
qdqi_blocks(size_t n, size_t each, int threads, int per_multiprocessor)
{
    int multiprocessors, room;
    if (!qdqi_device_size(&multiprocessors, &room))
        return 0;
    room /= threads;
    room = room < per_multiprocessor ? room : per_multiprocessor;
    size_t wanted = (n - 1) / (each * (size_t)threads) + 1;
    size_t most = (size_t)multiprocessors * (size_t)room;
    return (unsigned)(wanted < most ? wanted : most);
}

/* Queues a kernel. cudaGetLastError() returns whether that failed. */
template <typename... Parameters, typename... Arguments>
static inline void
qdqi_launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
            void *stream, Arguments... arguments)
{
#ifdef __CUDACC__
    kernel<<<blocks, threads, 0, (cudaStream_t)stream>>>(arguments...);
#else /* compiled by the emulator of tests/cuda */
    (void)stream;
    emulated_launch(blocks, threads, [&] { kernel(arguments...); });
#endif
}

static inline bool
qdqi_is_type(int type)
{
    return type == QDQI_FLOAT32 || type == QDQI_FLOAT16;
}

#endif
