/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/weights/elements.h"

#include "numbers/arithmetic/half.h"
#include "graph/weights/scales.h"
#include "graph/weights/walk.h"

#include <stdlib.h>
#include <string.h>

enum {
    PIECE = QDQI_ELEMENTS_PIECE,
    PAD = QDQI_ELEMENTS_PAD,
    TILE = 16, /* columns that are gathered together: a line of the cache */
};

/* --- the place of a scale's elements ---------------------------------------- */

/* Finds the elements of scale i: those of a channel, or all, or the single stored
   element of a fill. */
static void
seek_channel(struct qdqi_elements *e, size_t i)
{
    const struct qdqi_constant *w = e->w;
    bool fill = qdqi_constant_is_fill(w);
    size_t of = fill ? 1 : e->p->n; /* all channels of a fill are equal */
    e->n = fill ? 1 : w->n / of;
    e->inner = of > 1 ? qdqi_weight_inner(w, e->p->axis) : e->n;
    e->step = e->inner * of;
    e->bytes = w->bytes + (fill ? 0 : i) * e->inner * qdqi_dtype_size((int)w->dtype);
}

static void
seek_block(struct qdqi_elements *e, size_t i)
{
    const struct qdqi_constant *w = e->w;
    const struct qdqi_params *p = e->p;
    size_t at = 0, elements = 1, n = 1, step = 1;
    for (size_t k = w->rank; k-- > 0;) {
        size_t dim = (size_t)w->dims[k], n_scales = qdqi_scale_dim(w, p, k);
        size_t index = i % n_scales;
        size_t stride = w->strides ? (size_t)w->strides[k] : elements;
        i /= n_scales;
        elements *= dim;
        if ((int)k == p->axis) {
            index *= (size_t)p->block;
            n = dim - index < (size_t)p->block ? dim - index : (size_t)p->block;
            step = stride;
        }
        at += index * stride;
    }
    e->n = n;
    e->inner = step == 1 ? n : 1;
    e->step = step;
    e->bytes = w->bytes + at * qdqi_dtype_size((int)w->dtype);
}

static void
seek(struct qdqi_elements *e, size_t i)
{
    if (e->p->block > 0 && !qdqi_constant_is_fill(e->w))
        seek_block(e, i);
    else
        seek_channel(e, i);
}

/* --- gathering -------------------------------------------------------------- */

void
qdqi_elements_gather(struct qdqi_elements *e, size_t from, size_t n)
{
    size_t size = qdqi_dtype_size((int)e->w->dtype);
    if (e->gathered == from)
        return;
    e->gathered = from;
    for (size_t i = 0, count; i < n; i += count) {
        size_t run = (from + i) / e->inner, at = (from + i) % e->inner;
        count = e->inner - at < n - i ? e->inner - at : n - i;
        qdqi_load_floats(e->piece + i, e->w->dtype,
                         e->bytes + (run * e->step + at) * size, count);
    }
    memset(e->piece + n, 0, PAD * sizeof *e->piece);
}

/* Fills the tile with the elements of scale i, where `e` is, and of those behind it that lie
   in the same rows. */
static void
fill_tile(struct qdqi_elements *e, size_t i)
{
    size_t size = qdqi_dtype_size((int)e->w->dtype);
    size_t left = e->step - i % e->step, n = left < TILE ? left : TILE;
    float row[TILE] = {0};
    e->first = i;
    e->n_filled = n;
    for (size_t r = 0; r < e->n; r++) {
        const uint8_t *from = e->bytes + r * e->step * size;
        if (e->w->dtype == QDQI_FLOAT32 && n == TILE)
            memcpy(row, from, sizeof row);
        else
            qdqi_load_floats(row, e->w->dtype, from, n);
        for (size_t k = 0; k < TILE; k++)
            e->floats[k * e->height + r] = row[k];
    }
    for (size_t k = 0; k < TILE; k++)
        memset(e->floats + k * e->height + e->n, 0,
               (e->height - e->n) * sizeof *e->floats);
}

/* --- one scale after the other ---------------------------------------------- */

bool
qdqi_elements_open(struct qdqi_elements *e, const struct qdqi_constant *w,
                   const struct qdqi_params *p)
{
    *e = (struct qdqi_elements){.w = w, .p = p};
    seek(e, 0);
    bool rows = e->inner == 1 && e->step > 1 && !w->strides &&
                !qdqi_constant_is_fill(w) && e->n <= PIECE / TILE;
    e->columns = rows ? TILE : 1;
    e->height = (e->n < PIECE ? e->n + PAD - 1 : PIECE) / PAD * PAD + PAD;
    e->floats = malloc(e->columns * e->height * sizeof *e->floats);
    return e->floats;
}

void
qdqi_elements_seek(struct qdqi_elements *e, size_t i)
{
    seek(e, i);
    e->gathered = SIZE_MAX;
    e->piece = e->floats;
    if (e->columns == 1)
        return;
    if (i < e->first || i - e->first >= e->n_filled)
        fill_tile(e, i);
    e->gathered = 0;
    e->piece = e->floats + (i - e->first) * e->height;
}

void
qdqi_elements_close(struct qdqi_elements *e)
{
    free(e->floats);
    e->floats = NULL;
}
