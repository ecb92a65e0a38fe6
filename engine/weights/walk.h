/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of a weight in C order, each with its scale, however they are stored. */
#ifndef QDQI_WEIGHTS_WALK_H
#define QDQI_WEIGHTS_WALK_H

#include "base/arena.h"
#include "model/constant.h"
#include "number/params.h"

/*
 * An axis: its indices, and what one step on it skips. Of scales that is taken for each
 * whole block of indices: index i is at element i * elements and scale i / block * scales.
 */
struct qdqi_step {
    size_t n, elements, scales, block; /* block >= 1 */
};

struct qdqi_walk {
    size_t n_rows, n_steps;  /* rows of the last step; no elements: no rows */
    struct qdqi_step *steps; /* at least one, from the outermost to the innermost */
};

/* Starts a walk over a weight with its params' axis and block; allocates in the
   arena. Returns false when out of memory. */
bool qdqi_walk_init(struct qdqi_walk *walk, struct qdqi_arena *arena,
                    const struct qdqi_constant *weight, const struct qdqi_params *p);

/* Where a row begins: its first element and that one's scale. */
void qdqi_walk_row(const struct qdqi_walk *walk, size_t row, size_t *ret_element,
                   size_t *ret_scale);

static inline const struct qdqi_step *
qdqi_walk_last(const struct qdqi_walk *walk)
{
    return &walk->steps[walk->n_steps - 1];
}

/* Elements from index i of a step on that share a scale, at most n. */
static inline size_t
qdqi_step_run(const struct qdqi_step *step, size_t i, size_t n)
{
    size_t run = step->scales == 0 ? n : step->block - i % step->block;
    return run < n ? run : n;
}

/* Scales of a weight; false where that is more than can be counted. */
bool qdqi_count_scales(const struct qdqi_constant *weight, int axis, int64_t block,
                       size_t *ret);

/* Indices of scales along axis i. */
static inline size_t
qdqi_scale_dim(const struct qdqi_constant *w, const struct qdqi_params *p, size_t i)
{
    size_t n = (size_t)w->dims[i], block = (size_t)p->block;
    if (p->block == 0)
        return (int)i == p->axis ? n : 1;
    return (int)i == p->axis ? (n + block - 1) / block : n;
}

#endif
