/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Second moments in two steps: rows are copied from an input until QDQI_MOMENT_ROWS of them
 * are pending, and then the products of their columns are added, tile by tile. Each sum is
 * built in the order of the rows, with products and sums fused, as by numbers/arithmetic/products.h, so
 * that the same rows give the same bits as there.
 */
#include "numbers/cuda/launch.h"

namespace
{

enum {
    THREADS = 256,
    SIDE = 64,    /* the most rows and columns of a tile */
    EACH = 4,     /* a thread computes EACH by EACH elements of a tile */
    AT_ONCE = 16, /* pending rows that are in shared memory */
    AHEAD = 8     /* elements that a thread reads before it writes the first one */
};

/* --- copying rows ------------------------------------------------------------- */

/* The rows that are copied, and how their elements are found. The window has all axes: those
   that the convolution lacks have one position. */
struct gathering {
    struct qdqi_cuda_window w;
    struct qdqi_cuda_moment m;
    struct qdqi_cuda_rows rows;
    /* A row of a matrix is `apart` elements behind the row before. A convolution's channels
       are so many behind each other, and it is 0. */
    size_t apart, channel;
    struct qdqi_cuda_divider by_kernel, by_side[QDQI_CUDA_AXES], by_block;
};

/* A row of the matrix that is multiplied by its transpose: the values that one position of
   the kernel reads. */
struct row {
    const float *data;             /* of the group */
    int64_t begin[QDQI_CUDA_AXES]; /* the place of the kernel's first element */
};

/* Returns row `at` of the rows that are copied, for one group. */
__device__ __forceinline__ struct row
find_row(const struct gathering &g, size_t at, size_t group)
{
    size_t p = 0;
    for (; at >= g.rows.pieces[p].n; p++)
        at -= g.rows.pieces[p].n;
    const struct qdqi_cuda_piece &piece = g.rows.pieces[p];
    double interval = (double)(piece.first + at) + piece.offset;
    size_t position =
        (size_t)(interval * (double)g.rows.positions / (double)g.rows.wanted);
    if (position >= g.rows.positions)
        position = g.rows.positions - 1;
    struct row row = {piece.data + group * g.w.elements + position * g.apart, {}};
    for (int a = QDQI_CUDA_AXES; a-- > 0; position /= g.w.out[a])
        row.begin[a] = (int64_t)(position % g.w.out[a]) * g.w.stride[a] - g.w.begin[a];
    return row;
}

/* Returns element i of a row; 0 for padding. */
__device__ __forceinline__ float
element_at(const struct gathering &g, const struct row &row, uint32_t i)
{
    const uint32_t channel = qdqi_cuda_divide(i, g.by_kernel);
    uint32_t e = i - channel * g.by_kernel.d;
    size_t place = 0, size = 1;
    bool is_inside = true;
#pragma unroll
    for (int a = QDQI_CUDA_AXES; a-- > 0;) {
        uint32_t next = qdqi_cuda_divide(e, g.by_side[a]);
        int64_t x =
            row.begin[a] + (int64_t)(e - next * g.by_side[a].d) * g.w.dilation[a];
        is_inside = is_inside && x >= 0 && x < g.w.in[a];
        place += (size_t)x * size;
        size *= (size_t)g.w.in[a];
        e = next;
    }
    return is_inside ? row.data[channel * g.channel + place] : 0;
}

/* Returns the column of element i in a pending row: blocks begin at whole tiles. */
__device__ __forceinline__ size_t
column_of(const struct gathering &g, uint32_t i)
{
    const uint32_t block = qdqi_cuda_divide(i, g.by_block);
    return block * (g.m.tiles * g.m.tile) + (i - block * g.by_block.d);
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

/* Copies the elements of a row that are one thread's. Returns whether all are finite. */
__device__ __forceinline__ bool
copy_row(const struct gathering &g, const struct row &row, unsigned lanes, float *to)
{
    const uint32_t k = (uint32_t)g.m.k;
    bool finite = true;
    for (uint32_t i = threadIdx.x % lanes; i < k; i += AHEAD * lanes) {
        float x[AHEAD];
#pragma unroll
        for (uint32_t j = 0; j < AHEAD; j++)
            x[j] = i + j * lanes < k ? element_at(g, row, i + j * lanes) : 0;
#pragma unroll
        for (uint32_t j = 0; j < AHEAD; j++) {
            finite = finite && is_finite(x[j]);
            if (i + j * lanes < k)
                to[column_of(g, i + j * lanes)] = x[j];
        }
    }
    return finite;
}

/* A block of threads copies as many rows of groups as it has threads for. A row that is not
   finite becomes zeros and is not counted. */
__global__ void
__launch_bounds__(THREADS) gather(const __grid_constant__ struct gathering g)
{
    __shared__ int32_t n_bad[THREADS];
    const unsigned lanes = lanes_of(g.m.k), mine = threadIdx.x / lanes;
    const size_t at = (size_t)blockIdx.x * (THREADS / lanes) + mine;
    const size_t number = at / g.m.groups, group = at % g.m.groups;
    const size_t width = g.m.blocks * g.m.tiles * g.m.tile;
    const bool works = number < g.rows.n;
    float *to =
        g.m.pending + (group * QDQI_CUDA_MOMENT_ROWS + g.rows.at + number) * width;
    n_bad[threadIdx.x] = 0;
    __syncthreads();
    if (works && !copy_row(g, find_row(g, number, group), lanes, to))
        atomicAdd(&n_bad[mine], 1);
    __syncthreads();
    if (!works)
        return;
    for (uint32_t i = threadIdx.x % lanes; n_bad[mine] && i < g.m.k; i += lanes)
        to[column_of(g, i)] = 0;
    if (threadIdx.x % lanes == 0 && !n_bad[mine])
        atomicAdd((unsigned long long *)&g.m.rows[group], 1ull);
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

/* Copies up to AT_ONCE rows of a tile's columns to shared memory. The threads are a multiple
   of the columns. */
__device__ __forceinline__ void
load(const float *from, size_t width, unsigned n, unsigned row, unsigned column,
     unsigned step, float (*to)[SIDE])
{
    for (unsigned r = row; r < n; r += step)
        to[r][column] = from[r * width + column];
}

/* Returns the number of columns of a tile on the diagonal that elements of a row have, and
   sets *ret_first to the first element. */
__device__ __forceinline__ size_t
columns_of(const struct qdqi_cuda_moment &m, size_t block, size_t row,
           size_t *ret_first)
{
    const size_t first = block * m.block + row * m.tile;
    const size_t end = min((block + 1) * m.block, m.k);
    *ret_first = first;
    return first < end ? min(end - first, m.tile) : 0;
}

/* A block of threads, (tile / EACH)^2, adds n pending rows to one tile of one group's
   moment. On the diagonal, one thread for each column also adds the rows to the sums. */
__global__ void
__launch_bounds__(THREADS) add(struct qdqi_cuda_moment m, size_t n)
{
    __shared__ float a[AT_ONCE][SIDE], b[AT_ONCE][SIDE];
    const size_t in_block = m.tiles * (m.tiles + 1) / 2, in_group = m.blocks * in_block;
    const size_t group = blockIdx.x / in_group, at = blockIdx.x % in_group;
    const size_t block = at / in_block, width = m.blocks * m.tiles * m.tile;
    const unsigned tile = (unsigned)m.tile, side = tile / EACH, t = threadIdx.x;
    const unsigned y = t / side * EACH, x = t % side * EACH;
    size_t row, column, first;
    find_tile(m.tiles, at % in_block, &row, &column);
    const float *from =
        m.pending + group * QDQI_CUDA_MOMENT_ROWS * width + block * m.tiles * m.tile;
    const bool sums = row == column && t < columns_of(m, block, row, &first);
    double *to_sum = sums ? &m.sums[group * m.k + first + t] : NULL;
    double column_sum = sums ? *to_sum : 0;
    float sum[EACH][EACH] = {};
    for (size_t r = 0; r < n; r += AT_ONCE) {
        const unsigned some = n - r < AT_ONCE ? (unsigned)(n - r) : AT_ONCE;
        load(from + r * width + row * tile, width, some, t / tile, t % tile,
             blockDim.x / tile, a);
        load(from + r * width + column * tile, width, some, t / tile, t % tile,
             blockDim.x / tile, b);
        __syncthreads();
        for (unsigned k = 0; k < some; k++)
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++)
                    sum[i][j] = __fmaf_rn(a[k][y + i], b[k][x + j], sum[i][j]);
        for (unsigned k = 0; sums && k < some; k++)
            column_sum += (double)a[k][t];
        __syncthreads();
    }
    float *to = m.products + (size_t)blockIdx.x * tile * tile;
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++)
            to[(y + i) * tile + x + j] += sum[i][j];
    if (sums)
        *to_sum = column_sum;
}

} // namespace

/* Gives a window all axes. Those of the convolution are the last ones. */
static struct qdqi_cuda_window
whole(const struct qdqi_cuda_window *w)
{
    struct qdqi_cuda_window ret = {};
    const unsigned lacks = QDQI_CUDA_AXES - w->axes;
    for (unsigned a = 0; a < QDQI_CUDA_AXES; a++) {
        const bool has = a >= lacks;
        ret.kernel[a] = has ? w->kernel[a - lacks] : 1;
        ret.out[a] = has ? w->out[a - lacks] : 1;
        ret.stride[a] = has ? w->stride[a - lacks] : 1;
        ret.dilation[a] = has ? w->dilation[a - lacks] : 1;
        ret.begin[a] = has ? w->begin[a - lacks] : 0;
        ret.in[a] = has ? w->in[a - lacks] : 1;
    }
    ret.axes = QDQI_CUDA_AXES;
    ret.elements = w->axes ? w->elements : 0;
    return ret;
}

int
qdqi_cuda_moment_gather(const struct qdqi_cuda_window *w,
                        const struct qdqi_cuda_moment *m,
                        const struct qdqi_cuda_rows *rows, void *stream)
{
    struct gathering g = {whole(w), *m, *rows, w->axes ? 0 : m->k, 1, {}, {}, {}};
    size_t kernel = 1;
    if (rows->n == 0)
        return cudaSuccess;
    for (int a = 0; a < QDQI_CUDA_AXES; a++) {
        kernel *= g.w.kernel[a];
        g.channel *= (size_t)g.w.in[a];
        g.by_side[a] = qdqi_cuda_divider_of((uint32_t)g.w.kernel[a]);
    }
    g.by_kernel = qdqi_cuda_divider_of((uint32_t)kernel);
    g.by_block = qdqi_cuda_divider_of((uint32_t)m->block);
    const size_t at_once = THREADS / lanes_of(m->k);
    const size_t blocks = (rows->n * m->groups + at_once - 1) / at_once;
    qdqi_launch(gather, (unsigned)blocks, THREADS, stream, g);
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
