/* SPDX-License-Identifier: Apache-2.0 */
/* The paths that integers take between the kernels of onnxruntime's CPU provider, through
   layers that move data or clip. They are known when all layers have been decided on. */
#ifndef QDQI_PLAN_TARGETS_ONNXRUNTIME_INTEGER_PATHS_H
#define QDQI_PLAN_TARGETS_ONNXRUNTIME_INTEGER_PATHS_H

#include "plan/placement/planner.h"

/* The most layers that move data or clip which are followed from a tensor. */
enum { QDQI_MOST_MOVES = 32 };

/* The target's findings about a model while a plan is made. */
struct qdqi_onnxruntime_marks {
    const bool
        *squared; /* by node: whether its output is squared; NULL without rule C15 */
    /* from a tensor's name to its qdqi_integer_readers, while layers are weighed; else NULL */
    struct qdqi_map *readers;
};

static inline struct qdqi_onnxruntime_marks *
qdqi_marks_of(const struct planner *p)
{
    return p->marks;
}

/* Returns whether the operator moves data or clips, so that it reads and makes integers
   where its neighbours do. */
bool qdqi_passes_integers(const char *op);

/* Returns whether an integer kernel makes the tensor, perhaps in front of layers that
   move data or clip. */
bool qdqi_comes_from_integers(const struct planner *p, const struct qdqi_tensor *t);

/* Returns whether an integer kernel reads the tensor, perhaps behind layers that move
   data or clip. */
bool qdqi_goes_to_integers(const struct planner *p, const struct qdqi_tensor *t);

/* The number of readers of a tensor that compute in integers, and of those that do not.
   Layers that move data count as their own readers do. */
struct qdqi_integer_readers {
    size_t integer, other;
};

struct qdqi_integer_readers qdqi_integer_readers(const struct planner *p,
                                                 const struct qdqi_tensor *t);

/* Keeps the counts of the tensors that layers with pairs read and make. Returns false when
   out of memory. */
bool qdqi_integer_readers_keep(struct planner *p);

/* Counts a reader of the tensor, which read integers up to now, as another one, in the
   counts that are kept. */
void qdqi_integer_reader_leave(const struct planner *p, const struct qdqi_tensor *t);

#endif
