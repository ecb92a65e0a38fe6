/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/subtract.h"

#include "numbers/arithmetic/simd.h"

QDQI_FUSED

typedef double doubles4 __attribute__((vector_size(32), aligned(8)));

enum {
    HIGH = 4,   /* lines that are updated at once, */
    WIDE = 8,   /* and columns of them */
    PACKED = 8, /* so many columns are packed at once, times WIDE */
};

struct panel {
    const struct qdqi_subtraction *u;
    double (*by)[QDQI_STEP_COLUMNS];
    double *to;
    size_t stride;
};

/* Updates columns that are no multiple of a register, and lines. */
QDQI_LOOP void
update_rest(const struct panel *p, size_t line, size_t n, size_t first)
{
    for (; n > 0; n--, line++)
        for (size_t r = 0; r < p->u->n; r++)
            for (size_t i = first; i < p->u->end; i++)
                p->to[line * p->stride + i] += p->by[line][r] * p->u->rows[r][i];
}

/* Updates HIGH lines of 8 columns, of which `packed` has the rows. */
QDQI_LOOP void
update_8(const struct panel *p, size_t line, size_t at, const double *packed)
{
    double *t0 = p->to + line * p->stride + at, *t1 = t0 + p->stride;
    double *t2 = t1 + p->stride, *t3 = t2 + p->stride;
    doubles4 s00 = *(doubles4 *)t0, s01 = *(doubles4 *)(t0 + 4);
    doubles4 s10 = *(doubles4 *)t1, s11 = *(doubles4 *)(t1 + 4);
    doubles4 s20 = *(doubles4 *)t2, s21 = *(doubles4 *)(t2 + 4);
    doubles4 s30 = *(doubles4 *)t3, s31 = *(doubles4 *)(t3 + 4);
    for (size_t r = 0; r < p->u->n; r++, packed += WIDE) {
        doubles4 low = *(const doubles4 *)packed,
                 high = *(const doubles4 *)(packed + 4);
        s00 += p->by[line][r] * low;
        s01 += p->by[line][r] * high;
        s10 += p->by[line + 1][r] * low;
        s11 += p->by[line + 1][r] * high;
        s20 += p->by[line + 2][r] * low;
        s21 += p->by[line + 2][r] * high;
        s30 += p->by[line + 3][r] * low;
        s31 += p->by[line + 3][r] * high;
    }
    *(doubles4 *)t0 = s00;
    *(doubles4 *)(t0 + 4) = s01;
    *(doubles4 *)t1 = s10;
    *(doubles4 *)(t1 + 4) = s11;
    *(doubles4 *)t2 = s20;
    *(doubles4 *)(t2 + 4) = s21;
    *(doubles4 *)t3 = s30;
    *(doubles4 *)(t3 + 4) = s31;
}

/* Copies columns `at` to at + n * WIDE - 1 of the rows. Rows lie far apart; what is
   copied stays in the nearest cache while all lines are updated by it. */
QDQI_LOOP void
pack(const struct qdqi_subtraction *u, size_t at, size_t n, double *to)
{
    for (size_t r = 0; r < u->n; r++)
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < WIDE; k++)
                to[(i * u->n + r) * WIDE + k] = u->rows[r][at + i * WIDE + k];
}

QDQI_LOOP void
panel_loop(const struct panel *p, size_t n)
{
    double packed[PACKED * WIDE * QDQI_STEP_COLUMNS] __attribute__((aligned(64)));
    size_t at = p->u->first, lines = n / HIGH * HIGH;
    for (size_t columns; at + WIDE <= p->u->end; at += columns * WIDE) {
        columns = (p->u->end - at) / WIDE;
        columns = columns < PACKED ? columns : PACKED;
        pack(p->u, at, columns, packed);
        for (size_t line = 0; line < lines; line += HIGH)
            for (size_t i = 0; i < columns; i++)
                update_8(p, line, at + i * WIDE, packed + i * p->u->n * WIDE);
    }
    update_rest(p, 0, lines, at);
    update_rest(p, lines, n - lines, p->u->first);
}

QDQI_NARROW_VARIANTS(void, panel, (const struct panel *p, size_t n), (p, n))

#if defined(__x86_64__) && defined(__GNUC__)
typedef double doubles8 __attribute__((vector_size(64), aligned(8)));

/* Updates HIGH lines of 32 columns. */
__attribute__((target("avx512f"), always_inline)) static inline void
update_32(const struct panel *p, size_t line, size_t at)
{
    doubles8 sum[HIGH][4];
#pragma GCC unroll 4
    for (size_t i = 0; i < HIGH; i++)
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++)
            sum[i][j] = *(doubles8 *)(p->to + (line + i) * p->stride + at + j * 8);
    for (size_t r = 0; r < p->u->n; r++)
#pragma GCC unroll 4
        for (size_t i = 0; i < HIGH; i++)
#pragma GCC unroll 4
            for (size_t j = 0; j < 4; j++)
                sum[i][j] += p->by[line + i][r] *
                             *(const doubles8 *)(p->u->rows[r] + at + j * 8);
#pragma GCC unroll 4
    for (size_t i = 0; i < HIGH; i++)
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++)
            *(doubles8 *)(p->to + (line + i) * p->stride + at + j * 8) = sum[i][j];
}

__attribute__((target("avx512f"))) static void
panel_avx512(const struct panel *p, size_t n)
{
    struct qdqi_subtraction rest = *p->u;
    struct panel left = *p;
    size_t at = p->u->first, lines = n / HIGH * HIGH;
    for (; at + 32 <= p->u->end; at += 32)
        for (size_t line = 0; line < lines; line += HIGH)
            update_32(p, line, at);
    rest.first = at;
    left.u = &rest;
    panel_loop(&left, lines);
    update_rest(p, lines, n - lines, p->u->first);
}
#else
#define panel_avx512 panel_plain
#endif

QDQI_DISPATCH(void, panel, (const struct panel *p, size_t n), (p, n))

void
qdqi_subtract_panel(const struct qdqi_subtraction *u, double by[][QDQI_STEP_COLUMNS],
                    size_t n_lines, double *to, size_t stride)
{
    const struct panel p = {u, by, to, stride};
    panel(&p, n_lines);
}
