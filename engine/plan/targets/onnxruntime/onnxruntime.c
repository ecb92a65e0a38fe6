/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target onnxruntime. A layer becomes an integer kernel of the CPU provider when
 * all its inputs and outputs have pairs and every reader of a tensor reads it from its
 * pair. Layers that only move data share the scale of their input. Biases become int32.
 */
#include "config.h"
#include "plan/targets/onnxruntime/onnxruntime.h"

#include "graph/layers/operators.h"
#include "plan/placement/formats.h"
#include "plan/placement/lint.h"
#include "plan/targets/onnxruntime/kernels.h"
#include "plan/targets/targets.h"

#include <string.h>

/* --- which rules ----------------------------------------------------------- */

/* Decides rules C15 to C17, and C22, by the recipe and by the formats. */
static bool
decide_gain(const struct qdq_spec *spec, const char **ret_reason)
{
    if (spec->recipe < QDQ_RECIPE_AUTO)
        *ret_reason = "the recipe is none";
    else if (!spec->dynamic &&
             (spec->weight_only || !qdqi_spec_has(spec, qdqi_has_byte_activations)))
        *ret_reason = "there are integer kernels of int8 and uint8 activations alone";
    else {
        *ret_reason = spec->recipe == QDQ_RECIPE_AUTO ? "the recipe is auto"
                                                      : "the recipe is more than none";
        return true;
    }
    return false;
}

/* Decides rules C18 and C25 by the recipe and by the format of weights. */
static bool
decide_tables(const struct qdq_spec *spec, const char **ret_reason)
{
    if (spec->recipe < QDQ_RECIPE_AUTO)
        *ret_reason = "the recipe is none";
    else if (!qdqi_spec_has(spec, qdqi_onnxruntime_stores_tables))
        *ret_reason = "the rule is of weights that are stored as integers of 8 bits, "
                      "without blocks";
    else {
        *ret_reason = "the recipe is more than none";
        return true;
    }
    return false;
}

/* Decides rules C24 and C35. */
static bool
decide_decoder(const struct qdq_spec *spec, const char **ret_reason)
{
    const bool has_form = spec->decoder != QDQ_DECODER_AS_IS;
    *ret_reason = has_form ? "output.decoder states a form" : "output.decoder is none";
    return has_form;
}

/* Decides rule C21 by what is stored. */
static bool
decide_forms(const struct qdq_spec *spec, const char **ret_reason)
{
    if (!spec->weight_only || spec->dynamic)
        *ret_reason = "activations are quantized, too";
    else {
        *ret_reason = "the layers would dequantize their weights in each run";
        return true;
    }
    return false;
}

static bool
decide_rule(const struct qdq_spec *spec, int rule, const char **ret_reason)
{
    if (rule == P1 || rule == P3 || rule == P7)
        return qdqi_plain_forms_decide(ret_reason);
    if (rule == P2 || rule == P5)
        return qdqi_tied_decide(spec, ret_reason);
    if (rule == P6)
        return qdqi_zero_points_decide(spec, ret_reason);
    if (rule == P8)
        return qdqi_sampled_moments_decide(spec, ret_reason);
    if (rule == P4) {
        *ret_reason = QDQI_WHY_MASKS;
        return true;
    }
    if (rule == C19 || rule == C20 || rule == C23 || rule == C27 || rule == C33) {
        *ret_reason =
            rule == C23 ? "the result would not run" : "the result would be wrong";
        return true;
    }
    switch (rule) {
    case C7:
        return qdqi_saturation_decide(spec, ret_reason);
    case C18:
    case C25:
        return decide_tables(spec, ret_reason);
    case C26:
    case C28:
        *ret_reason = spec->recipe < QDQ_RECIPE_AUTO ? "the recipe is none"
                                                     : "the result would be wrong";
        return spec->recipe >= QDQ_RECIPE_AUTO;
    case C21:
        return decide_forms(spec, ret_reason);
    case C29:
    case C32:
        *ret_reason = spec->recipe < QDQ_RECIPE_AUTO
                          ? "the recipe is none"
                          : "such layers can be quantized then";
        return spec->recipe >= QDQ_RECIPE_AUTO;
    case C24:
    case C35:
        return decide_decoder(spec, ret_reason);
    case C30:
        return qdqi_kernel_blocks_decide(spec, ret_reason);
    default:
        return decide_gain(spec, ret_reason);
    }
}

/* --- before the plan ------------------------------------------------------- */

static bool
folds(const struct qdq_spec *spec)
{
    return qdq_spec_has_rule(spec, C17);
}

static bool
einsums(const struct qdq_spec *spec)
{
    return qdq_spec_has_rule(spec, C29);
}

static bool
uncarries(const struct qdq_spec *spec)
{
    return qdq_spec_has_rule(spec, C32);
}

/* With weights alone a MatMulNBits is made of no weight that several layers read, and of no Gemm with
   one. */
static unsigned
ties(const struct qdq_spec *spec)
{
    const bool alone = spec->weight_only && !spec->dynamic;
    if (!qdq_spec_has_rule(spec, P5))
        return 0;
    return QDQI_TIES_TABLES | (alone ? QDQI_TIES_WEIGHTS | QDQI_TIES_AS_MATMUL : 0);
}

/* --- which layers, and how ------------------------------------------------ */

/* Returns whether there is an integer kernel for the layers of a class. */
static bool
is_on(const struct planner *p, const struct qdqi_class *cls)
{
    if (cls->is_table)
        return qdqi_rule_is_on(p, C18);
    if (cls->is_recurrent)
        return p->spec->dynamic;
    return qdqi_has_kernel(cls->support.op) &&
           !(cls->is_operand && p->spec->weight_only);
}

/* Returns whether the weight has a scale for each channel. The integer MatMul
   accepts a scale for each column only for a matrix on the right, and the LSTM one zero
   point for all gates. */
static bool
is_per_channel(const struct planner *p, const struct qdq_layer *layer, int weight_input,
               size_t rank)
{
    if (p->graph->classes[layer->node]->is_recurrent)
        return layer->format->weights.format == QDQ_FORMAT_INT8;
    return strcmp(layer->op, "MatMul") != 0 || (weight_input == 1 && rank == 2) ||
           (p->spec->weight_only && !p->spec->dynamic);
}

/*
 * Returns whether the layer's weight has the format of the other operand. That holds
 * for the constant operand of Add and Mul and for a constant on the left of a MatMul.
 */
static bool
is_operand(const struct planner *p, const struct qdq_layer *layer)
{
    return p->graph->classes[layer->node]->is_operand ||
           (!p->spec->weight_only && layer->weight_input == 0 &&
            qdqi_node_is(p->model->graph.nodes[layer->node].proto, "MatMul"));
}

static void
settle(struct planner *p)
{
    qdqi_tied_leave(p, P5);
}

static bool
weighs(const struct qdq_spec *spec)
{
    return qdq_spec_has_rule(spec, C15);
}

static void
set_weighing(struct qdq_spec *spec, const struct qdq_spec *like)
{
    qdq_spec_switch_rule(spec, C15, like && weighs(like));
}

/* Returns whether the layer is quantized only if its neighbours are: it moves data
   or clips. */
static bool
follows(const struct qdq_layer *layer)
{
    enum qdqi_role role = qdqi_kernel_role(layer->op);
    return role == QDQI_MOVES || role == QDQI_CLIPS;
}

/* --- the rules that a decision follows ------------------------------------- */

static void
cite(const struct planner *p, struct qdq_layer *layer)
{
    enum qdqi_role role = qdqi_kernel_role(layer->op);
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    if (qdqi_has_kernel(layer->op) && layer->n_inputs > 0)
        qdqi_rule_cite(layer, C1);
    if (qdqi_has_kernel(layer->op) && layer->n_outputs > 0)
        qdqi_rule_cite(layer, C2);
    if (role == QDQI_CLIPS && layer->n_inputs == 0 && layer->n_outputs > 0)
        qdqi_rule_cite(layer, C6);
    if (qdqi_is_product(layer->op) && layer->weight_axis >= 0)
        qdqi_rule_cite(layer, C9);
    if (layer->weight_input >= 0 && p->graph->classes[layer->node]->is_table)
        qdqi_rule_cite(layer, C18);
    if (role == QDQI_UNIT && layer->n_outputs > 0)
        qdqi_rule_cite(layer, C13);
    if (role == QDQI_MOVES && layer->n_outputs > 0 &&
        qdqi_map_get(p->outputs.leaders,
                     node->outputs[layer->quantized_outputs[0]]->name))
        qdqi_rule_cite(layer, C14);
}

static bool
is_clipping(const char *op)
{
    return qdqi_kernel_role(op) == QDQI_CLIPS;
}

/* --- formats -------------------------------------------------------------- */

static bool
is_float8(enum qdq_format format)
{
    return format == QDQ_FORMAT_FLOAT8E4M3FN || format == QDQ_FORMAT_FLOAT8E5M2;
}

/* Returns whether the runtime makes an integer kernel of the layer whatever its weight's format is,
   behind activations of 8-bit integers. It makes none of a Gemm or Conv whose elements of `bits` bits lie
   in blocks. */
static bool
takes_weight(const struct planner *p, const struct qdq_layer *layer, int bits)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const bool has_blocks =
        qdqi_block_of(p, layer, node->inputs[layer->weight_input]) > 0;
    if (layer->n_inputs == 0 ||
        !qdqi_is_8_bit_integer(layer->format->activations.format))
        return false;
    if (has_blocks && (qdqi_node_is(node->proto, "Gemm") ||
                       (bits == 2 && qdqi_node_is(node->proto, "Conv"))))
        return false;
    return bits == 8 || qdqi_is_product(layer->op);
}

/* Returns why ONNX Runtime does not load the layer's weight with its default optimizations
   (faults.h), or NULL. */
static const char *
weight_refusal(const struct planner *p, const struct qdq_layer *layer)
{
    const enum qdq_format format = layer->format->weights.format;
    const int bits = qdqi_format_row((int)format)->bits;
    if (format == QDQ_FORMAT_FLOAT4E2M1)
        return "weights of float4e2m1, for which it has no kernel: choose int4";
    if (qdqi_format_row((int)format)->block > 0)
        return "weights of mxfp4, mxfp6, mxfp8 or nvfp4, for which it has no kernel: "
               "choose int4 or float8e4m3fn";
    if (is_float8(format) && takes_weight(p, layer, bits))
        return "weights of 8-bit floats behind activations of 8-bit integers: choose "
               "int8 "
               "weights, int16 activations or \"activations\": \"none\"";
    if (bits == 2 && takes_weight(p, layer, bits))
        return "weights of 2 bits behind activations of 8-bit integers: choose int4 "
               "weights, int16 activations or \"activations\": \"none\"";
    return NULL;
}

static const char *
refusal(const struct planner *p, const struct qdq_layer *layer)
{
    const char *why = layer->weight_input >= 0 ? weight_refusal(p, layer) : NULL;
    if (why || layer->n_inputs == 0 || !is_float8(layer->format->activations.format))
        return why;
    return "activations of 8-bit floats, whose pairs it takes for those of integers: "
           "choose uint8, int8 or int16, or load the model with ORT_ENABLE_BASIC";
}

/* The latest ones that version 1.31 loads; it refuses the file of a later one. */
enum { OPSET_LATEST = 26, IR_LATEST = 13 };

static enum qdq_code
check_opset(struct planner *p, struct qdq_error *err)
{
    const int64_t opset = qdqi_model_opset(p->model->proto);
    const int64_t ir = p->model->proto->ir_version;
    if (opset <= OPSET_LATEST && ir <= IR_LATEST)
        return QDQ_OK;
    return qdqi_warn(&p->warnings, p->plan->arena, err, "target_format", NULL,
                     "ONNX Runtime 1.31 does not load a file of opset %lld and IR "
                     "version %lld, which the result has: export the model with opset "
                     "%d and IR version %d, or older ones",
                     (long long)opset, (long long)ir, OPSET_LATEST, IR_LATEST);
}

/* Warns of layers of 2 bits that the runtime packs wrongly, where rule C26 leaves them as they are. */
static enum qdq_code
warn_open_bytes(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_layer_count count =
        qdqi_count_layers(p, qdqi_onnxruntime_has_open_bytes);
    return qdqi_warn_count(
        p, &count, "target_format",
        "onnxruntime 1.31 packs weights of 2 bits wrongly where their "
        "columns are no multiple of 4, and computes noise: give the "
        "layer 4 bits, or leave it in floating point",
        err);
}

static enum qdq_code
check_formats(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = qdqi_saturation_check(p, C7, err);
    if (!code)
        code = check_opset(p, err);
    if (!code)
        code = qdqi_onnxruntime_warn_given(p, err);
    if (!code)
        code = warn_open_bytes(p, err);
    const char *what = qdqi_first_refusal(p);
    return code || !what ? code
                         : qdqi_warn(&p->warnings, p->plan->arena, err, "target_format",
                                     NULL, "ONNX Runtime 1.31 does not load %s", what);
}

/* --- the row -------------------------------------------------------------- */

static const struct qdq_rule rules[] = {ONNXRUNTIME_RULES(QDQI_RULE_ROW)};

static const struct qdqi_hooks hooks = {
    .decide_rule = decide_rule,
    .folds = folds,
    .reform = qdqi_onnxruntime_reform,
    .einsums = einsums,
    .uncarries = uncarries,
    .ties = ties,
    .least_opset = qdqi_onnxruntime_least_opset,
    .classes = qdqi_onnxruntime_classes,
    .n_classes = QDQI_N_ONNXRUNTIME_CLASSES,
    .begin = qdqi_gain_begin,
    .is_on = is_on,
    .must_read_raw = qdqi_onnxruntime_must_read_raw,
    .hindrance = qdqi_onnxruntime_hindrance,
    .is_per_channel = is_per_channel,
    .is_operand = is_operand,
    .settle = settle,
    .decide_outputs = qdqi_onnxruntime_decide_outputs,
    .complete = qdqi_onnxruntime_complete,
    .weighs = weighs,
    .set_weighing = set_weighing,
    .follows = follows,
    .has_kernel = qdqi_has_kernel,
    .is_clipping = is_clipping,
    .cite = cite,
    .refusal = refusal,
    .check_formats = check_formats,
};

const struct qdq_target qdqi_target_onnxruntime = {
    .name = "onnxruntime",
    .loaded_by = "InferenceSession",
    .title = "ONNX Runtime",
    .text = "Pairs stand on all tensors that the integer kernels of the CPU provider "
            "read and write.",
    .weights = QDQ_FORMAT_INT8,
    .activations = QDQ_FORMAT_UINT8,
    .storage = QDQ_STORE_DQ,
    .short_names = true,
    .has_decoder_form = true,
    .signed_scales = true,
    .recipe = QDQ_RECIPE_AUTO,
    .has_kernels = true,
    .has_dynamic = true,
    .runtime = "onnxruntime",
    .quantizes_constants = true,
    .rules = rules,
    .n_rules = N_RULES,
    .hooks = &hooks,
};
