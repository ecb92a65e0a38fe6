/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms in two passes over the data: the first finds the extremes, which decide
 * the width of the bins, and the second one counts. The width grows on the device, so
 * the host need not wait. Counting is integer addition, which gives the same in any
 * order.
 *
 * After the first data the width rarely grows, so one pass finds the extremes and counts
 * with the width that there is. If it has to grow, or the data are not finite, the block
 * that ends last corrects the counts.
 */
#include "numbers/cuda/launch.h"

namespace
{

enum {
    THREADS = 512,              /* at least as many as a quarter of the bins */
    BLOCKS = 4,                 /* blocks per multiprocessor */
    PAIRS = QDQI_BINS / 2,      /* of bins */
    EACH = QDQI_BINS / THREADS, /* bins of a thread, when one block goes through them */
};

/* Maximum number of elements in one launch, so that a block's 32-bit counts cannot
   overflow. */
const size_t MOST = (size_t)1 << 31;

/* Maximum number of elements that are counted in one pass. It bounds the time that one block
   takes to count elements outside of the range. */
const size_t MOST_AT_ONCE = (size_t)1 << 27;

__device__ __forceinline__ void
make_empty(struct qdqi_extremes *e)
{
    e->min = INT32_MAX;
    e->max = INT32_MIN;
}

__global__ void
init(struct qdqi_cuda_histogram *all)
{
    struct qdqi_cuda_histogram *h = &all[blockIdx.x];
    uint32_t *words = (uint32_t *)h; /* the padding too, which the host copies */
    for (unsigned j = threadIdx.x; j < sizeof *h / sizeof *words; j += blockDim.x)
        words[j] = 0;
    __syncthreads(); /* all zeros are written before the rest */
    if (threadIdx.x > 0)
        return;
    h->histogram.exponent = QDQI_CUDA_MIN_EXPONENT;
    make_empty(&h->extremes);
    make_empty(&h->piece);
}

__global__ void
copy_extremes(const struct qdqi_cuda_histogram *h, size_t n, struct qdqi_extremes *ret)
{
    for (size_t i = qdqi_thread(); i < n; i += qdqi_threads())
        ret[i] = h[i].extremes;
}

/* --- growing ---------------------------------------------------------------- */

/* Joins pairs of bins `shift` times. After 11 times all counts are in the first bin. Runs as
   one block. */
__device__ __forceinline__ void
join(uint64_t *counts, int shift)
{
    __shared__ uint64_t pairs[PAIRS];
    const unsigned t = threadIdx.x;
    unsigned left = PAIRS;
    for (unsigned i = t; i < PAIRS; i += THREADS)
        pairs[i] = counts[2 * i] + counts[2 * i + 1];
    for (int done = 1; done < shift && left > 1; done++) {
        left /= 2;
        __syncthreads(); /* all pairs are written */
        uint64_t sum = t < left ? pairs[2 * t] + pairs[2 * t + 1] : 0;
        __syncthreads(); /* all pairs are read */
        if (t < left)
            pairs[t] = sum;
    }
    __syncthreads(); /* all threads have read the counts that are now written */
    for (unsigned i = t; i < PAIRS; i += THREADS) {
        counts[i] = i < left ? pairs[i] : 0;
        counts[i + PAIRS] = 0;
    }
}

/* Returns the exponent of the bins' width that includes the extremes of finite data. */
__device__ __forceinline__ int
grown(int exponent, const struct qdqi_extremes &piece)
{
    return max(exponent,
               qdqi_cuda_exponent_for(qdqi_cuda_amax_bits(piece.min, piece.max)));
}

/* Merges the extremes of the piece, and makes it empty. */
__device__ __forceinline__ void
merge_piece(struct qdqi_cuda_histogram *h, const struct qdqi_extremes &piece)
{
    h->extremes.min = min(h->extremes.min, piece.min);
    h->extremes.max = max(h->extremes.max, piece.max);
    make_empty(&h->piece);
}

/* Updates the width of the bins and the extremes after the first pass. Runs as one
   block. */
__global__ void
__launch_bounds__(THREADS) grow(struct qdqi_cuda_histogram *h)
{
    const struct qdqi_extremes piece = h->piece;
    const int old = h->histogram.exponent;
    const int counting = qdqi_cuda_keys_finite(piece.min, piece.max);
    const int exponent = counting ? grown(old, piece) : old;
    if (exponent > old)
        join(h->histogram.counts, exponent - old);
    __syncthreads(); /* all threads have read the piece and the exponent */
    if (threadIdx.x > 0)
        return;
    h->histogram.exponent = exponent;
    merge_piece(h, piece);
    h->counting = counting;
}

/* --- counting --------------------------------------------------------------- */

/* The counts of one block are in its shared memory. Each thread counts elements of the first
   bin by itself, because there may be very many zeros. */
struct counter {
    uint32_t *bins;
    uint32_t first;
    float per_width;

    /* Makes the bins empty. All threads of the block take part. */
    __device__ __forceinline__ counter(uint32_t *bins, int exponent)
        : bins(bins), first(0), per_width(qdqi_cuda_per_width(exponent))
    {
        for (unsigned j = threadIdx.x; j < QDQI_BINS; j += THREADS)
            bins[j] = 0;
        __syncthreads();
    }

    __device__ __forceinline__ bool has(float x) const
    {
        return fabsf(x) * per_width < QDQI_BINS; /* not so for a NaN */
    }

    __device__ __forceinline__ void count(float x)
    {
        uint32_t bin = qdqi_cuda_bin_of(x, per_width);
        if (bin == 0)
            first++;
        else
            atomicAdd(&bins[bin], 1u);
    }

    /* Must follow when all elements are counted. All threads of the block take part. */
    __device__ __forceinline__ void end()
    {
        for (int lanes = QDQI_WARP / 2; lanes > 0; lanes /= 2)
            first += __shfl_xor_sync(~0u, first, lanes);
        if (threadIdx.x % QDQI_WARP == 0)
            atomicAdd(&bins[0], first);
        __syncthreads();
    }
};

template <typename T>
__global__ void
__launch_bounds__(THREADS) count(const T *data, size_t n, struct qdqi_cuda_histogram *h)
{
    __shared__ uint32_t bins[QDQI_BINS];
    if (!h->counting)
        return;
    struct counter counter(bins, h->histogram.exponent);
    qdqi_each(data, n, [&](T x) { counter.count(qdqi_load(x)); });
    counter.end();
    for (unsigned j = threadIdx.x; j < QDQI_BINS; j += THREADS)
        if (bins[j])
            atomicAdd((unsigned long long *)&h->histogram.counts[j],
                      (unsigned long long)bins[j]);
}

/* --- one pass --------------------------------------------------------------- */

/* Returns whether the block is the last one of the grid to come here. It then sees all that
   the others have written before. */
__device__ __forceinline__ bool
is_last(uint32_t *blocks)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicAdd(blocks, 1u) == gridDim.x - 1;
    __syncthreads();
    __threadfence();
    return last;
}

/* Adds the counts of the piece, or discards them. Runs as one block. */
__device__ __forceinline__ void
take_added(struct qdqi_cuda_histogram *h, const uint32_t *added, const uint64_t *counts,
           bool counting)
{
#pragma unroll
    for (unsigned k = 0; k < EACH; k++) {
        const unsigned j = threadIdx.x + k * THREADS;
        if (added[k] && counting)
            h->histogram.counts[j] = counts[k] + added[k];
        if (added[k])
            h->added[j] = 0;
    }
}

/* Joins bins, and counts the elements that no bin had before. Runs as one block. */
template <typename T>
__device__ __forceinline__ void
widen(const T *data, size_t n, struct qdqi_cuda_histogram *h, int old, int exponent,
      uint32_t *bins)
{
    const float per_old = qdqi_cuda_per_width(old);
    join(h->histogram.counts, exponent - old);
    struct counter counter(bins, exponent);
    qdqi_share(data, n, (size_t)threadIdx.x, (size_t)THREADS, [&](T element) {
        float x = qdqi_load(element);
        if (!(fabsf(x) * per_old < QDQI_BINS))
            counter.count(x);
    });
    counter.end();
    for (unsigned j = threadIdx.x; j < QDQI_BINS; j += THREADS)
        h->histogram.counts[j] += bins[j];
}

/* Ends the piece, whose blocks have all ended. Runs as one block. */
template <typename T>
__device__ __forceinline__ void
settle(const T *data, size_t n, struct qdqi_cuda_histogram *h, int old, uint32_t *bins)
{
    const struct qdqi_extremes piece = {__ldcg(&h->piece.min), __ldcg(&h->piece.max)};
    /* All reads begin before the first write, so that they are waited for once. */
    uint32_t added[EACH];
    uint64_t counts[EACH];
#pragma unroll
    for (unsigned k = 0; k < EACH; k++) {
        added[k] = __ldcg(&h->added[threadIdx.x + k * THREADS]);
        counts[k] = h->histogram.counts[threadIdx.x + k * THREADS];
    }
    const bool counting = qdqi_cuda_keys_finite(piece.min, piece.max);
    const int exponent = counting ? grown(old, piece) : old;
    take_added(h, added, counts, counting);
    __syncthreads(); /* all counts are written, and all threads have read the piece */
    if (exponent > old)
        widen(data, n, h, old, exponent, bins);
    if (threadIdx.x > 0)
        return;
    h->histogram.exponent = exponent;
    h->blocks = 0;
    merge_piece(h, piece);
}

template <typename T>
__global__ void
__launch_bounds__(THREADS) add(const T *data, size_t n, struct qdqi_cuda_histogram *h)
{
    __shared__ uint32_t bins[QDQI_BINS];
    const int exponent = h->histogram.exponent;
    int32_t min_key = INT32_MAX, max_key = INT32_MIN;
    struct counter counter(bins, exponent);
    qdqi_each(data, n, [&](T element) {
        float x = qdqi_load(element);
        int32_t key = qdqi_key_of(element);
        min_key = min(min_key, key);
        max_key = max(max_key, key);
        if (counter.has(x))
            counter.count(x);
    });
    counter.end();
    qdqi_merge_keys<T>(min_key, max_key, &h->piece);
    for (unsigned j = threadIdx.x; j < QDQI_BINS; j += THREADS)
        if (bins[j])
            atomicAdd(&h->added[j], bins[j]);
    if (is_last(&h->blocks))
        settle(data, n, h, exponent, bins);
}

/* --- launching -------------------------------------------------------------- */

template <typename T>
int
launch_one(const T *data, size_t n, struct qdqi_cuda_histogram *h, void *stream)
{
    unsigned blocks = qdqi_blocks(n, 16 / sizeof(T) * QDQI_IN_FLIGHT, THREADS, BLOCKS);
    if (blocks > 0)
        qdqi_launch(add<T>, blocks, THREADS, stream, data, n, h);
    return (int)cudaGetLastError();
}

template <typename T>
int
launch(const T *data, size_t n, struct qdqi_cuda_histogram *h, void *stream)
{
    qdqi_launch(grow, 1, THREADS, stream, h);
    int status = (int)cudaGetLastError();
    for (size_t m; status == cudaSuccess && n > 0; data += m, n -= m) {
        m = n < MOST ? n : MOST;
        unsigned blocks =
            qdqi_blocks(m, 16 / sizeof(T) * QDQI_IN_FLIGHT, THREADS, BLOCKS);
        if (blocks == 0)
            return (int)cudaGetLastError();
        qdqi_launch(count<T>, blocks, THREADS, stream, data, m, h);
        status = (int)cudaGetLastError();
    }
    return status;
}

} // namespace

int
qdqi_cuda_histogram_init(struct qdqi_cuda_histogram *h, size_t n, void *stream)
{
    if (n == 0)
        return cudaSuccess;
    qdqi_launch(init, (unsigned)n, THREADS, stream, h);
    return (int)cudaGetLastError();
}

int
qdqi_cuda_histogram_extremes(const struct qdqi_cuda_histogram *h, size_t n,
                             struct qdqi_extremes *ret, void *stream)
{
    if (n == 0)
        return cudaSuccess;
    qdqi_launch(copy_extremes, 1, THREADS, stream, h, n, ret);
    return (int)cudaGetLastError();
}

int
qdqi_cuda_histogram_update(int type, const void *data, size_t n,
                           struct qdqi_cuda_histogram *h, void *stream)
{
    if (!qdqi_is_type(type))
        return cudaErrorInvalidValue;
    if (n == 0)
        return cudaSuccess;
    int status = qdqi_cuda_extremes_update(type, data, n, &h->piece, stream);
    if (status != cudaSuccess)
        return status;
    return type == QDQI_FLOAT16 ? launch((const uint16_t *)data, n, h, stream)
                                : launch((const float *)data, n, h, stream);
}

int
qdqi_cuda_histogram_continue(int type, const void *data, size_t n,
                             struct qdqi_cuda_histogram *h, void *stream)
{
    if (!qdqi_is_type(type))
        return cudaErrorInvalidValue;
    if (n == 0)
        return cudaSuccess;
    if (n > MOST_AT_ONCE)
        return qdqi_cuda_histogram_update(type, data, n, h, stream);
    return type == QDQI_FLOAT16 ? launch_one((const uint16_t *)data, n, h, stream)
                                : launch_one((const float *)data, n, h, stream);
}
