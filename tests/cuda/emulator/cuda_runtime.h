/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs CUDA's language and the part of its runtime that the kernels use on the host.
 * Each thread of a block is a fiber, and blocks run one after the other. For tests;
 * C++.
 */
#ifndef TESTS_CUDA_EMULATOR_CUDA_RUNTIME_H
#define TESTS_CUDA_EMULATOR_CUDA_RUNTIME_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static /* only one block runs at a time */

struct emulated_index {
    unsigned x;
};
extern struct emulated_index threadIdx, blockIdx, blockDim, gridDim;

using std::max;
using std::min;

/* --- fibers --------------------------------------------------------------- */

void emulated_launch(unsigned blocks, unsigned threads,
                     const std::function<void()> &kernel);
void emulated_wait_block();
void emulated_wait_warp();
uint64_t *emulated_slots(); /* one for each thread of the block */

static inline void
__syncthreads()
{
    emulated_wait_block();
}

template <typename T>
static inline T
emulated_exchange(T value, unsigned from)
{
    static_assert(sizeof(T) <= 8);
    uint64_t *slots = emulated_slots();
    memcpy(&slots[threadIdx.x], &value, sizeof value);
    emulated_wait_warp();
    T other;
    memcpy(&other, &slots[from], sizeof other);
    emulated_wait_warp();
    return other;
}

template <typename T>
static inline T
__shfl_xor_sync(unsigned, T value, int lanes)
{
    return emulated_exchange(value, threadIdx.x ^ (unsigned)lanes);
}

template <typename T>
static inline T
__shfl_down_sync(unsigned, T value, int lanes)
{
    unsigned lane = threadIdx.x % 32, from = lane + (unsigned)lanes;
    return emulated_exchange(value, threadIdx.x - lane + (from < 32 ? from : lane));
}

/* --- memory --------------------------------------------------------------- */

template <typename T, typename U>
static inline T
atomicAdd(T *at, U value)
{
    T old = *at;
    *at = (T)(old + value);
    return old;
}

static inline int32_t
atomicMin(int32_t *at, int32_t value)
{
    int32_t old = *at;
    *at = min(old, value);
    return old;
}

static inline int32_t
atomicMax(int32_t *at, int32_t value)
{
    int32_t old = *at;
    *at = max(old, value);
    return old;
}

template <typename T>
static inline T
__ldg(const T *at)
{
    return *at;
}

template <typename T>
static inline T
__ldcg(const T *at)
{
    return *at;
}

/* Blocks run one after the other. */
static inline void
__threadfence()
{
}

static inline uint32_t
__float_as_uint(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float
__fmaf_rn(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

/* --- runtime -------------------------------------------------------------- */

typedef struct emulated_stream *cudaStream_t;

enum { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
enum { cudaDevAttrMultiProcessorCount, cudaDevAttrMaxThreadsPerMultiProcessor };

static inline int
cudaGetLastError()
{
    return cudaSuccess;
}

static inline int
cudaGetDevice(int *ret)
{
    *ret = 0;
    return cudaSuccess;
}

/* Describes a small device, whose grid is full with few elements. */
static inline int
cudaDeviceGetAttribute(int *ret, int attribute, int)
{
    *ret = attribute == cudaDevAttrMultiProcessorCount ? 1 : 1024;
    return cudaSuccess;
}

#endif
