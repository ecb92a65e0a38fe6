/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms in two passes over the data: the first finds the extremes, which decide
 * the width of the bins, and the second one counts. The width grows on the device, so
 * the host need not wait. Counting is integer addition, which gives the same in any
 * order.
 */
#include "cuda/launch.h"

namespace
{

enum {
    THREADS = 512,
    BLOCKS = 4,            /* blocks per multiprocessor */
    PAIRS = QDQI_BINS / 2, /* number of threads that join bins, one for each pair */
};

/* Maximum number of elements in one launch, so that a block's 32-bit counts cannot
   overflow. */
const size_t MOST = (size_t)1 << 31;

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

/* Joins pairs of bins `shift` times. After 11 times all counts are in the first bin. */
__device__ __forceinline__ void
join(uint64_t *counts, int shift)
{
    __shared__ uint64_t bins[PAIRS];
    const unsigned t = threadIdx.x;
    uint64_t pair = counts[2 * t] + counts[2 * t + 1];
    unsigned left = PAIRS;
    for (int done = 1; done < shift && left > 1; done++, left /= 2) {
        if (t < left)
            bins[t] = pair;
        __syncthreads();
        if (t < left / 2)
            pair = bins[2 * t] + bins[2 * t + 1];
        __syncthreads();
    }
    __syncthreads(); /* all threads have read the counts that are now written */
    counts[t] = t < left ? pair : 0;
    counts[t + PAIRS] = 0;
}

/* Updates the width of the bins and the extremes after the first pass. Runs as one
   block. */
__global__ void
__launch_bounds__(PAIRS) grow(struct qdqi_cuda_histogram *h)
{
    const struct qdqi_extremes piece = h->piece;
    const int old = h->histogram.exponent;
    const int counting = qdqi_cuda_keys_finite(piece.min, piece.max);
    int exponent = old;
    if (counting)
        exponent = qdqi_cuda_exponent_for(qdqi_cuda_amax_bits(piece.min, piece.max));
    if (exponent > old)
        join(h->histogram.counts, exponent - old);
    __syncthreads(); /* all threads have read the piece and the exponent */
    if (threadIdx.x > 0)
        return;
    if (exponent > old)
        h->histogram.exponent = exponent;
    h->extremes.min = min(h->extremes.min, piece.min);
    h->extremes.max = max(h->extremes.max, piece.max);
    make_empty(&h->piece);
    h->counting = counting;
}

/* --- counting --------------------------------------------------------------- */

/* Counts the elements. Each block counts in its own shared memory. Each thread
   counts zeros by itself, because there may be very many. */
template <typename T>
__global__ void
__launch_bounds__(THREADS) count(const T *data, size_t n, struct qdqi_cuda_histogram *h)
{
    __shared__ uint32_t bins[QDQI_BINS];
    if (!h->counting)
        return;
    for (unsigned j = threadIdx.x; j < QDQI_BINS; j += THREADS)
        bins[j] = 0;
    __syncthreads();
    const float per_width = qdqi_cuda_per_width(h->histogram.exponent);
    uint32_t first = 0;
    qdqi_each(data, n, [&](T x) {
        uint32_t bin = qdqi_cuda_bin_of(qdqi_load(x), per_width);
        if (bin == 0)
            first++;
        else
            atomicAdd(&bins[bin], 1u);
    });
    for (int lanes = QDQI_WARP / 2; lanes > 0; lanes /= 2)
        first += __shfl_xor_sync(~0u, first, lanes);
    if (threadIdx.x % QDQI_WARP == 0)
        atomicAdd(&bins[0], first);
    __syncthreads();
    for (unsigned j = threadIdx.x; j < QDQI_BINS; j += THREADS)
        if (bins[j])
            atomicAdd((unsigned long long *)&h->histogram.counts[j],
                      (unsigned long long)bins[j]);
}

template <typename T>
int
launch(const T *data, size_t n, struct qdqi_cuda_histogram *h, void *stream)
{
    qdqi_launch(grow, 1, PAIRS, stream, h);
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
