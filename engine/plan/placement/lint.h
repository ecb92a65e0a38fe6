/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about parts of a plan that the target does not fuse, or computes slowly. */
#ifndef QDQI_PLAN_PLACEMENT_LINT_H
#define QDQI_PLAN_PLACEMENT_LINT_H

#include "plan/placement/planner.h"

/*
 * Adds one warning for each row of the target's lints that applies to at least one
 * layer, in the order of the rows. The rules must have been applied to all layers, and
 * the activations collected. NO_MEMORY.
 */
enum qdq_code qdqi_lint(struct planner *p, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
