/* SPDX-License-Identifier: Apache-2.0 */
/* The target crowd: it quantizes each Conv, and has 70 rules, more than a word has bits. The
   last one leaves layers that make an output of the model in floating point. */
#include "config.h"
#include "plan/targets/targets.h"

#include <string.h>

#define IDLE(RULE, id) RULE(id, OFF, "This rule does nothing.")
#define EIGHT(RULE, ten)                                                        \
    IDLE(RULE, ten##1)                                                          \
    IDLE(RULE, ten##2) IDLE(RULE, ten##3) IDLE(RULE, ten##4) IDLE(RULE, ten##5) \
        IDLE(RULE, ten##6) IDLE(RULE, ten##7) IDLE(RULE, ten##8)
#define RULES(RULE)                                                                    \
    RULE(Z0, FIXED, "A Conv has a pair on its data input.")                            \
    EIGHT(RULE, Z)                                                                     \
    IDLE(RULE, Z9) IDLE(RULE, Z10) EIGHT(RULE, Z1) IDLE(RULE, Z19) IDLE(RULE, Z20)     \
        EIGHT(RULE, Z2) IDLE(RULE, Z29) IDLE(RULE, Z30) EIGHT(RULE, Z3) IDLE(          \
            RULE, Z39) IDLE(RULE, Z40) EIGHT(RULE, Z4) IDLE(RULE, Z49) IDLE(RULE, Z50) \
            EIGHT(RULE, Z5) IDLE(RULE, Z59) IDLE(RULE, Z60) EIGHT(RULE, Z6) RULE(      \
                Z69, ON,                                                               \
                "A layer that makes an output of the model stays floating point.")

QDQI_RULE_ENUM(RULES);

static bool
is_on(const struct planner *p, const struct qdqi_class *cls)
{
    (void)p;
    return strcmp(cls->support.op, "Conv") == 0;
}

static bool
makes_output(const struct planner *p, const struct qdq_layer *layer)
{
    return qdqi_node_of(p, layer)->outputs[0]->is_output;
}

static const struct qdqi_veto vetoes[] = {
    {QDQI_VETO(Z69), makes_output, false},
    {0},
};

static void
cite(const struct planner *p, struct qdq_layer *layer)
{
    (void)p;
    if (layer->n_inputs > 0)
        qdqi_rule_cite(layer, Z0);
}

static const struct qdq_rule rules[] = {RULES(QDQI_RULE_ROW)};

static const struct qdqi_hooks hooks = {
    .is_on = is_on,
    .vetoes = vetoes,
    .cite = cite,
};

const struct qdq_target qdqi_target_crowd = {
    .name = "crowd",
    .title = "Crowd",
    .text = "Pairs stand on the data inputs and the weights of Conv.",
    .weights = QDQ_FORMAT_INT8,
    .activations = QDQ_FORMAT_UINT8,
    .storage = QDQ_STORE_DQ,
    .rules = rules,
    .n_rules = N_RULES,
    .hooks = &hooks,
};
