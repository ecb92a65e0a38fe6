/* SPDX-License-Identifier: Apache-2.0 */
/* The target crowd: it quantizes each Conv, and has 70 rules, more than a word has bits. The
   last one, where it is on, leaves layers that make an output in floating point. */
#include "config.h"
#include "plan/targets/targets.h"

#include <string.h>

#define ONE(RULE, id) RULE(id, OFF, "A rule of many.")
#define FIVE(RULE, a, b, c, d, e) \
    ONE(RULE, a) ONE(RULE, b) ONE(RULE, c) ONE(RULE, d) ONE(RULE, e)
#define TEN(RULE, t)                         \
    FIVE(RULE, t##0, t##1, t##2, t##3, t##4) \
    FIVE(RULE, t##5, t##6, t##7, t##8, t##9)
#define TWENTY(RULE, t, u) TEN(RULE, t) TEN(RULE, u)
#define RULES(RULE) \
    TEN(RULE, Z0) TWENTY(RULE, Z1, Z2) TWENTY(RULE, Z3, Z4) TWENTY(RULE, Z5, Z6)

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
        qdqi_rule_cite(layer, Z00);
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
