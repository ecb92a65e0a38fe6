/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/arithmetic/moment.h"

#include "ground/base/zeros.h"
#include "numbers/arithmetic/products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t
round_up(size_t n, size_t step)
{
    return (n + step - 1) / step * step;
}

static size_t
tile_of(size_t k)
{
    return k < QDQI_PRODUCTS_WIDE ? round_up(k, QDQI_PRODUCTS_STEP)
                                  : QDQI_PRODUCTS_WIDE;
}

/* Blocks have about the same size, and whole tiles. */
static size_t
block_of(size_t k)
{
    size_t n = (k + QDQI_MOMENT_BLOCK - 1) / QDQI_MOMENT_BLOCK;
    return k <= QDQI_MOMENT_WHOLE ? k : round_up((k + n - 1) / n, QDQI_PRODUCTS_WIDE);
}

static size_t
n_blocks(const struct qdqi_moment *m)
{
    return (m->k + m->block - 1) / m->block;
}

/* Tiles along a side of a block. */
static size_t
n_tiles(const struct qdqi_moment *m)
{
    return (m->block + m->tile - 1) / m->tile;
}

size_t
qdqi_moment_block_size(const struct qdqi_moment *m, size_t block)
{
    size_t left = m->k - block * m->block;
    return left < m->block ? left : m->block;
}

/* Tiles of a block: those on and above the diagonal. */
static size_t
n_block_tiles(const struct qdqi_moment *m)
{
    return n_tiles(m) * (n_tiles(m) + 1) / 2;
}

/* Returns the tile of a block that has row i and column j of tiles; i <= j. */
static float *
tile_at(const struct qdqi_moment *m, size_t block, size_t i, size_t j)
{
    size_t n = n_tiles(m), before = i * n - i * (i + 1) / 2 + j;
    return m->products + (block * n_block_tiles(m) + before) * m->tile * m->tile;
}

static struct qdqi_moment
shape_of(size_t k)
{
    return (struct qdqi_moment){.k = k, .block = block_of(k), .tile = tile_of(k)};
}

size_t
qdqi_moment_products(size_t k)
{
    const struct qdqi_moment m = shape_of(k);
    return n_blocks(&m) * n_block_tiles(&m) * m.tile * m.tile;
}

/* Returns the elements of `pending`. */
static size_t
n_elements_pending(const struct qdqi_moment *m)
{
    return n_blocks(m) * n_tiles(m) * m->tile * QDQI_MOMENT_ROWS;
}

uint64_t
qdqi_moment_bytes(size_t k)
{
    const struct qdqi_moment m = shape_of(k);
    return (uint64_t)k * sizeof *m.sums +
           (uint64_t)(qdqi_moment_products(k) + n_elements_pending(&m)) * sizeof(float);
}

bool
qdqi_moment_init(struct qdqi_moment *m, size_t k)
{
    *m = shape_of(k);
    m->sums = calloc(k, sizeof *m->sums);
    m->products = qdqi_zeros_new(qdqi_moment_products(k), sizeof *m->products);
    if (m->sums && m->products)
        return true;
    qdqi_moment_fini(m);
    return false;
}

void
qdqi_moment_fini(struct qdqi_moment *m)
{
    qdqi_moment_end(m);
    free(m->sums);
    free(m->products);
    *m = (struct qdqi_moment){0};
}

void
qdqi_moment_reset(struct qdqi_moment *m)
{
    memset(m->sums, 0, m->k * sizeof *m->sums);
    memset(m->products, 0, qdqi_moment_products(m->k) * sizeof *m->products);
    m->rows = 0;
    m->n_pending = 0;
}

bool
qdqi_moment_begin(struct qdqi_moment *m)
{
    if (m->pending)
        return true;
    m->pending = qdqi_zeros_new(n_elements_pending(m), sizeof *m->pending);
    m->is_taken = calloc(QDQI_MOMENT_ROWS, sizeof *m->is_taken);
    if (m->pending && m->is_taken)
        return true;
    qdqi_moment_end(m);
    return false;
}

void
qdqi_moment_end(struct qdqi_moment *m)
{
    free(m->pending);
    free(m->is_taken);
    m->pending = NULL;
    m->is_taken = NULL;
    m->n_pending = 0;
}

/* --- rows ----------------------------------------------------------------- */

static bool
is_finite(const float *row, size_t k)
{
    uint32_t marks = 0;
    for (size_t i = 0; i < k; i++)
        marks |= qdqi_moment_mark(row[i]);
    return !(marks >> 31);
}

/* The number of floats from the start of a strip to the start of the next. */
enum { STRIDE = QDQI_MOMENT_ROWS * QDQI_PRODUCTS_STEP };

/* Returns the first strip of a tile's columns in the pending rows. */
static float *
strips_at(const struct qdqi_moment *m, size_t block, size_t tile)
{
    return m->pending + (block * n_tiles(m) + tile) * m->tile * QDQI_MOMENT_ROWS;
}

void
qdqi_moment_put(struct qdqi_moment *m, size_t at, const float *row)
{
    m->is_taken[at] = is_finite(row, m->k);
    for (size_t first = 0, b = 0; first < m->k; first += m->block, b++) {
        size_t n = qdqi_moment_block_size(m, b), step = QDQI_PRODUCTS_STEP;
        float *strip = strips_at(m, b, 0);
        for (size_t i = 0; i < n; i += step, strip += STRIDE) {
            size_t wide = n - i < step ? n - i : step;
            float *to = strip + at * step;
            if (m->is_taken[at])
                memcpy(to, row + first + i, wide * sizeof *to);
            else
                memset(to, 0, wide * sizeof *to);
        }
    }
}

float *
qdqi_moment_element(const struct qdqi_moment *m, size_t i, size_t at)
{
    size_t step = QDQI_PRODUCTS_STEP, in_block = i % m->block;
    return strips_at(m, i / m->block, 0) + in_block / step * STRIDE + at * step +
           in_block % step;
}

void
qdqi_moment_check(struct qdqi_moment *m, size_t at, size_t n, bool is_finite)
{
    for (size_t r = at; r < at + n; r++) {
        uint32_t marks = 0;
        for (size_t i = 0; i < m->k && !is_finite; i++)
            marks |= qdqi_moment_mark(*qdqi_moment_element(m, i, r));
        m->is_taken[r] = !(marks >> 31);
        for (size_t i = 0; i < m->k && !m->is_taken[r]; i++)
            *qdqi_moment_element(m, i, r) = 0;
    }
}

bool
qdqi_moment_push(struct qdqi_moment *m, size_t n)
{
    for (; n > 0; n--)
        m->rows += m->is_taken[m->n_pending++];
    return m->n_pending == QDQI_MOMENT_ROWS;
}

/* --- products ------------------------------------------------------------- */

/* Adds the pending rows to the sums of a tile's elements. */
static void
add_sums(struct qdqi_moment *m, size_t block, size_t tile)
{
    const size_t step = QDQI_PRODUCTS_STEP;
    const float *strip = strips_at(m, block, tile);
    size_t first = tile * m->tile, left = qdqi_moment_block_size(m, block) - first;
    double *to = m->sums + block * m->block + first;
    size_t n = left < m->tile ? left : m->tile;
    for (size_t s = 0; s < n; s += step, strip += STRIDE) {
        double sums[QDQI_PRODUCTS_STEP] = {0};
        size_t wide = n - s < step ? n - s : step;
        memcpy(sums, to + s, wide * sizeof *to);
        for (size_t r = 0; r < m->n_pending; r++)
            for (size_t i = 0; i < QDQI_PRODUCTS_STEP; i++)
                sums[i] += (double)strip[r * QDQI_PRODUCTS_STEP + i];
        memcpy(to + s, sums, wide * sizeof *to);
    }
}

static void
add_tile(struct qdqi_moment *m, size_t block, size_t i, size_t j)
{
    if (i == j)
        add_sums(m, block, i);
    const struct qdqi_runs all = {1, m->n_pending, m->n_pending};
    qdqi_products_add(strips_at(m, block, i), strips_at(m, block, j), STRIDE, all,
                      m->tile, tile_at(m, block, i, j));
}

/* The tiles of a block, in the order in which they lie, are divided into parts of about
   as many: so few that a part is worth a thread's while, and so many that threads end at
   about the same time. */
enum { MAX_PARTS = 128 };

static size_t
n_block_parts(const struct qdqi_moment *m)
{
    size_t n = n_block_tiles(m);
    return n < MAX_PARTS ? n : MAX_PARTS;
}

size_t
qdqi_moment_parts(const struct qdqi_moment *m)
{
    return n_blocks(m) * n_block_parts(m);
}

void
qdqi_moment_add_part(struct qdqi_moment *m, size_t part)
{
    size_t parts = n_block_parts(m), block = part / parts, side = n_tiles(m);
    size_t first = part % parts * n_block_tiles(m) / parts;
    size_t end = (part % parts + 1) * n_block_tiles(m) / parts;
    size_t used = (qdqi_moment_block_size(m, block) + m->tile - 1) / m->tile, i = 0,
           j = first;
    for (; j >= side; j -= side - i)
        i++;
    for (size_t n = first; n < end; n++) {
        if (j < used)
            add_tile(m, block, i, j);
        if (++j == side)
            j = ++i;
    }
}

void
qdqi_moment_added(struct qdqi_moment *m)
{
    m->n_pending = 0;
}

float *
qdqi_moment_product(const struct qdqi_moment *m, size_t i, size_t j)
{
    size_t b = i / m->block, row = i % m->block, column = j % m->block;
    return tile_at(m, b, row / m->tile, column / m->tile) + row % m->tile * m->tile +
           column % m->tile;
}

void
qdqi_moment_add_products(const struct qdqi_moment *m, size_t i, size_t j, size_t n,
                         const float *products)
{
    for (size_t part; n > 0; n -= part, j += part, products += part) {
        size_t left = m->tile - j % m->block % m->tile;
        float *to = qdqi_moment_product(m, i, j);
        part = n < left ? n : left;
        for (size_t k = 0; k < part; k++)
            to[k] += products[k];
    }
}

/* Returns the mean of an element where `centred`, else 0. */
static double
centre(const struct qdqi_moment *m, size_t element, bool centred)
{
    return centred && m->rows ? m->sums[element] / (double)m->rows : 0;
}

static double
number_of_rows(const struct qdqi_moment *m)
{
    return m->rows ? (double)m->rows : 1;
}

size_t
qdqi_moment_matrix_parts(const struct qdqi_moment *m)
{
    return n_tiles(m);
}

void
qdqi_moment_write(const struct qdqi_moment_matrix *to, size_t part)
{
    const struct qdqi_moment *m = to->m;
    size_t n = qdqi_moment_block_size(m, to->block), first = part * m->tile;
    size_t at = to->block * m->block;
    double rows = number_of_rows(m);
    for (size_t i = first; i < n && i < first + m->tile; i++) {
        double mean = centre(m, at + i, to->centred);
        size_t row = to->places[i];
        for (size_t j = i; j < n; j++) {
            const float *tile = tile_at(m, to->block, part, j / m->tile);
            double sum = (double)tile[(i - first) * m->tile + j % m->tile];
            size_t column = to->places[j], above = row * to->ld + column;
            size_t below = column * to->ld + row;
            sum = sum / rows - mean * centre(m, at + j, to->centred);
            sum *= i == j ? 1 : 1 - to->shrunk;
            if (to->to)
                to->to[above] = to->to[below] = sum;
            else
                to->to_floats[above] = to->to_floats[below] = (float)sum;
        }
    }
}

void
qdqi_moment_scale(struct qdqi_moment *m, const double *factors)
{
    for (size_t i = 0; i < m->k; i++)
        m->sums[i] *= factors[i];
    for (size_t b = 0; b < n_blocks(m); b++) {
        const double *of = factors + b * m->block;
        const size_t n = qdqi_moment_block_size(m, b);
        for (size_t i = 0; i < n; i++)
            for (size_t j = i; j < n; j++) {
                float *to = qdqi_moment_product(m, b * m->block + i, b * m->block + j);
                *to = (float)((double)*to * of[i] * of[j]);
            }
    }
}

double
qdqi_moment_noise(const struct qdqi_moment *m, bool centred, double independent)
{
    double variances = 0, squares = 0, all = 0, each = 0;
    const double rows = number_of_rows(m);
    for (size_t i = 0; i < m->k; i++)
        for (size_t j = i; j < m->k; j++) {
            const double c = (double)*qdqi_moment_product(m, i, j) / rows -
                             centre(m, i, centred) * centre(m, j, centred);
            if (i == j) {
                all += c;
                each += c * c;
            } else
                squares += 2 * c * c;
        }
    variances = all * all - each + squares; /* c_ii c_jj + c_ij^2 */
    const double ret = variances / (independent * squares);
    return ret >= 0 ? fmin(ret, 1) : 1;
}

void
qdqi_moment_diagonal(const struct qdqi_moment *m, bool centred, double *to)
{
    double rows = number_of_rows(m);
    for (size_t i = 0; i < m->k; i++) {
        size_t b = i / m->block, k = i % m->block;
        const float *tile = tile_at(m, b, k / m->tile, k / m->tile);
        double mean = centre(m, i, centred);
        to[i] = (double)tile[k % m->tile * (m->tile + 1)] / rows - mean * mean;
    }
}
