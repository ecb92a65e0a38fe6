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

enum qdqi_rule {
#define RULE(id, target, state, text) QDQI_RULE_##id,
#include "tbl/rules.h"
#undef RULE
    QDQI_N_RULES
};

static inline uint64_t
qdqi_rule_bit(enum qdqi_rule rule)
{
    return (uint64_t)1 << rule;
}

/* Those that are on by default. */
uint64_t qdqi_rules_default(void);

/* Whether the rule is one of the spec's target and on. */
bool qdqi_rule_is_on(const struct qdq_spec *spec, enum qdqi_rule rule);

/* Whether a layer is what one of the rules that can be switched speaks of: whether the
   rule is on does not matter, nor whether the layer is quantized. */
bool qdqi_rule_means(const struct planner *p, enum qdqi_rule rule,
                     const struct qdq_layer *layer);

/* Takes the pairs from a layer just decided on, where a rule that is on wants it. */
void qdqi_rules_apply(struct planner *p, struct qdq_layer *layer);

/* When all are decided on: the rules that ask what is quantized behind a layer, then
   what every layer's decision follows. NO_MEMORY. */
enum qdq_code qdqi_rules_settle(struct planner *p,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Whether input i of a layer has a pair. */
bool qdqi_layer_has_pair(const struct qdq_layer *layer, int i);
bool qdqi_layer_is_quantized(const struct qdq_layer *layer);

#endif
