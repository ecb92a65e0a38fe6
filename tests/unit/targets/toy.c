/* SPDX-License-Identifier: Apache-2.0 */
/* The target toy: an engine whose only integer kernel is Conv, for uint8. */
#include "config.h"
#include "plan/targets/targets.h"

#include <string.h>

#define RULES(RULE)                                                            \
    RULE(Y1, FIXED,                                                            \
         "A Conv has a pair on its data input, and one scale for its weight.") \
    RULE(Y2, ON, "A layer that makes an output of the model stays floating point.")

QDQI_RULE_ENUM(RULES);

static bool
is_on(const struct planner *p, const struct qdqi_class *cls)
{
    (void)p;
    return strcmp(cls->support.op, "Conv") == 0;
}

/* The integer Conv has a single scale for its weight. */
static bool
is_per_channel(const struct planner *p, const struct qdq_layer *layer, int weight_input,
               size_t rank)
{
    (void)p;
    (void)weight_input;
    (void)rank;
    return strcmp(layer->op, "Conv") != 0;
}

static bool
makes_output(const struct planner *p, const struct qdq_layer *layer)
{
    return qdqi_node_of(p, layer)->outputs[0]->is_output;
}

static const struct qdqi_veto vetoes[] = {
    {QDQI_VETO(Y2), makes_output, false},
    {0},
};

static void
cite(const struct planner *p, struct qdq_layer *layer)
{
    (void)p;
    if (layer->n_inputs > 0 && strcmp(layer->op, "Conv") == 0)
        qdqi_rule_cite(layer, Y1);
}

static enum qdq_code
check_formats(struct planner *p, struct qdq_error *err)
{
    if (p->spec->weight_only || p->spec->activations.format == QDQ_FORMAT_UINT8)
        return QDQ_OK;
    return qdqi_warn(&p->warnings, p->plan->arena, err, "target_format", NULL,
                     "the toy computes with activations of uint8 alone");
}

static bool
lint_toy_not_conv(const struct planner *p, const struct qdq_layer *layer)
{
    (void)p;
    return qdqi_layer_is_quantized(layer) && strcmp(layer->op, "Conv") != 0;
}

static const struct qdqi_lint lints[] = {
    {QDQI_LINT(toy_not_conv), Y1,
     "the toy has no integer kernel for it, so that its pair costs time for nothing",
     QDQI_LINT_ALWAYS},
    {0},
};

static const struct qdq_rule rules[] = {RULES(QDQI_RULE_ROW)};

static const struct qdqi_hooks hooks = {
    .is_on = is_on,
    .is_per_channel = is_per_channel,
    .vetoes = vetoes,
    .cite = cite,
    .check_formats = check_formats,
    .lints = lints,
};

const struct qdq_target qdqi_target_toy = {
    .name = "toy",
    .title = "Toy",
    .text = "Pairs stand on the data inputs and the weights of Conv.",
    .weights = QDQ_FORMAT_INT4,
    .activations = QDQ_FORMAT_UINT8,
    .storage = QDQ_STORE_DQ,
    .rules = rules,
    .n_rules = N_RULES,
    .hooks = &hooks,
};
