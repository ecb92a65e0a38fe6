/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error sums in float64. Sums of floats depend on the order of additions, so that order
 * is fixed: the number of blocks depends on n and not on the device; threads loop over
 * vectors in the same steps for aligned and unaligned data; partial sums are merged in
 * a fixed tree, and a second kernel merges those of the blocks in order.
 */
#include "numbers/cuda/launch.h"

namespace
{

enum {
    THREADS = 256,
    WARPS = THREADS / QDQI_WARP,
    MAX_BLOCKS = 1024,
    SHARE = THREADS * 4, /* number of vectors for which one more block is worthwhile */
};

__global__ void
init(struct qdqi_noise *s, size_t n)
{
    for (size_t i = qdqi_thread(); i < n; i += qdqi_threads())
        s[i] = qdqi_noise{};
}

/* --- merging ---------------------------------------------------------------- */

__device__ __forceinline__ struct qdqi_noise
from_lane(const struct qdqi_noise &s, int lanes)
{
    struct qdqi_noise other = {};
    other.signal = __shfl_down_sync(~0u, s.signal, lanes);
    other.noise = __shfl_down_sync(~0u, s.noise, lanes);
    return other;
}

/* Reduces over all threads of the block; the first thread gets the result. */
__device__ __forceinline__ struct qdqi_noise
merge_block(struct qdqi_noise s)
{
    __shared__ struct qdqi_noise warps[WARPS];
    for (int lanes = QDQI_WARP / 2; lanes > 0; lanes /= 2) {
        struct qdqi_noise other = from_lane(s, lanes);
        qdqi_cuda_noise_merge(&s, &other);
    }
    if (threadIdx.x % QDQI_WARP == 0)
        warps[threadIdx.x / QDQI_WARP] = s;
    __syncthreads();
    for (int i = 1; threadIdx.x == 0 && i < WARPS; i++)
        qdqi_cuda_noise_merge(&s, &warps[i]);
    return s;
}

/* --- adding ----------------------------------------------------------------- */

template <typename T>
__device__ __forceinline__ qdqi_vector<T>
vector_at(const T *data, bool aligned)
{
    if (aligned)
        return *(const qdqi_vector<T> *)data;
    qdqi_vector<T> v;
#pragma unroll
    for (int j = 0; j < (int)(16 / sizeof(T)); j++)
        v.at[j] = data[j];
    return v;
}

template <typename T>
__global__ void
__launch_bounds__(THREADS)
    add(const T *f, const T *q, size_t n, bool aligned, struct qdqi_noise *blocks)
{
    enum { WIDTH = 16 / sizeof(T) };
    struct qdqi_noise s = {};
    const size_t vectors = n / WIDTH, tail = n % WIDTH;
#pragma unroll 2
    for (size_t i = qdqi_thread(); i < vectors; i += qdqi_threads()) {
        qdqi_vector<T> a = vector_at(f + i * WIDTH, aligned);
        qdqi_vector<T> b = vector_at(q + i * WIDTH, aligned);
#pragma unroll
        for (int j = 0; j < WIDTH; j++)
            qdqi_cuda_noise_add(&s, qdqi_load(a.at[j]), qdqi_load(b.at[j]));
    }
    if (qdqi_thread() < tail) {
        size_t i = n - tail + qdqi_thread();
        qdqi_cuda_noise_add(&s, qdqi_load(f[i]), qdqi_load(q[i]));
    }
    s = merge_block(s);
    if (threadIdx.x == 0)
        blocks[blockIdx.x] = s;
}

/* Adds the sums of all blocks to *ret. Runs as one block. */
__global__ void
__launch_bounds__(THREADS)
    finish(const struct qdqi_noise *blocks, unsigned n, struct qdqi_noise *ret)
{
    struct qdqi_noise s = {};
    for (unsigned i = threadIdx.x; i < n; i += THREADS)
        qdqi_cuda_noise_merge(&s, &blocks[i]);
    s = merge_block(s);
    if (threadIdx.x == 0)
        qdqi_cuda_noise_merge(ret, &s);
}

template <typename T>
int
launch(const T *f, const T *q, size_t n, struct qdqi_noise *ret,
       struct qdqi_noise *blocks, void *stream)
{
    size_t wanted = (n - 1) / (16 / sizeof(T) * SHARE) + 1;
    unsigned n_blocks = (unsigned)(wanted < MAX_BLOCKS ? wanted : (size_t)MAX_BLOCKS);
    bool aligned = (((uintptr_t)f | (uintptr_t)q) & 15) == 0;
    qdqi_launch(add<T>, n_blocks, THREADS, stream, f, q, n, aligned, blocks);
    qdqi_launch(finish, 1, THREADS, stream, blocks, n_blocks, ret);
    return (int)cudaGetLastError();
}

} // namespace

size_t
qdqi_cuda_sums_workspace(void)
{
    return MAX_BLOCKS * sizeof(struct qdqi_noise);
}

int
qdqi_cuda_sums_init(struct qdqi_noise *s, size_t n, void *stream)
{
    if (n == 0)
        return cudaSuccess;
    qdqi_launch(init, 1, THREADS, stream, s, n);
    return (int)cudaGetLastError();
}

int
qdqi_cuda_sums_update(int type, const void *f, const void *q, size_t n,
                      struct qdqi_noise *s, void *workspace, void *stream)
{
    struct qdqi_noise *blocks = (struct qdqi_noise *)workspace;
    if (!qdqi_is_type(type))
        return cudaErrorInvalidValue;
    if (n == 0)
        return cudaSuccess;
    return type == QDQI_FLOAT16
               ? launch((const uint16_t *)f, (const uint16_t *)q, n, s, blocks, stream)
               : launch((const float *)f, (const float *)q, n, s, blocks, stream);
}
