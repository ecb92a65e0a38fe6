/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target's rules while a plan is made.
 *
 * A rule that can be switched keeps a layer in floating point that its class or a case
 * would quantize. An entry that selects the layer by its name, or by a glob over names,
 * has priority over the rule.
 */
#ifndef QDQI_PLAN_PLACEMENT_RULES_H
#define QDQI_PLAN_PLACEMENT_RULES_H

#include "plan/placement/planner.h"
#include "qdq/rules.h"

/* Decides the automatic rules of the spec's target that the spec does not switch. The other
   members must be complete. */
void qdqi_rules_decide(struct qdq_spec *spec);

/* Returns why a rule of the spec's target is on or off, or NULL if it is not an
   automatic rule. `rule` is its number among the rules of the target. */
const char *qdqi_rule_reason(const struct qdq_spec *spec, int rule, bool *ret_on);

/* These functions are about a rule of the plan's target, by its number. They return whether
   it is on, and its id. */
bool qdqi_rule_is_on(const struct planner *p, int rule);
const char *qdqi_rule_id(const struct planner *p, int rule);

/* Adds a rule to those that the layer's decision follows. */
void qdqi_rule_cite(struct qdq_layer *layer, int rule);

/* Removes the pairs of a layer, which a rule leaves in floating point for that reason. */
void qdqi_layer_leave(struct qdq_layer *layer, int rule, const char *reason);

/* Returns whether a rule that keeps layers in floating point applies to the layer.
   It does not matter whether the rule is on, nor whether the layer is quantized. */
bool qdqi_rule_means(const struct planner *p, int rule, const struct qdq_layer *layer);

/*
 * Removes the pairs of a layer that was just decided on, if a rule that is on keeps it
 * in floating point. Rules that look at later layers are left to qdqi_rules_settle().
 */
void qdqi_rules_apply(struct planner *p, struct qdq_layer *layer);

/* Applies the rules that ask whether layers behind a layer are quantized. All layers
   must have been decided on. NO_MEMORY. */
enum qdq_code qdqi_rules_settle(struct planner *p,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Adds to every layer the ids of the rules that its decision follows. The plan must
   be complete. */
void qdqi_rules_cite(struct planner *p);

/* The first function returns whether input i of a layer has a pair, the second one
   whether any input or the weight has one. */
bool qdqi_layer_has_pair(const struct qdq_layer *layer, int i);
bool qdqi_layer_is_quantized(const struct qdq_layer *layer);

#endif
