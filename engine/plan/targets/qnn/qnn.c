/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target qnn: the HTP of Qualcomm's chips, by ONNX Runtime's provider QNN. It computes a layer
 * in integers where all inputs and outputs of it have pairs, and everything else in float16, or it
 * leaves it to the processor. Source: what the provider of onnxruntime-qnn 2.7.0 takes, and what its
 * emulator, which executes graphs, computes; on a device nothing was run.
 */
#include "config.h"
#include "plan/targets/qnn/qnn.h"

#include "numbers/arithmetic/format.h"
#include "plan/placement/masked_sums.h"
#include "plan/targets/targets.h"

#include <string.h>

static bool
folds(const struct qdq_spec *spec)
{
    return qdq_spec_has_rule(spec, Q10);
}

/* --- which layers, and how ------------------------------------------------ */

static bool
is_on(const struct planner *p, const struct qdqi_class *cls)
{
    static const char *const norms[] = {"LayerNormalization", "InstanceNormalization",
                                        "PRelu", "Pow"};
    const bool weighted = cls->kind == QDQ_WEIGHTED;
    if (cls->is_table)
        return qdqi_rule_is_on(p, Q21) && !p->spec->weight_only;
    /* Without a constant factor there is none that a pair could stand on. */
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        if (strcmp(cls->support.op, norms[i]) == 0)
            return weighted && !p->spec->weight_only;
    return qdqi_htp_role(cls->support.op) != QDQI_HTP_NONE &&
           !(cls->is_operand && p->spec->weight_only);
}

static bool
is_per_channel(const struct planner *p, const struct qdq_layer *layer, int weight_input,
               size_t rank)
{
    const bool has_sign =
        qdqi_format_row((int)layer->format->weights.format)->lowest < 0;
    (void)p;
    return has_sign &&
           (strcmp(layer->op, "MatMul") != 0 || (weight_input == 1 && rank == 2));
}

static bool
follows(const struct qdq_layer *layer)
{
    const enum qdqi_htp_role role = qdqi_htp_role(layer->op);
    return role == QDQI_HTP_MOVES || role == QDQI_HTP_CLIPS;
}

static bool
has_kernel(const char *op)
{
    const enum qdqi_htp_role role = qdqi_htp_role(op);
    return role == QDQI_HTP_COMPUTES || role == QDQI_HTP_UNIT;
}

static bool
is_clipping(const char *op)
{
    return qdqi_htp_role(op) == QDQI_HTP_CLIPS;
}

/* --- the rules that a decision follows ------------------------------------- */

static void
cite(const struct planner *p, struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const enum qdqi_htp_role role = qdqi_htp_role(layer->op);
    if (role == QDQI_HTP_NONE)
        return;
    if (role != QDQI_HTP_MOVES && layer->n_inputs > 0)
        qdqi_rule_cite(layer, Q1);
    if (role == QDQI_HTP_MOVES && layer->n_outputs > 0 &&
        qdqi_map_get(p->outputs.leaders,
                     node->outputs[layer->quantized_outputs[0]]->name))
        qdqi_rule_cite(layer, Q2);
    if (layer->weight_input >= 0 && role != QDQI_HTP_MOVES &&
        !p->graph->classes[layer->node]->is_operand)
        qdqi_rule_cite(layer, Q3);
    if (layer->n_outputs > 0 &&
        (role == QDQI_HTP_UNIT || strcmp(layer->op, "Tanh") == 0))
        qdqi_rule_cite(layer, Q6);
}

/* --- which rules hold ------------------------------------------------------ */

/* Q7, Q13, Q14, Q15, Q17, Q19, Q20 and Q23 are the automatic rules. */
static bool
decide_rule(const struct qdq_spec *spec, int rule, const char **ret_reason)
{
    if (rule == Q19 || rule == Q20 || rule == Q23) {
        const bool is_old = spec->host == QDQ_HOST_V68 || spec->host == QDQ_HOST_V69;
        *ret_reason = is_old ? "HTPs before v73 compute other numbers"
                             : "HTPs from v73 on compute the same numbers";
        return is_old;
    }
    const bool has_gelu = spec->host != QDQ_HOST_V68;
    if (rule == Q13 || rule == Q14 || rule == Q17) {
        *ret_reason = QDQI_WHY_MASKS;
        return true;
    }
    *ret_reason = has_gelu ? "the HTP has a GELU" : "an HTP of v68 has no GELU";
    return has_gelu; /* Q7 and Q15 */
}

/* --- the row -------------------------------------------------------------- */

static const struct qdq_rule rules[] = {QNN_RULES(QDQI_RULE_ROW)};

static const struct qdqi_hooks hooks = {
    .decide_rule = decide_rule,
    .folds = folds,
    .reform = qdqi_qnn_reform,
    .least_opset = qdqi_qnn_least_opset,
    .fuses_biases = true,
    .classes = qdqi_qnn_classes,
    .n_classes = QDQI_N_QNN_CLASSES,
    .begin = qdqi_qnn_begin,
    .is_on = is_on,
    .hindrance = qdqi_qnn_hindrance,
    .is_per_channel = is_per_channel,
    .is_operand = qdqi_qnn_is_operand,
    .decide_outputs = qdqi_qnn_decide_outputs,
    .complete = qdqi_qnn_complete,
    .follows = follows,
    .has_kernel = has_kernel,
    .is_clipping = is_clipping,
    .cite = cite,
    .refusal = qdqi_qnn_refusal,
    .check_formats = qdqi_qnn_check_formats,
    .lints = qdqi_qnn_lints,
};

const struct qdq_target qdqi_target_qnn = {
    .name = "qnn",
    .title = "Qualcomm's HTP",
    .is_proprietary = true,
    .text = "Pairs stand on the inputs and outputs of all layers that the HTP computes "
            "in integers, and on constant operands.",
    .weights = QDQ_FORMAT_INT8,
    .activations = QDQ_FORMAT_UINT8,
    .storage = QDQ_STORE_DQ,
    .rounding = QDQ_ROUND_GPTQ,
    .weight_method = QDQ_WEIGHT_MSE,
    .recipe = QDQ_RECIPE_AUTO,
    .host = "v73",
    .widens = true,
    .has_context = true,
    .judged_samples = 32,
    .short_names = true,
    .quantizes_constants = true,
    .runtime = "qnn",
    .rules = rules,
    .n_rules = N_RULES,
    .hooks = &hooks,
};
