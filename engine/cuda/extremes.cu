/* SPDX-License-Identifier: Apache-2.0 */
/* Extremes as integer minima and maxima of keys. They do not depend on the order, so
   blocks merge their results with atomic operations. */
#include "cuda/launch.h"

namespace
{

enum { THREADS = 256, BLOCKS = 8 /* blocks per multiprocessor */ };

__global__ void
init(struct qdqi_extremes *e, size_t n)
{
    for (size_t i = qdqi_thread(); i < n; i += qdqi_threads()) {
        e[i].min = INT32_MAX;
        e[i].max = INT32_MIN;
    }
}

__device__ __forceinline__ int32_t
key_of(float x)
{
    return qdqi_cuda_key_of_bits(__float_as_uint(x));
}

__device__ __forceinline__ int32_t
key_of(uint16_t half)
{
    return qdqi_cuda_key_of_half(half);
}

__device__ __forceinline__ int32_t
widened(int32_t key, float)
{
    return key;
}

__device__ __forceinline__ int32_t
widened(int32_t key, uint16_t)
{
    return qdqi_cuda_key_widened(key);
}

/* Reduces over the warp's threads; every thread gets the result. */
__device__ __forceinline__ void
reduce_warp(int32_t *min_key, int32_t *max_key)
{
#pragma unroll
    for (int lanes = QDQI_WARP / 2; lanes > 0; lanes /= 2) {
        *min_key = min(*min_key, __shfl_xor_sync(~0u, *min_key, lanes));
        *max_key = max(*max_key, __shfl_xor_sync(~0u, *max_key, lanes));
    }
}

template <typename T>
__global__ void
__launch_bounds__(THREADS) take(const T *data, size_t n, struct qdqi_extremes *e)
{
    enum { WARPS = THREADS / QDQI_WARP };
    __shared__ int32_t mins[WARPS], maxs[WARPS];
    const unsigned lane = threadIdx.x % QDQI_WARP, warp = threadIdx.x / QDQI_WARP;
    int32_t min_key = INT32_MAX, max_key = INT32_MIN;
    qdqi_each(data, n, [&](T x) {
        int32_t key = key_of(x);
        min_key = min(min_key, key);
        max_key = max(max_key, key);
    });
    reduce_warp(&min_key, &max_key);
    if (lane == 0) {
        mins[warp] = min_key;
        maxs[warp] = max_key;
    }
    __syncthreads();
    if (warp > 0)
        return;
    min_key = lane < WARPS ? mins[lane] : INT32_MAX;
    max_key = lane < WARPS ? maxs[lane] : INT32_MIN;
    reduce_warp(&min_key, &max_key);
    if (lane > 0 || min_key > max_key)
        return;
    atomicMin(&e->min, widened(min_key, T()));
    atomicMax(&e->max, widened(max_key, T()));
}

template <typename T>
int
launch(const T *data, size_t n, struct qdqi_extremes *e, void *stream)
{
    unsigned blocks = qdqi_blocks(n, 16 / sizeof(T) * QDQI_IN_FLIGHT, THREADS, BLOCKS);
    if (blocks == 0)
        return (int)cudaGetLastError();
    qdqi_launch(take<T>, blocks, THREADS, stream, data, n, e);
    return (int)cudaGetLastError();
}

} // namespace

int
qdqi_cuda_extremes_init(struct qdqi_extremes *e, size_t n, void *stream)
{
    if (n == 0)
        return cudaSuccess;
    qdqi_launch(init, 1, THREADS, stream, e, n);
    return (int)cudaGetLastError();
}

int
qdqi_cuda_extremes_update(int type, const void *data, size_t n, struct qdqi_extremes *e,
                          void *stream)
{
    if (!qdqi_is_type(type))
        return cudaErrorInvalidValue;
    if (n == 0)
        return cudaSuccess;
    return type == QDQI_FLOAT16 ? launch((const uint16_t *)data, n, e, stream)
                                : launch((const float *)data, n, e, stream);
}
