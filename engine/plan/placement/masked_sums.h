/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of scores and masks in front of a Softmax, for targets that cut the masks' lowest numbers
   off. */
#ifndef QDQI_PLAN_PLACEMENT_MASKED_SUMS_H
#define QDQI_PLAN_PLACEMENT_MASKED_SUMS_H

#include "plan/placement/planner.h"

/* Lists them in the plan, whose activations are complete. NO_MEMORY. */
enum qdq_code qdqi_masked_sums_find(struct planner *p,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
