/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elements of each scale of a weight, as floats side by side, one scale after the other.
 * Those of neighbouring scales often lie side by side in rows, as in the weight of a MatMul:
 * they are then gathered together, so that each line of the cache is read once.
 */
#ifndef QDQI_GRAPH_WEIGHTS_ELEMENTS_H
#define QDQI_GRAPH_WEIGHTS_ELEMENTS_H

#include "files/model/constant.h"
#include "numbers/arithmetic/params.h"

enum {
    QDQI_ELEMENTS_PIECE = 1 << 18, /* elements that are gathered at once */
    QDQI_ELEMENTS_PAD = 8,         /* zeros behind them, at least */
};

struct qdqi_elements {
    const struct qdqi_constant *w;
    const struct qdqi_params *p;
    size_t n; /* elements of the scale */
    /* those that were gathered last, which are all if there are no more than
       QDQI_ELEMENTS_PIECE, and zeros */
    float *piece;

    /* only for elements.c: runs of `inner` elements, whose beginnings are `step` apart */
    const uint8_t *bytes;
    size_t inner, step;
    size_t gathered; /* index of the first of them; SIZE_MAX: there are none yet */
    /* the tile: the elements of scales `first` to first + n_filled - 1, each in a column of
       `height` floats */
    float *floats;
    size_t height, columns, first, n_filled;
};

/* Begins with the scales of a weight, which has elements; both are borrowed. Returns false when
   out of memory. */
bool qdqi_elements_open(struct qdqi_elements *e, const struct qdqi_constant *w,
                        const struct qdqi_params *p);
/* Moves on to scale i; a fill has only the first one. */
void qdqi_elements_seek(struct qdqi_elements *e, size_t i);
/* Gathers n elements, at most QDQI_ELEMENTS_PIECE, from number `from` on, which is a
   multiple of that. */
void qdqi_elements_gather(struct qdqi_elements *e, size_t from, size_t n);
void qdqi_elements_close(struct qdqi_elements *e);

#endif
