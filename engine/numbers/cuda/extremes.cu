/* SPDX-License-Identifier: Apache-2.0 */
/* Extremes as integer minima and maxima of keys. They do not depend on the order, so
   blocks merge their results with atomic operations. */
#include "numbers/cuda/launch.h"

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

/* Each sample of n elements has as many blocks. */
template <typename T>
__global__ void
__launch_bounds__(THREADS)
    take(const T *data, size_t n, unsigned blocks, struct qdqi_extremes *e)
{
    const size_t sample = blockIdx.x / blocks, block = blockIdx.x % blocks;
    int32_t min_key = INT32_MAX, max_key = INT32_MIN;
    qdqi_share(data + sample * n, n, block * THREADS + threadIdx.x,
               (size_t)blocks * THREADS, [&](T x) {
                   int32_t key = qdqi_key_of(x);
                   min_key = min(min_key, key);
                   max_key = max(max_key, key);
               });
    qdqi_merge_keys<T>(min_key, max_key, &e[sample]);
}

template <typename T>
int
launch(const T *data, size_t n, size_t samples, struct qdqi_extremes *e, void *stream)
{
    unsigned blocks = qdqi_blocks(n, 16 / sizeof(T) * QDQI_IN_FLIGHT, THREADS, BLOCKS);
    if (blocks > 0)
        qdqi_launch(take<T>, (unsigned)(blocks * samples), THREADS, stream, data, n,
                    blocks, e);
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
    return qdqi_cuda_extremes_each(type, data, n, 1, e, stream);
}

int
qdqi_cuda_extremes_each(int type, const void *data, size_t n, size_t samples,
                        struct qdqi_extremes *e, void *stream)
{
    if (!qdqi_is_type(type))
        return cudaErrorInvalidValue;
    if (n == 0 || samples == 0)
        return cudaSuccess;
    return type == QDQI_FLOAT16 ? launch((const uint16_t *)data, n, samples, e, stream)
                                : launch((const float *)data, n, samples, e, stream);
}
