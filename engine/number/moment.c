/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "number/moment.h"

#include "number/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TILE = 64, /* rows and columns of the part that is computed at once */
    STRIP = 4, /* rows of it that are kept in registers */
    WIDE = 16  /* columns of it that are */
};

typedef float floats8 __attribute__((vector_size(32), aligned(4)));

static size_t
n_blocks(const struct qdqi_moment *m)
{
    return (m->k + m->block - 1) / m->block;
}

static size_t
block_size(const struct qdqi_moment *m, size_t b)
{
    size_t left = m->k - b * m->block;
    return left < m->block ? left : m->block;
}

static size_t
block_of(size_t k)
{
    return k <= QDQI_MOMENT_WHOLE ? k : QDQI_MOMENT_BLOCK;
}

uint64_t
qdqi_moment_bytes(size_t k)
{
    uint64_t block = block_of(k), n = (k + block - 1) / block;
    return n * block * block * sizeof(float) + (uint64_t)k * sizeof(double) +
           (uint64_t)k * QDQI_MOMENT_ROWS * sizeof(float);
}

bool
qdqi_moment_init(struct qdqi_moment *m, size_t k)
{
    *m = (struct qdqi_moment){.k = k, .block = block_of(k)};
    m->sums = calloc(k, sizeof *m->sums);
    m->products = calloc(n_blocks(m), m->block * m->block * sizeof *m->products);
    m->pending = calloc(QDQI_MOMENT_ROWS, k * sizeof *m->pending);
    if (m->sums && m->products && m->pending)
        return true;
    qdqi_moment_fini(m);
    return false;
}

void
qdqi_moment_fini(struct qdqi_moment *m)
{
    free(m->sums);
    free(m->products);
    free(m->pending);
    *m = (struct qdqi_moment){0};
}

/* --- rows ----------------------------------------------------------------- */

float *
qdqi_moment_next(struct qdqi_moment *m)
{
    return m->pending + m->n_pending * m->k;
}

static bool
is_finite(const float *row, size_t k)
{
    float zero = 0;
    for (size_t i = 0; i < k; i++)
        zero += row[i] * 0;
    return zero == 0;
}

bool
qdqi_moment_push(struct qdqi_moment *m)
{
    const float *row = m->pending + m->n_pending * m->k;
    if (!is_finite(row, m->k))
        return false;
    for (size_t i = 0; i < m->k; i++)
        m->sums[i] += (double)row[i];
    m->rows++;
    return ++m->n_pending == QDQI_MOMENT_ROWS;
}

/* --- products ------------------------------------------------------------- */

/* Copies columns first … first + n - 1 of the pending rows, TILE wide, and zeros behind
   them. */
static void
pack(const struct qdqi_moment *m, size_t first, size_t n, float *to)
{
    for (size_t r = 0; r < m->n_pending; r++, to += TILE) {
        memcpy(to, m->pending + r * m->k + first, n * sizeof *to);
        memset(to + n, 0, (TILE - n) * sizeof *to);
    }
}

/* The part of the matrix that is computed at once: columns of pending rows by others. */
struct tile {
    size_t rows, high, wide; /* at most TILE high and wide */
};

/* Adds the products of STRIP columns of `a` with WIDE columns of `b`. */
QDQI_LOOP void
multiply_strip(const float *a, const float *b, size_t rows, float *to, size_t stride)
{
    floats8 sum[STRIP][2] = {0};
    for (size_t r = 0; r < rows; r++, a += TILE, b += TILE) {
        floats8 low, high;
        memcpy(&low, b, sizeof low);
        memcpy(&high, b + 8, sizeof high);
        for (int i = 0; i < STRIP; i++) {
            sum[i][0] += a[i] * low;
            sum[i][1] += a[i] * high;
        }
    }
    for (int i = 0; i < STRIP; i++)
        for (int j = 0; j < WIDE; j++)
            to[(size_t)i * stride + (size_t)j] += sum[i][j / 8][j % 8];
}

QDQI_LOOP void
multiply_loop(const float *a, const float *b, const struct tile *t, float *to)
{
    for (size_t i = 0; i < t->high; i += STRIP)
        for (size_t j = 0; j < t->wide; j += WIDE)
            multiply_strip(a + i, b + j, t->rows, to + i * TILE + j, TILE);
}

QDQI_AVX2 static void
multiply_avx2(const float *a, const float *b, const struct tile *t, float *to)
{
    multiply_loop(a, b, t, to);
}

static void
multiply(const float *a, const float *b, const struct tile *t, float *to)
{
    if (qdqi_has_avx2())
        multiply_avx2(a, b, t, to);
    else
        multiply_loop(a, b, t, to);
}

static size_t
n_tiles(size_t n)
{
    return (n + TILE - 1) / TILE;
}

size_t
qdqi_moment_parts(const struct qdqi_moment *m)
{
    return n_blocks(m) * n_tiles(m->block);
}

/* A part is a row of tiles, from the diagonal to the right. */
void
qdqi_moment_add_part(struct qdqi_moment *m, size_t part)
{
    float a[QDQI_MOMENT_ROWS * TILE], b[QDQI_MOMENT_ROWS * TILE];
    float tile[TILE * TILE];
    size_t block = part / n_tiles(m->block), i = part % n_tiles(m->block) * TILE;
    size_t n = block_size(m, block), first = block * m->block;
    float *to = m->products + block * m->block * m->block;
    if (i >= n)
        return;
    size_t high = n - i < TILE ? n - i : TILE;
    pack(m, first + i, high, a);
    for (size_t j = i; j < n; j += TILE) {
        size_t wide = n - j < TILE ? n - j : TILE;
        if (j > i)
            pack(m, first + j, wide, b);
        memset(tile, 0, sizeof tile);
        const struct tile t = {m->n_pending, high, wide};
        multiply(a, j > i ? b : a, &t, tile);
        for (size_t r = 0; r < high; r++)
            for (size_t c = 0; c < wide; c++)
                to[(i + r) * m->block + j + c] += tile[r * TILE + c];
    }
}

void
qdqi_moment_added(struct qdqi_moment *m)
{
    m->n_pending = 0;
}

void
qdqi_moment_matrix(const struct qdqi_moment *m, size_t b, bool centred, double *to,
                   size_t *ret_n)
{
    size_t n = block_size(m, b);
    const float *from = m->products + b * m->block * m->block;
    const double *sums = m->sums + b * m->block;
    double rows = m->rows ? (double)m->rows : 1;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) {
            double mean = centred ? sums[i] / rows * (sums[j] / rows) : 0;
            to[i * n + j] = to[j * n + i] =
                (double)from[i * m->block + j] / rows - mean;
        }
    *ret_n = n;
}
