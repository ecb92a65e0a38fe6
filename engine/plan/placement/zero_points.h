/* SPDX-License-Identifier: Apache-2.0 */
/* Rule P6, which several targets have: zero points of stored weights that are all 0 are left out. */
#ifndef QDQI_PLAN_PLACEMENT_ZERO_POINTS_H
#define QDQI_PLAN_PLACEMENT_ZERO_POINTS_H

#include "plan/placement/rules.h"

/* The rule's row in a target's list of rules. */
#define QDQI_ZERO_POINTS_RULE(RULE)                                               \
    RULE(P6, AUTO,                                                                \
         "With weights alone, the DequantizeLinear of a weight in blocks has no " \
         "zero points where all of them are 0. Off: they are stored, one for "    \
         "each block.")

/* Decides the rule by the activations of a complete spec. */
bool qdqi_zero_points_decide(const struct qdq_spec *spec, const char **ret_reason);

/* Returns whether a complete spec's target has the rule, and it is on. */
bool qdqi_leaves_out_zeros(const struct qdq_spec *spec);

#endif
