/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/updates.h"

#include "numbers/arithmetic/simd.h"

#include <stdint.h>

QDQI_FUSED

typedef float floats8 __attribute__((vector_size(32), aligned(4)));

enum {
    LANES = 8,                   /* outputs in a register */
    GROUPS = QDQI_PANEL / LANES, /* of outputs */
    CHUNK = 48, /* places of all rows that are copied and then worked on */
    AHEAD = CHUNK,
    LINE = 16, /* numbers of a line of the cache */
    HIGH = 6,  /* places of two groups, */
    TALL = 8,  /* or of one, whose sums stay in registers */
};

/* The rows that a group of outputs has numbers for. */
struct rows {
    uint8_t at[QDQI_AT_ONCE];
    size_t n;
};

struct panel {
    const struct qdqi_update *u;
    float (*by)[QDQI_PANEL];
    size_t pairs; /* of groups of outputs */
    float (*to)[QDQI_PANEL];
    struct rows groups[GROUPS];
    /* the numbers of `by` of each pair of groups, row by row */
    float packed[GROUPS / 2][QDQI_AT_ONCE][2 * LANES] __attribute__((aligned(64)));
};

/* Copies the numbers of each pair of groups, and lists the rows of each group that are not all
   zeros. */
QDQI_LOOP void
list_rows(struct panel *p)
{
    for (size_t g = 0; g < 2 * p->pairs; g++) {
        struct rows *rows = &p->groups[g];
        rows->n = 0;
        for (size_t r = 0; r < p->u->n; r++) {
            const float *by = p->by[r] + g * LANES;
            float *to = p->packed[g / 2][r] + g % 2 * LANES;
            int any = 0;
            for (size_t i = 0; i < LANES; i++) {
                to[i] = by[i];
                any |= by[i] != 0;
            }
            rows->at[rows->n] = (uint8_t)r;
            rows->n += any != 0;
        }
    }
}

/* Copies a chunk of all rows, and asks for one that comes later. */
QDQI_LOOP void
pack(const struct qdqi_update *u, size_t at, float (*to)[CHUNK])
{
    for (size_t r = 0; r < u->n; r++) {
        const float *from = u->rows[r] + at;
#pragma GCC unroll 3
        for (size_t i = 0; i < CHUNK; i += LINE)
            __builtin_prefetch(from + AHEAD + i);
#pragma GCC unroll 6
        for (size_t i = 0; i < CHUNK; i += LANES)
            *(floats8 *)(to[r] + i) = *(const floats8 *)(from + i);
    }
}

/* Adds all rows to `high` places of a pair of groups. */
QDQI_LOOP void
add_pair(const struct panel *p, size_t pair, const float *packed, size_t stride,
         float (*to)[QDQI_PANEL], int high)
{
    floats8 low[HIGH], up[HIGH];
    const size_t first = 2 * pair * LANES;
#pragma GCC unroll 6
    for (int i = 0; i < high; i++) {
        low[i] = *(floats8 *)(to[i] + first);
        up[i] = *(floats8 *)(to[i] + first + LANES);
    }
    for (size_t r = 0; r < p->u->n; r++, packed += stride) {
        const floats8 a = *(const floats8 *)p->packed[pair][r];
        const floats8 b = *(const floats8 *)(p->packed[pair][r] + LANES);
#pragma GCC unroll 6
        for (int i = 0; i < high; i++) {
            low[i] += packed[i] * a;
            up[i] += packed[i] * b;
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < high; i++) {
        *(floats8 *)(to[i] + first) = low[i];
        *(floats8 *)(to[i] + first + LANES) = up[i];
    }
}

/* Adds the listed rows of a group to TALL places. */
QDQI_LOOP void
add_listed(const struct panel *p, size_t group, const float *packed,
           float (*to)[QDQI_PANEL])
{
    floats8 sum[TALL];
    const struct rows *rows = &p->groups[group];
    const size_t first = group * LANES;
#pragma GCC unroll 8
    for (int i = 0; i < TALL; i++)
        sum[i] = *(floats8 *)(to[i] + first);
    for (size_t k = 0; k < rows->n; k++) {
        const float *row = packed + (size_t)rows->at[k] * CHUNK;
        const floats8 a =
            *(const floats8 *)(p->packed[group / 2][rows->at[k]] + group % 2 * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < TALL; i++)
            sum[i] += row[i] * a;
    }
#pragma GCC unroll 8
    for (int i = 0; i < TALL; i++)
        *(floats8 *)(to[i] + first) = sum[i];
}

/* Adds a chunk to all groups. One after the other they cost more, unless they have few rows. */
QDQI_LOOP void
add_chunk(const struct panel *p, float (*packed)[CHUNK], float (*to)[QDQI_PANEL])
{
    for (size_t pair = 0; pair < p->pairs; pair++) {
        const size_t n = p->groups[2 * pair].n + p->groups[2 * pair + 1].n;
        if (n * 2 > p->u->n * 3)
            for (size_t i = 0; i < CHUNK; i += HIGH)
                add_pair(p, pair, packed[0] + i, CHUNK, to + i, HIGH);
        else
            for (size_t g = 2 * pair; n > 0 && g < 2 * pair + 2; g++)
                for (size_t i = 0; i < CHUNK; i += TALL)
                    add_listed(p, g, packed[0] + i, to + i);
    }
}

/* Adds to one place that is in no chunk. */
QDQI_LOOP void
add_one(const struct panel *p, size_t at)
{
    float column[QDQI_AT_ONCE];
    for (size_t r = 0; r < p->u->n; r++)
        column[r] = p->u->rows[r][at];
    for (size_t pair = 0; pair < p->pairs; pair++)
        add_pair(p, pair, column, 1, p->to + at, 1);
}

QDQI_LOOP void
panel_loop(struct panel *p)
{
    float packed[QDQI_AT_ONCE][CHUNK] __attribute__((aligned(64)));
    size_t at = p->u->first;
    list_rows(p);
    for (; at + CHUNK <= p->u->end; at += CHUNK) {
        pack(p->u, at, packed);
        add_chunk(p, packed, p->to + at);
    }
    for (; at < p->u->end; at++)
        add_one(p, at);
}

QDQI_VARIANTS(void, panel, (struct panel * p), (p))

void
qdqi_update_panel(const struct qdqi_update *u, float by[][QDQI_PANEL], size_t n_outputs,
                  float to[][QDQI_PANEL])
{
    struct panel p = {
        .u = u, .by = by, .pairs = (n_outputs + 2 * LANES - 1) / (2 * LANES), .to = to};
    panel(&p);
}
