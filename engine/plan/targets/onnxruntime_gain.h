/* SPDX-License-Identifier: Apache-2.0 */
/* The layers by whose integers onnxruntime gains time on a CPU, and the paths that
   integers take between them. */
#ifndef QDQI_PLAN_TARGETS_ONNXRUNTIME_GAIN_H
#define QDQI_PLAN_TARGETS_ONNXRUNTIME_GAIN_H

#include "plan/placement/target.h"

/*
 * Leaves in floating point the layers of integer kernels that no entry selects and by
 * which onnxruntime gains nothing. `rule` is the rule that asks for that. All layers
 * must have been decided on. Returns false when out of memory.
 */
bool qdqi_gain_apply(struct planner *p, int rule);

/* Returns whether an integer kernel makes the tensor, perhaps in front of layers that
   move data or clip. */
bool qdqi_gain_comes_from_integers(const struct planner *p,
                                   const struct qdqi_tensor *t);

/* Returns whether an integer kernel reads the tensor, perhaps behind layers that move
   data or clip. */
bool qdqi_gain_goes_to_integers(const struct planner *p, const struct qdqi_tensor *t);

#endif
