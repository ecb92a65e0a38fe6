/* SPDX-License-Identifier: Apache-2.0 */
/* Rule P8, which all targets have: what few samples leave to chance counts less where weights are rounded
   against outputs. */
#ifndef QDQI_PLAN_PLACEMENT_SAMPLED_MOMENTS_H
#define QDQI_PLAN_PLACEMENT_SAMPLED_MOMENTS_H

#include "plan/placement/rules.h"

/* The rule's row in a target's list of rules, ON or AUTO. */
#define QDQI_SAMPLED_MOMENTS_RULE(RULE, STATE)                                        \
    RULE(P8, STATE,                                                                   \
         "Where weights are rounded by `reconstruct`, the products of two inputs of " \
         "a layer count less by the share that so few samples leave to chance. Off: " \
         "they count as they were observed.")

/* Decides the rule by the rounding of a complete spec. */
bool qdqi_sampled_moments_decide(const struct qdq_spec *spec, const char **ret_reason);

/* Returns whether a complete spec's target has the rule, and it is on. */
bool qdqi_shrinks_moments(const struct qdq_spec *spec);

#endif
