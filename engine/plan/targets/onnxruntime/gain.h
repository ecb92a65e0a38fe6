/* SPDX-License-Identifier: Apache-2.0 */
/* The layers by whose integers onnxruntime gains time on a CPU. */
#ifndef QDQI_PLAN_TARGETS_ONNXRUNTIME_GAIN_H
#define QDQI_PLAN_TARGETS_ONNXRUNTIME_GAIN_H

#include "plan/placement/target.h"

/* Makes the marks of the target (integer_paths.h). NO_MEMORY. */
enum qdq_code qdqi_gain_begin(struct planner *p, struct qdq_error *err);

/*
 * Leaves in floating point the layers of integer kernels that no entry selects and by
 * which onnxruntime gains nothing, by rule C15. All layers must have been decided on.
 * Returns false when out of memory.
 */
bool qdqi_gain_apply(struct planner *p);

#endif
