/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Second moments in two steps: rows are copied from an input until QDQI_MOMENT_ROWS of them
 * are pending, and then the products of their columns are added, tile by tile. Each sum is
 * built in the order of the rows, with products and sums fused, as by number/products.h, so
 * that the same rows give the same bits as there.
 */
#include "cuda/launch.h"

namespace
{

enum {
    THREADS = 256,
    SIDE = 64,   /* the most rows and columns of a tile */
    EACH = 4,    /* a thread computes EACH by EACH elements of a tile */
    AT_ONCE = 16 /* pending rows that are in shared memory */
};

/* --- copying rows ------------------------------------------------------------- */

/* Returns the position in its sample of a row. */
__device__ __forceinline__ size_t
position_of(const struct qdqi_cuda_rows &rows, size_t row)
{
    double interval = (double)(rows.first + row) + rows.offset;
    size_t at = (size_t)(interval * (double)rows.positions / (double)rows.wanted);
    return at < rows.positions ? at : rows.positions - 1;
}

/* Returns element i of the row at a position; 0 for padding. */
__device__ __forceinline__ float
element_at(const struct qdqi_cuda_window &w, const float *data, size_t position,
           size_t i)
{
    size_t kernel = 1, place = 0, size = 1;
    for (unsigned a = 0; a < w.axes; a++)
        kernel *= w.kernel[a];
    const size_t channel = i / kernel;
    size_t e = i % kernel;
    for (unsigned a = w.axes; a-- > 0; e /= w.kernel[a], position /= w.out[a]) {
        int64_t x = (int64_t)(position % w.out[a]) * w.stride[a] - w.begin[a] +
                    (int64_t)(e % w.kernel[a]) * w.dilation[a];
        if (x < 0 || x >= w.in[a])
            return 0;
        place += (size_t)x * size;
        size *= (size_t)w.in[a];
    }
    return data[channel * size + place];
}

/* Returns the column of element i in a pending row: blocks begin at whole tiles. */
__device__ __forceinline__ size_t
column_of(const struct qdqi_cuda_moment &m, size_t i)
{
    return i / m.block * m.tiles * m.tile + i % m.block;
}

__device__ __forceinline__ bool
is_finite(float x)
{
    return (__float_as_uint(x) & 0x7fffffff) < 0x7f800000;
}

/* Returns the threads that copy one row: a power of two. */
__host__ __device__ __forceinline__ unsigned
lanes_of(size_t k)
{
    unsigned lanes = 1;
    while (lanes < THREADS && lanes < k)
        lanes *= 2;
    return lanes;
}

/* A block of threads copies as many rows of groups as it has threads for. A row that is not
   finite becomes zeros and is not counted. */
__global__ void
__launch_bounds__(THREADS) gather(struct qdqi_cuda_window w, struct qdqi_cuda_moment m,
                                  struct qdqi_cuda_rows rows)
{
    __shared__ int32_t n_bad[THREADS];
    const unsigned lanes = lanes_of(m.k), mine = threadIdx.x / lanes;
    const size_t at = (size_t)blockIdx.x * (THREADS / lanes) + mine;
    const size_t row = at / m.groups, group = at % m.groups;
    const size_t width = m.blocks * m.tiles * m.tile;
    const bool works = row < rows.n;
    const size_t position = position_of(rows, row);
    const float *data =
        w.axes ? rows.data + group * w.elements : rows.data + position * m.k;
    float *to = m.pending + (group * QDQI_CUDA_MOMENT_ROWS + rows.at + row) * width;
    bool bad = false;
    n_bad[threadIdx.x] = 0;
    __syncthreads();
    for (size_t i = threadIdx.x % lanes; works && i < m.k; i += lanes) {
        float x = w.axes ? element_at(w, data, position, i) : data[i];
        bad |= !is_finite(x);
        to[column_of(m, i)] = x;
    }
    if (bad)
        atomicAdd(&n_bad[mine], 1);
    __syncthreads();
    for (size_t i = threadIdx.x % lanes; works && n_bad[mine] && i < m.k; i += lanes)
        to[column_of(m, i)] = 0;
    if (works && threadIdx.x % lanes == 0 && !n_bad[mine])
        atomicAdd((unsigned long long *)&m.rows[group], 1ull);
}

/* --- products ----------------------------------------------------------------- */

/* Finds the row and the column of tiles of a tile on or above the diagonal. */
__device__ __forceinline__ void
find_tile(size_t tiles, size_t at, size_t *row, size_t *column)
{
    size_t i = 0;
    for (; at >= tiles - i; i++)
        at -= tiles - i;
    *row = i;
    *column = i + at;
}

/* Adds n pending rows of `tile` columns to the sums of these columns. */
__device__ __forceinline__ void
add_sums(const struct qdqi_cuda_moment &m, const float *from, size_t width, size_t n,
         double *to, size_t columns)
{
    for (size_t c = threadIdx.x; c < columns; c += blockDim.x) {
        double sum = to[c];
        for (size_t r = 0; r < n; r++)
            sum += (double)from[r * width + c];
        to[c] = sum;
    }
}

/* Copies up to AT_ONCE rows of a tile's columns to shared memory. */
__device__ __forceinline__ void
load(const float *from, size_t width, size_t n, size_t tile, float (*to)[SIDE])
{
    for (size_t i = threadIdx.x; i < n * tile; i += blockDim.x)
        to[i / tile][i % tile] = from[i / tile * width + i % tile];
}

/* A block of threads, (tile / EACH)^2, adds n pending rows to one tile of one group's
   moment. */
__global__ void
__launch_bounds__(THREADS) add(struct qdqi_cuda_moment m, size_t n)
{
    __shared__ float a[AT_ONCE][SIDE], b[AT_ONCE][SIDE];
    const size_t in_block = m.tiles * (m.tiles + 1) / 2, in_group = m.blocks * in_block;
    const size_t group = blockIdx.x / in_group, at = blockIdx.x % in_group;
    const size_t block = at / in_block, width = m.blocks * m.tiles * m.tile;
    const size_t side = m.tile / EACH;
    const size_t y = threadIdx.x / side * EACH, x = threadIdx.x % side * EACH;
    size_t row, column;
    find_tile(m.tiles, at % in_block, &row, &column);
    const float *from =
        m.pending + group * QDQI_CUDA_MOMENT_ROWS * width + block * m.tiles * m.tile;
    float sum[EACH][EACH] = {};
    for (size_t r = 0; r < n; r += AT_ONCE) {
        const size_t some = n - r < AT_ONCE ? n - r : AT_ONCE;
        load(from + r * width + row * m.tile, width, some, m.tile, a);
        load(from + r * width + column * m.tile, width, some, m.tile, b);
        __syncthreads();
        for (size_t k = 0; k < some; k++)
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++)
                    sum[i][j] = __fmaf_rn(a[k][y + i], b[k][x + j], sum[i][j]);
        __syncthreads();
    }
    float *to = m.products + (size_t)blockIdx.x * m.tile * m.tile;
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++)
            to[(y + i) * m.tile + x + j] += sum[i][j];
    if (row != column)
        return;
    const size_t first = block * m.block + row * m.tile;
    const size_t end = min((block + 1) * m.block, m.k);
    const size_t columns = first < end ? min(end - first, m.tile) : 0;
    add_sums(m, from + row * m.tile, width, n, m.sums + group * m.k + first, columns);
}

} // namespace

int
qdqi_cuda_moment_gather(const struct qdqi_cuda_window *w,
                        const struct qdqi_cuda_moment *m,
                        const struct qdqi_cuda_rows *rows, void *stream)
{
    if (rows->n == 0)
        return cudaSuccess;
    qdqi_launch(gather, (unsigned)(rows->n * m->groups), THREADS, stream, *w, *m,
                *rows);
    return (int)cudaGetLastError();
}

int
qdqi_cuda_moment_add(const struct qdqi_cuda_moment *m, size_t n, void *stream)
{
    const size_t tiles = m->groups * m->blocks * (m->tiles * (m->tiles + 1) / 2);
    const size_t side = m->tile / EACH;
    if (n == 0)
        return cudaSuccess;
    qdqi_launch(add, (unsigned)tiles, (unsigned)(side * side), stream, *m, n);
    return (int)cudaGetLastError();
}
