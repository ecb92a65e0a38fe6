/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target openvino: the CPU plugin of OpenVINO. Its low precision transformations turn
 * a layer into an integer kernel when its data inputs and its weight have pairs, move the
 * pairs through layers that only move data, and join what is left with the layer in front.
 * Source: OpenVINO's documentation of low precision transformations; which kernels run,
 * and for how long, was read from the profiles of OpenVINO 2026.4.1 on AVX2.
 */
#include "config.h"
#include "ground/base/host.h"
#include "plan/placement/formats.h"
#include "plan/placement/layer_formats.h"
#include "plan/placement/lint.h"
#include "plan/targets/openvino/openvino.h"
#include "plan/targets/targets.h"

#include "graph/layers/operators.h"
#include <stdio.h>
#include <string.h>

/* --- which rules ----------------------------------------------------------- */

static bool
is_auto(const struct qdq_spec *spec, const char **ret_reason)
{
    *ret_reason =
        spec->recipe >= QDQ_RECIPE_AUTO ? "the recipe is auto" : "the recipe is none";
    return spec->recipe >= QDQ_RECIPE_AUTO;
}

/* Decides the rules of kernels that are slow without VNNI, by the recipe and by the class of
   processors. */
static bool
decide_slow(const struct qdq_spec *spec, const char **ret_reason)
{
    const struct qdqi_host_row *host = qdqi_host_row(spec->host);
    if (!is_auto(spec, ret_reason))
        return false;
    if (spec->weight_only) {
        *ret_reason = "activations stay floating point";
        return false;
    }
    *ret_reason = host ? host->text : "the spec states no host";
    return host && host->adds_in_16_bits;
}

static bool
decide_rule(const struct qdq_spec *spec, int rule, const char **ret_reason)
{
    if (rule == C7)
        return qdqi_saturation_decide(spec, ret_reason);
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
    if ((rule >= V12 && rule <= V19) || rule == V21 || rule == V22 || rule == V26) {
        *ret_reason = spec->weight_only ? "activations stay floating point"
                                        : "the result would be wrong";
        return !spec->weight_only;
    }
    if (rule == V20) {
        *ret_reason = "the result would be wrong";
        return true;
    }
    if (rule == V24) {
        *ret_reason = "the layers would stay in floating point";
        return true;
    }
    if (rule >= V9 && rule <= V11 && spec->weight_only) {
        *ret_reason = "activations stay floating point";
        return false;
    }
    return rule == V4 || rule == V8 ? decide_slow(spec, ret_reason)
                                    : is_auto(spec, ret_reason);
}

/* The rules of kernels that are slower with integers. */
static const size_t slow_kernels[] = {V4, V8, V9, V10, V11};
enum { N_SLOW = sizeof slow_kernels / sizeof *slow_kernels };

static bool
weighs(const struct qdq_spec *spec)
{
    for (size_t i = 0; i < N_SLOW; i++)
        if (qdq_spec_has_rule(spec, slow_kernels[i]))
            return true;
    return false;
}

static void
set_weighing(struct qdq_spec *spec, const struct qdq_spec *like)
{
    for (size_t i = 0; i < N_SLOW; i++)
        qdq_spec_switch_rule(spec, slow_kernels[i],
                             like && qdq_spec_has_rule(like, slow_kernels[i]));
}

static bool
folds(const struct qdq_spec *spec)
{
    return qdq_spec_has_rule(spec, V5);
}

static bool
einsums(const struct qdq_spec *spec)
{
    return qdq_spec_has_rule(spec, V25);
}

static unsigned
ties(const struct qdq_spec *spec)
{
    return qdq_spec_has_rule(spec, P5) ? QDQI_TIES_TABLES : 0;
}

/* --- which layers ---------------------------------------------------------- */

static bool
is_on(const struct planner *p, const struct qdqi_class *cls)
{
    static const char *const ops[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
    (void)p;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (cls->kind == QDQ_WEIGHTED && strcmp(cls->support.op, ops[i]) == 0)
            return true;
    return false;
}

static bool
wants_whole_blocks(const struct planner *p)
{
    return qdqi_rule_is_on(p, V24);
}

/* Returns whether the spec asks for blocks that do not divide the axis of the layer's
   weight. */
static bool
has_broken_block(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const struct qdq_weights *w = &layer->format->weights;
    const int64_t *dims;
    size_t rank;
    return w->granularity == QDQ_PER_BLOCK && layer->weight_input >= 0 &&
           layer->weight_axis >= 0 &&
           qdqi_tensor_dims(node->inputs[layer->weight_input], &dims, &rank) &&
           (size_t)layer->weight_axis < rank &&
           dims[layer->weight_axis] % w->block != 0 &&
           (!wants_whole_blocks(p) ||
            qdqi_block_of(p, layer, node->inputs[layer->weight_input]) > 0);
}

/* Returns whether OpenVINO would have to compile a pair behind a Concat of rows, in front of a
   product of matrices (faults.h). */
static bool
has_joined_rows(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Gemm", "MatMul", NULL};
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    if (!qdqi_rule_is_on(p, V15) || !qdqi_node_is_one_of(node->proto, ops))
        return false;
    for (size_t i = 0; i < node->proto->n_input; i++)
        if ((int)i != layer->weight_input &&
            qdqi_reads_joined_rows(&p->model->graph, node->inputs[i],
                                   qdqi_rule_is_on(p, V22)))
            return true;
    return false;
}

/* Returns whether the layer is an AveragePool that counts the zeros around its input
   (faults.h). */
static bool
counts_padding(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    return qdqi_rule_is_on(p, V16) && qdqi_node_is(node->proto, "AveragePool") &&
           qdqi_node_int(node->proto, "count_include_pad", 0);
}

/* Returns whether the layer is a ConvTranspose whose weight was given as uint8, which V18 cannot store otherwise
   (faults.h). */
static bool
has_given_uint8(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const struct qdqi_node *maker =
        qdqi_node_is(node->proto, "ConvTranspose") && node->proto->n_input > 1
            ? qdqi_maker_of(&p->model->graph, node->inputs[1])
            : NULL;
    return qdqi_rule_is_on(p, V18) && maker &&
           qdqi_node_is(maker->proto, "DequantizeLinear") && maker->inputs[0] &&
           maker->inputs[0]->is_fixed && maker->inputs[0]->dtype == QDQI_UINT8;
}

static const char *
hindrance(const struct planner *p, struct qdq_layer *layer, bool wants_inputs)
{
    if (has_broken_block(p, layer)) {
        qdqi_rule_cite(layer, V6);
        return "rule:V6, the block does not divide its weight";
    }
    if (wants_inputs && has_joined_rows(p, layer)) {
        qdqi_rule_cite(layer, V15);
        return "rule:V15, OpenVINO cannot compile a pair behind a Concat with a "
               "constant";
    }
    if (wants_inputs && has_given_uint8(p, layer)) {
        qdqi_rule_cite(layer, V18);
        return "rule:V18, OpenVINO computes wrong numbers of a given uint8 weight";
    }
    if (wants_inputs && counts_padding(p, layer)) {
        qdqi_rule_cite(layer, V16);
        return "rule:V16, OpenVINO computes wrong numbers of windows that count "
               "padding";
    }
    return NULL;
}

/* Returns whether a weight has a scale for each channel. */
static bool
is_per_channel(const struct planner *p, const struct qdq_layer *layer, int weight_input,
               size_t rank)
{
    (void)weight_input;
    return rank < 3 || !qdqi_rule_is_on(p, V19) || strcmp(layer->op, "MatMul") != 0;
}

/* --- the plan -------------------------------------------------------------- */

static bool
cites_blocks(const struct planner *p, const struct qdq_layer *layer)
{
    (void)p;
    return qdq_rule_set_has(&layer->rules, V6);
}

/* Warns of the layers that rule V6 leaves in floating point. */
static enum qdq_code
warn_blocks(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_layer_count count = qdqi_count_layers(p, cites_blocks);
    const struct qdq_layer *first = p->layers;
    char text[256];
    while (count.n > 0 && !cites_blocks(p, first))
        first++;
    if (count.n == 0)
        return QDQ_OK;
    snprintf(text, sizeof text,
             "blocks of %lld do not divide the weight, and OpenVINO refuses such a "
             "layer, so that it stays in floating point; choose a block that divides "
             "the weight's axis",
             (long long)first->format->weights.block);
    enum qdq_code code = qdqi_warn_count(p, &count, "block_does_not_divide", text, err);
    if (!code)
        p->warnings.rows[p->warnings.n - 1].rule = qdqi_rule_id(p, V6);
    return code;
}

/* Stores int8 activations as uint8, and uint8 weights of ConvTranspose as int8, where OpenVINO
   computes wrong numbers of them (faults.h). */
static void
choose_formats(struct planner *p)
{
    for (size_t i = 0; qdqi_rule_is_on(p, V17) && i < p->plan->view.n_tensors; i++)
        if (p->plan->activations[i].format == QDQI_TO_INT8)
            p->plan->activations[i].format = QDQI_TO_UINT8;
    for (size_t i = 0; qdqi_rule_is_on(p, V18) && i < p->n_layers; i++) {
        struct qdq_layer *layer = &p->layers[i];
        if (layer->weight_input < 0 || layer->n_inputs == 0 ||
            strcmp(layer->op, "ConvTranspose") != 0 ||
            p->plan->weights[layer->weight_row].format != QDQI_TO_UINT8)
            continue;
        p->plan->weights[layer->weight_row].format = QDQI_TO_INT8;
        qdqi_rule_cite(layer, V18);
    }
}

static void
settle(struct planner *p)
{
    qdqi_tied_leave(p, P5);
}

static enum qdq_code
complete(struct planner *p, struct qdq_error *err)
{
    choose_formats(p);
    qdqi_tied_plan(p, (struct qdqi_tied_rules){.table = P2, .forms = P5});
    qdqi_saturation_plan(p, C7);
    enum qdq_code code =
        qdqi_rule_is_on(p, P4) ? qdqi_masked_sums_find(p, true, err) : QDQ_OK;
    return code ? code : warn_blocks(p, err);
}

static void
cite(const struct planner *p, struct qdq_layer *layer)
{
    (void)p;
    if (!qdqi_layer_is_quantized(layer)) {
        if (layer->reason_kind == QDQ_REASON_OFF_BY_DEFAULT)
            qdqi_rule_cite(layer, V3);
        return;
    }
    if (layer->weight_input >= 0 && layer->n_inputs > 0)
        qdqi_rule_cite(layer, V1);
    if (layer->weight_input < 0 ||
        layer->format->weights.granularity != QDQ_PER_CHANNEL)
        return;
    if (layer->weight_axis >= 0)
        qdqi_rule_cite(layer, V2);
    else if (strcmp(layer->op, "MatMul") == 0 && qdqi_rule_is_on(p, V19))
        qdqi_rule_cite(layer, V19);
}

/* --- formats ---------------------------------------------------------------- */

/* Returns whether OpenVINO keeps weights of the format compressed until it multiplies. */
static bool
keeps_weights(enum qdq_format format)
{
    return qdqi_is_8_bit_integer(format) || format == QDQ_FORMAT_INT4 ||
           format == QDQ_FORMAT_INT3 || format == QDQ_FORMAT_UINT4 ||
           format == QDQ_FORMAT_MXFP4 || format == QDQ_FORMAT_NVFP4;
}

static enum qdq_code
warn_format(struct planner *p, const char *what, struct qdq_error *err)
{
    return qdqi_warn(&p->warnings, p->plan->arena, err, "target_format", NULL,
                     "OpenVINO's CPU plugin has no integer kernel for this format of "
                     "%s, so that pairs cost time for nothing",
                     what);
}

/* Returns whether OpenVINO computes with weights of the format as they are. */
static bool
is_kept(const struct planner *p, enum qdq_format format)
{
    return p->spec->weight_only ? keeps_weights(format) : format == QDQ_FORMAT_INT8;
}

/* Returns whether OpenVINO 2026.4 refuses a file with weights of the format. */
static bool
is_refused(enum qdq_format format)
{
    return format == QDQ_FORMAT_INT2 || format == QDQ_FORMAT_UINT2 ||
           format == QDQ_FORMAT_MXFP6;
}

static const char *
refusal(const struct planner *p, const struct qdq_layer *layer)
{
    (void)p;
    return layer->weight_input >= 0 && is_refused(layer->format->weights.format)
               ? "OpenVINO 2026.4 does not read weights of int2, uint2 and mxfp6, and "
                 "refuses the model: choose int4, mxfp4 or mxfp8"
               : NULL;
}

static enum qdq_code
warn_refused(struct planner *p, struct qdq_error *err)
{
    const char *why = qdqi_first_refusal(p);
    return why ? qdqi_warn(&p->warnings, p->plan->arena, err, "target_format", NULL,
                           "%s", why)
               : QDQ_OK;
}

/* Behind quantized activations weights of int8 alone are multiplied as integers. */
static enum qdq_code
check_weights(struct planner *p, struct qdq_error *err)
{
    enum qdq_format format = p->plan->format.weights.format;
    for (size_t i = 0; i < p->n_layers && is_kept(p, format); i++)
        if (p->layers[i].weight_input >= 0)
            format = p->layers[i].format->weights.format;
    if (is_kept(p, format))
        return QDQ_OK;
    if (p->spec->weight_only)
        return warn_format(p, "weights", err);
    return qdqi_warn(&p->warnings, p->plan->arena, err, "target_format", NULL,
                     "OpenVINO's CPU plugin multiplies weights of int8 alone with "
                     "quantized activations, and computes those of this format in "
                     "float32: choose int8%s",
                     keeps_weights(format) ? ", or \"activations\": \"none\"" : "");
}

/* Returns whether the layer is a MatMul that has a scale for each column of a weight of three or
   more axes, which ONNX Runtime cannot run and OpenVINO can. */
static bool
has_batched_scales(const struct planner *p, const struct qdq_layer *layer)
{
    const int64_t *dims;
    size_t rank;
    return qdqi_layer_multiplies_bytes(p, layer) &&
           layer->format->weights.granularity != QDQ_PER_BLOCK &&
           strcmp(layer->op, "MatMul") == 0 && layer->weight_input == 1 &&
           layer->weight_axis >= 0 && layer->n_inputs > 0 &&
           qdqi_tensor_dims(qdqi_node_of(p, layer)->inputs[1], &dims, &rank) &&
           rank > 2;
}

static enum qdq_code
warn_batched(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_layer_count count = qdqi_count_layers(p, has_batched_scales);
    if (count.n == 0)
        return QDQ_OK;
    return qdqi_warn(
        &p->warnings, p->plan->arena, err, "target_format", count.first,
        "%zu MatMul, this one first, have a scale for each column of weights "
        "of three or more axes: OpenVINO runs that, and ONNX Runtime fails "
        "in its first run; weights.granularity \"tensor\" makes a model "
        "that both run",
        count.n);
}

/* Returns whether activations are not integers of 8 bits. */
static bool
has_wide_activations(const struct planner *p)
{
    bool wide = !qdqi_has_byte_activations(&p->plan->format);
    for (size_t i = 0; i < p->n_layers && !wide; i++)
        wide = !qdqi_has_byte_activations(p->layers[i].format);
    return wide;
}

/* Returns whether ONNX Runtime makes an integer kernel of the layer, and its weight has blocks.
   It makes none of a Gemm with blocks. */
static bool
fails_by_blocks(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Conv", "MatMul", NULL};
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    return qdqi_layer_multiplies_bytes(p, layer) && layer->n_inputs > 0 &&
           layer->weight_input >= 0 && qdqi_node_is_one_of(node->proto, ops) &&
           qdqi_block_of(p, layer, node->inputs[layer->weight_input]) > 0;
}

/* Warns of layers that multiply integers of 8 bits whose weights have blocks: ONNX Runtime, by which results
   may be tried, has no integer kernels for them. */
static enum qdq_code
warn_blocks_of_bytes(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_layer_count count = qdqi_count_layers(p, fails_by_blocks);
    return qdqi_warn_count(
        p, &count, "target_format",
        "ONNX Runtime fails in its first run of 8-bit weights in blocks behind 8-bit "
        "activations: choose another granularity, or \"activations\": \"none\"",
        err);
}

static enum qdq_code
check_formats(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = qdqi_saturation_check(p, C7, err);
    if (!code && !p->spec->weight_only && has_wide_activations(p))
        code = warn_format(p, "activations", err);
    if (!code)
        code = warn_refused(p, err);
    if (!code && !(code = warn_batched(p, err)) &&
        !(code = warn_blocks_of_bytes(p, err)))
        code = qdqi_openvino_warn_given(p, err);
    return code ? code : check_weights(p, err);
}

/* --- the row -------------------------------------------------------------- */

static const struct qdq_rule rules[] = {OPENVINO_RULES(QDQI_RULE_ROW)};

static const struct qdqi_hooks hooks = {
    .decide_rule = decide_rule,
    .weighs = weighs,
    .set_weighing = set_weighing,
    .folds = folds,
    .reform = qdqi_openvino_reform,
    .einsums = einsums,
    .ties = ties,
    .least_opset = qdqi_openvino_least_opset,
    .fuses_biases = true,
    .begin = qdqi_openvino_begin,
    .is_on = is_on,
    .vetoes = qdqi_openvino_vetoes,
    .hindrance = hindrance,
    .is_per_channel = is_per_channel,
    .wants_whole_blocks = wants_whole_blocks,
    .settle = settle,
    .complete = complete,
    .cite = cite,
    .refusal = refusal,
    .check_formats = check_formats,
    .lints = qdqi_openvino_lints,
};

const struct qdq_target qdqi_target_openvino = {
    .name = "openvino",
    .loaded_by = "compile_model",
    .title = "OpenVINO",
    .text = "Pairs stand on the data inputs of Conv, ConvTranspose, Gemm and MatMul, "
            "whose weights are integers.",
    .weights = QDQ_FORMAT_INT8,
    .activations = QDQ_FORMAT_UINT8,
    .storage = QDQ_STORE_DQ,
    .measures_if_asked = true,
    .short_names = true,
    .signed_scales = true,
    .recipe = QDQ_RECIPE_AUTO,
    .runtime = "openvino",
    .rules = rules,
    .n_rules = N_RULES,
    .hooks = &hooks,
};
