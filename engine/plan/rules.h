/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target's rules while a plan is made.
 *
 * A rule that can be switched keeps a layer in floating point that would be quantized by
 * default, by its class or by a case. What names a layer, or a glob over names, beats it.
 */
#ifndef QDQI_PLAN_RULES_H
#define QDQI_PLAN_RULES_H

#include "plan/planner.h"
#include "qdq/rules.h"

/* Those that are on by default, of all targets. */
uint64_t qdqi_rules_default(void);

/* A rule of the plan's target, by its number among those of the target: its bit in a set
   of rules, whether it is on, and its id. */
uint64_t qdqi_rule_bit(const struct planner *p, int rule);
bool qdqi_rule_is_on(const struct planner *p, int rule);
const char *qdqi_rule_id(const struct planner *p, int rule);

/* Whether a layer is what one of the rules that can be switched speaks of: whether the
   rule is on does not matter, nor whether the layer is quantized. */
bool qdqi_rule_means(const struct planner *p, int rule, const struct qdq_layer *layer);

/* Takes the pairs from a layer just decided on, where a rule that is on wants it. */
void qdqi_rules_apply(struct planner *p, struct qdq_layer *layer);

/* When all are decided on: the rules that ask what is quantized behind a layer.
   NO_MEMORY. */
enum qdq_code qdqi_rules_settle(struct planner *p,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Adds to every layer's rules those that its decision follows, when all is planned. */
void qdqi_rules_cite(struct planner *p);

/* Whether input i of a layer has a pair. */
bool qdqi_layer_has_pair(const struct qdq_layer *layer, int i);
bool qdqi_layer_is_quantized(const struct qdq_layer *layer);

#endif
