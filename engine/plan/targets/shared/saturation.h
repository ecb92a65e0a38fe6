/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rule C7, which several targets have: scales of weights that keep sums of two products in
 * 16 bits, where processors add them so.
 */
#ifndef QDQI_PLAN_TARGETS_SHARED_SATURATION_H
#define QDQI_PLAN_TARGETS_SHARED_SATURATION_H

#include "plan/placement/rules.h"

/* The rule's row in a target's list of rules. */
#define QDQI_SATURATION_RULE(RULE)                                                    \
    RULE(C7, AUTO,                                                                    \
         "The int8 weights of Conv, ConvTranspose, Gemm and MatMul have scales with " \
         "which two neighbours are together at most 128, and those of LSTM are "      \
         "integers from -64 to 64, so that the 16-bit sums of processors without "    \
         "VNNI do not overflow.")

/* Decides the rule by the class of processors and by the formats of a complete spec, and
   sets *ret_reason to the reason. */
bool qdqi_saturation_decide(const struct qdq_spec *spec, const char **ret_reason);

/* Limits the weights of the plan, if the rule is on, and cites the rule for their
   layers. `rule` is its number among the rules of the plan's target. */
void qdqi_saturation_plan(struct planner *p, int rule);

/* Returns UNSUPPORTED if the rule is on and the weights are not int8. */
enum qdq_code qdqi_saturation_check(const struct planner *p, int rule,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Switches the rule off. Returns whether the spec's target has it, and it was on. */
bool qdqi_saturation_switch_off(struct qdq_spec *spec);

#endif
