/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over the elements of a weight in C order, each with its scale, for any way
   in which they are stored. */
#ifndef QDQI_GRAPH_WEIGHTS_WALK_H
#define QDQI_GRAPH_WEIGHTS_WALK_H

#include "ground/base/arena.h"
#include "files/model/constant.h"
#include "numbers/arithmetic/params.h"

/*
 * An axis: its number of indices, and the distance of two indices in elements and in
 * scales. The distance in scales is for whole blocks of indices: index i is at element
 * i * elements and at scale i / block * scales.
 */
struct qdqi_step {
    size_t n, elements, scales, block; /* block >= 1 */
};

struct qdqi_walk {
    /* n_rows: runs of the last step; 0 if there are no elements */
    size_t n_rows, n_steps;
    struct qdqi_step *steps; /* at least one, the outermost first */
};

/* Starts a walk over a weight with its params' axis and block; allocates in the
   arena. Returns false when out of memory. */
bool qdqi_walk_init(struct qdqi_walk *walk, struct qdqi_arena *arena,
                    const struct qdqi_constant *weight, const struct qdqi_params *p);

/* Finds the first element of a row and the scale of that element. */
void qdqi_walk_row(const struct qdqi_walk *walk, size_t row, size_t *ret_element,
                   size_t *ret_scale);

static inline const struct qdqi_step *
qdqi_walk_last(const struct qdqi_walk *walk)
{
    return &walk->steps[walk->n_steps - 1];
}

/* Returns the number of elements, at most n, from index i of a step on that share a
   scale. */
static inline size_t
qdqi_step_run(const struct qdqi_step *step, size_t i, size_t n)
{
    size_t run = step->scales == 0 ? n : step->block - i % step->block;
    return run < n ? run : n;
}

/* Counts the scales of a weight. Returns false when the number overflows. */
bool qdqi_count_scales(const struct qdqi_constant *weight, int axis, int64_t block,
                       size_t *ret);

/* Returns the number of scales along axis i. */
static inline size_t
qdqi_scale_dim(const struct qdqi_constant *w, const struct qdqi_params *p, size_t i)
{
    size_t n = (size_t)w->dims[i], block = (size_t)p->block;
    if (p->block == 0)
        return (int)i == p->axis ? n : 1;
    return (int)i == p->axis ? (n + block - 1) / block : n;
}

#endif
