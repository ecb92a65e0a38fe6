/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that second moments and the weights that they round take, known by the plan. */
#ifndef QDQI_PLAN_PLACEMENT_MOMENT_MEMORY_H
#define QDQI_PLAN_PLACEMENT_MOMENT_MEMORY_H

#include "plan/placement/planner.h"

/* Returns whether the complete spec, or the plan, asks for something that uses moments. */
bool qdqi_plan_has_moments(const struct qdq_spec *spec, const struct qdq_plan *plan);

/* Returns the bytes that all moments of a job may take. */
uint64_t qdqi_most_moments(const struct qdq_plan *plan);

/* Computes plan->moment_bytes. A warning says what they are where they are many. NO_MEMORY. */
enum qdq_code qdqi_plan_moment_memory(struct planner *p,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

#endif
