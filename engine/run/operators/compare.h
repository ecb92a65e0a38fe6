/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of the operators Compare and Pass, with which a twin is made
 * (transform/rewrite/twin.h).
 *
 * A set of comparisons belongs to one session. ONNX Runtime runs the nodes of a session
 * one after another, so the set needs no lock. Within one node, a large tensor is
 * divided into parts that several threads process. The division depends on the number
 * of elements alone and the sums of the parts are added in order, so the result is the
 * same for any number of threads.
 */
#ifndef QDQI_RUN_OPERATORS_COMPARE_H
#define QDQI_RUN_OPERATORS_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "ground/base/arena.h"
#include "numbers/arithmetic/noise.h"

struct qdqi_comparison {
    struct qdqi_noise sums; /* sums over all runs */
    int64_t runs;           /* how often the Compare node was computed */
    /* true once the two tensors had another type than float32 or float16, or
       different numbers of elements */
    bool differs;
};

struct qdqi_comparisons {
    struct qdqi_comparison *rows; /* indexed by slot */
    size_t n;
};

/* Allocates n empty comparisons in the arena. Returns false when out of memory. */
bool qdqi_comparisons_init(struct qdqi_comparisons *comparisons, size_t n,
                           struct qdqi_arena *arena);

#endif
