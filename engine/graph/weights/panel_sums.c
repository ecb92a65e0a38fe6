/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/panel.h"

#include "numbers/arithmetic/simd.h"

#include <string.h>

void
qdqi_load_local(struct qdqi_panel *p, size_t i, size_t end)
{
    memcpy(p->local, p->sums + i, (end - i) * sizeof *p->sums);
}

struct qdqi_update
qdqi_update_by(const struct qdqi_moment_block *b, const float *matrix, size_t i,
               size_t end)
{
    struct qdqi_update u = {.n = end - i, .end = b->n};
    for (size_t k = 0; k < u.n; k++)
        u.rows[k] = matrix + (i + k) * b->ld;
    return u;
}

QDQI_LOOP void
add_place_loop(const float *row, size_t n, const float *restrict by,
               float (*restrict sums)[QDQI_PANEL])
{
    for (size_t i = 0; i < n; i++)
        for (size_t line = 0; line < QDQI_PANEL; line++)
            sums[i][line] += row[i] * by[line];
}

QDQI_VARIANTS(void, add_place,
              (const float *row, size_t n, const float *by, float (*sums)[QDQI_PANEL]),
              (row, n, by, sums))

void
qdqi_add_place(const float *row, size_t n, const float *by, float (*sums)[QDQI_PANEL])
{
    add_place(row, n, by, sums);
}
