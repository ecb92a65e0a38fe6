/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan has that its target does not fuse, or does slowly. */
#ifndef QDQI_PLAN_LINT_H
#define QDQI_PLAN_LINT_H

#include "plan/planner.h"

/* One warning for each of the target's rows that layers are meant by, in the table's order.
   The rules are settled, the activations collected. NO_MEMORY. */
enum qdq_code qdqi_lint(struct planner *p, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
