/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rule P2, which several targets have: a table of embeddings that a head multiplies by, too, is
 * stored once. Its integers have a scale for each row, which is a channel of the head's output, and
 * Gathers select integers and scales.
 */
#ifndef QDQI_PLAN_TARGETS_SHARED_TIED_H
#define QDQI_PLAN_TARGETS_SHARED_TIED_H

#include "plan/placement/rules.h"

/* The rule's row in a target's list of rules. */
#define QDQI_TIED_RULE(RULE)                                                        \
    RULE(P2, AUTO,                                                                  \
         "A table whose rows Gathers select, and whose transpose a Gemm or MatMul " \
         "multiplies by, is stored once, as integers of 8 bits with a scale for "   \
         "each row: Gathers select integers, and what they make is dequantized. "   \
         "Off: it is stored in floating point for them once more.")

/* Decides the rule by the recipe and the formats of a complete spec, and sets *ret_reason to the
   reason. */
bool qdqi_tied_decide(const struct qdq_spec *spec, const char **ret_reason);

/* Marks the weights of the plan that are such tables, if the rule is on, and cites it for their
   layers. `rule` is its number among the rules of the plan's target. */
void qdqi_tied_plan(struct planner *p, int rule);

#endif
