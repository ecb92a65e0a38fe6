/* SPDX-License-Identifier: Apache-2.0 */
/* The minimum cut of a network, by Dinic's algorithm (E. A. Dinitz, 1970). */
#ifndef QDQI_STAGES_FRONTIER_CUT_H
#define QDQI_STAGES_FRONTIER_CUT_H

#include "ground/base/arena.h"
#include "qdq/error.h"

#include <stddef.h>

/* A pipe from one node to another one. A cut with `from` on the side of the source and `to` on
   that of the sink costs its capacity. */
struct qdqi_pipe {
    size_t from, to;
    double capacity; /* >= 0; may be INFINITY where some cut costs less than that */
};

/*
 * Finds the cheapest cut between two of n nodes. in_source[i] is whether node i is on the side of
 * the source, which has the fewest nodes that a cheapest cut can have. NO_MEMORY.
 */
enum qdq_code qdqi_cut(size_t n, const struct qdqi_pipe *pipes, size_t n_pipes,
                       size_t source, size_t sink, bool *in_source,
                       struct qdqi_arena *arena, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
