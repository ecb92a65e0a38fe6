/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operators that a twin is made with (rewrite/twin.h), and what Compare adds up.
 *
 * A set of comparisons belongs to one session; the runtime runs a session's nodes one
 * after another, so it needs no lock. Within one node the elements of a large tensor
 * are shared over threads, in parts that depend on their number alone and are added in
 * their order: the sums are the same whatever the number of threads.
 */
#ifndef QDQI_RUN_COMPARE_H
#define QDQI_RUN_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "number/noise.h"

struct qdqi_comparison {
    struct qdqi_noise sums; /* over all runs */
    int64_t runs;           /* how often the two tensors were reached */
    bool differs; /* once they were of no such type or not of as many elements */
};

struct qdqi_comparisons {
    struct qdqi_comparison *rows; /* by slot */
    size_t n;
};

/* In the arena; false when out of memory. */
bool qdqi_comparisons_init(struct qdqi_comparisons *comparisons, size_t n,
                           struct qdqi_arena *arena);

#endif
