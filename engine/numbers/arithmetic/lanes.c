/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "numbers/arithmetic/lanes.h"

#include "numbers/arithmetic/simd.h"

#include <stdlib.h>
#include <string.h>

QDQI_FUSED

enum {
    LANES = QDQI_LANES,
    ELEMENTS = QDQI_LANES_ELEMENTS,
    PAIRS = ELEMENTS * (ELEMENTS + 1) / 2,
    IN_REGISTERS = 6,        /* products whose sums stay in registers */
    CACHED_BYTES = 16 << 10, /* bytes of rows that stay in the first cache */
    LEAST_GROUPS = 4,        /* groups that are worth a strip */
};

/* The sums of a strip. */
struct sums {
    float products[PAIRS][LANES]; /* of elements i <= j, row by row of the triangle */
    double means[ELEMENTS][LANES];
};

bool
qdqi_lanes_fit(size_t groups, size_t k)
{
    return groups >= LEAST_GROUPS && k <= ELEMENTS;
}

size_t
qdqi_lanes_near(const struct qdqi_lanes *l)
{
    return CACHED_BYTES / (l->k * LANES * sizeof(float));
}

size_t
qdqi_lanes_strips(const struct qdqi_lanes *l)
{
    return (l->groups + LANES - 1) / LANES;
}

struct qdqi_lanes *
qdqi_lanes_new(size_t groups, size_t k)
{
    struct qdqi_lanes *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (struct qdqi_lanes){.groups = groups, .k = k};
    size_t rows = qdqi_lanes_strips(l) * QDQI_MOMENT_ROWS;
    l->pending = calloc(rows * k, LANES * sizeof *l->pending);
    l->left_out = calloc(rows, sizeof *l->left_out);
    if (!l->pending || !l->left_out)
        qdqi_lanes_free(&l);
    return l;
}

void
qdqi_lanes_free(struct qdqi_lanes **lanes)
{
    if (*lanes) {
        free((*lanes)->pending);
        free((*lanes)->left_out);
    }
    free(*lanes);
    *lanes = NULL;
}

float *
qdqi_lanes_row(const struct qdqi_lanes *l, size_t strip, size_t at)
{
    return l->pending + (strip * QDQI_MOMENT_ROWS + at) * l->k * LANES;
}

/* Returns a bit for each lane whose row has a NaN or an infinity, and makes those rows 0. */
static uint16_t
leave_out(float *row, size_t k)
{
    uint16_t left_out = 0;
    for (size_t lane = 0; lane < LANES; lane++) {
        uint32_t marks = 0;
        for (size_t i = 0; i < k; i++)
            marks |= qdqi_moment_mark(row[i * LANES + lane]);
        for (size_t i = 0; i < k && marks >> 31; i++)
            row[i * LANES + lane] = 0;
        left_out |= (uint16_t)(marks >> 31 << lane);
    }
    return left_out;
}

void
qdqi_lanes_check(struct qdqi_lanes *l, size_t strip, size_t at, size_t n,
                 bool is_finite)
{
    uint16_t *left_out = l->left_out + strip * QDQI_MOMENT_ROWS;
    for (size_t r = at; r < at + n; r++)
        left_out[r] = is_finite ? 0 : leave_out(qdqi_lanes_row(l, strip, r), l->k);
}

/* --- products ------------------------------------------------------------- */

typedef float floats8 __attribute__((vector_size(32), aligned(4)));

/* Adds the products of element `a` of each row with elements b to b + wide - 1; `wide` is a
   constant where this is inlined. */
QDQI_LOOP void
add_products(const float *a, const float *b, size_t rows, size_t step, float *to,
             int wide)
{
    floats8 low[IN_REGISTERS], up[IN_REGISTERS];
#pragma GCC unroll 6
    for (int j = 0; j < wide; j++) {
        low[j] = *(const floats8 *)(to + j * LANES);
        up[j] = *(const floats8 *)(to + j * LANES + 8);
    }
    for (size_t r = 0; r < rows; r++, a += step, b += step) {
        floats8 first = *(const floats8 *)a, second = *(const floats8 *)(a + 8);
#pragma GCC unroll 6
        for (int j = 0; j < wide; j++) {
            low[j] += first * *(const floats8 *)(b + j * LANES);
            up[j] += second * *(const floats8 *)(b + j * LANES + 8);
        }
    }
#pragma GCC unroll 6
    for (int j = 0; j < wide; j++) {
        *(floats8 *)(to + j * LANES) = low[j];
        *(floats8 *)(to + j * LANES + 8) = up[j];
    }
}

QDQI_LOOP void
add_means(const float *rows, size_t n, size_t k, struct sums *to)
{
    for (size_t i = 0; i < k; i++)
        for (size_t r = 0; r < n; r++)
            for (size_t lane = 0; lane < LANES; lane++)
                to->means[i][lane] += (double)rows[(r * k + i) * LANES + lane];
}

QDQI_LOOP void
add_rows_loop(const float *rows, size_t n, size_t k, struct sums *to)
{
    size_t pair = 0, step = k * LANES;
    add_means(rows, n, k, to);
    for (size_t i = 0; i < k; i++) {
        const float *a = rows + i * LANES;
        for (size_t j = i, wide; j < k; j += wide, pair += wide) {
            const float *b = rows + j * LANES;
            wide = k - j >= IN_REGISTERS ? IN_REGISTERS : k - j >= 3 ? 3 : 1;
            if (wide == IN_REGISTERS)
                add_products(a, b, n, step, to->products[pair], IN_REGISTERS);
            else if (wide == 3)
                add_products(a, b, n, step, to->products[pair], 3);
            else
                add_products(a, b, n, step, to->products[pair], 1);
        }
    }
}

QDQI_VARIANTS(void, add_rows, (const float *rows, size_t n, size_t k, struct sums *to),
              (rows, n, k, to))

/* Adds a lane's sums to the group's moment, which is one tile. */
static void
add_lane(const struct sums *sums, size_t lane, size_t k, struct qdqi_moment *m)
{
    float products[ELEMENTS];
    for (size_t i = 0, pair = 0; i < k; i++) {
        for (size_t j = i; j < k; j++, pair++)
            products[j - i] = sums->products[pair][lane];
        qdqi_moment_add_products(m, i, i, k - i, products);
        m->sums[i] = sums->means[i][lane];
    }
}

void
qdqi_lanes_add(const struct qdqi_lanes *l, size_t strip, struct qdqi_moment *moments)
{
    const uint16_t *left_out = l->left_out + strip * QDQI_MOMENT_ROWS;
    struct qdqi_moment *m = moments + strip * LANES;
    size_t left = l->groups - strip * LANES, lanes = left < LANES ? left : LANES;
    size_t near = qdqi_lanes_near(l);
    struct sums sums;
    memset(sums.products, 0, l->k * (l->k + 1) / 2 * sizeof *sums.products);
    memset(sums.means, 0, l->k * sizeof *sums.means);
    for (size_t lane = 0; lane < lanes; lane++)
        for (size_t i = 0; i < l->k; i++)
            sums.means[i][lane] = m[lane].sums[i];
    for (size_t r = 0, n; r < l->n_pending; r += n) {
        n = l->n_pending - r < near ? l->n_pending - r : near;
        add_rows(qdqi_lanes_row(l, strip, r), n, l->k, &sums);
    }
    for (size_t lane = 0; lane < lanes; lane++) {
        add_lane(&sums, lane, l->k, &m[lane]);
        for (size_t r = 0; r < l->n_pending; r++)
            m[lane].rows += !(left_out[r] >> lane & 1);
    }
}
