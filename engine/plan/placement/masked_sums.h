/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of scores and masks in front of a Softmax, for targets that cut the masks' lowest numbers
   off. */
#ifndef QDQI_PLAN_PLACEMENT_MASKED_SUMS_H
#define QDQI_PLAN_PLACEMENT_MASKED_SUMS_H

#include "plan/placement/planner.h"

/* The row of rule P4 in a target's list of rules. */
#define QDQI_MASKS_RULE(RULE)                                                         \
    RULE(P4, AUTO,                                                                    \
         "The range of a mask that is added to scores in front of a Softmax, or "     \
         "stands for them, begins 12 below what makes a score the lowest one, where " \
         "the mask has -1000 or less, and so does what bounds (Max, Min, Clip) or "   \
         "moves the sum. Off: the mask takes the whole range.")

/* A mask has numbers as far from 0 as this, and scores are nearer. */
#define QDQI_HIGHEST_MASK 1000.0

/* Why the rule is on. */
#define QDQI_WHY_MASKS "masks would leave the scores no integers"

/* Lists them in the plan, whose activations are complete; with `looks_through` also what bounds or
   moves such a sum before the Softmax reads it. NO_MEMORY. */
enum qdq_code qdqi_masked_sums_find(struct planner *p, bool looks_through,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes an array by node: whether its output is scores to which constants of the model add numbers as low as
   a mask's, and which something else than a Softmax reads, too. NULL when out of memory. */
const bool *qdqi_scores_read_elsewhere(const struct qdq_model *model,
                                       struct qdqi_arena *arena);

#endif
