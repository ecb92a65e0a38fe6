/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target openvino: the CPU plugin of OpenVINO. Its low precision transformations turn
 * a layer into an integer kernel when its data inputs and its weight have pairs, move the
 * pairs through layers that only move data, and join what is left with the layer in front.
 * Source: OpenVINO's documentation of low precision transformations; which kernels run,
 * and for how long, was read from the profiles of OpenVINO 2026.4.1 on AVX2.
 */
#include "config.h"
#include "plan/placement/formats.h"
#include "plan/placement/saturation.h"
#include "plan/placement/target.h"

#include "ground/base/host.h"
#include "graph/layers/kernels.h"
#include "graph/layers/patterns.h"

#include <string.h>

#define RULES(RULE)                                                                    \
    RULE(V1, FIXED,                                                                    \
         "A Conv, ConvTranspose, Gemm or MatMul with a constant weight has a pair on " \
         "its data input and its weight as integers.")                                 \
    RULE(V2, FIXED, "A weight has a scale for each output channel.")                   \
    RULE(V3, FIXED,                                                                    \
         "Other layers have no pair of their own: OpenVINO moves pairs through pools " \
         "and copies itself, and a pair between layers in floating point costs time.") \
    RULE(V4, AUTO,                                                                     \
         "A Gemm or MatMul stays floating point where processors lack VNNI, since "    \
         "its integer kernel is slower there.")                                        \
    RULE(V5, AUTO,                                                                     \
         "A BatchNormalization, or the Add of one constant for each channel, is "      \
         "folded into the Conv, ConvTranspose or Gemm in front of it, which "          \
         "computes the same then.")                                                    \
    RULE(V6, FIXED,                                                                    \
         "A layer whose weight cannot be divided into whole blocks stays floating "    \
         "point, since OpenVINO refuses to load it.")                                  \
    RULE(                                                                              \
        V7, AUTO,                                                                      \
        "A layer whose output is squared, as a part of a spectrum is, stays floating " \
        "point.")                                                                      \
    RULE(V8, AUTO,                                                                     \
         "A Conv whose groups have one input channel each stays floating point where " \
         "processors lack VNNI, since its integer kernel is slower there.")            \
    RULE(V9, AUTO,                                                                     \
         "A Conv whose groups have one input channel each, and whose kernel has more " \
         "than nine elements, stays floating point, since its integer kernel is "      \
         "slower.")                                                                    \
    RULE(V10, AUTO,                                                                    \
         "A Conv with strides that reads an input of the model, and multiplies each "  \
         "number of it fewer than 24 times, stays floating point, since integers "     \
         "cost more time to make than they gain.")                                     \
    RULE(V11, AUTO,                                                                    \
         "A pointwise Conv from fewer than 16 channels to fewer than 12, without "     \
         "groups, stays floating point, since its integer kernel is slower.")          \
    RULE(V12, AUTO,                                                                    \
         "A layer that reads what a ReduceMax, a ReduceMin or a GlobalMaxPool makes, " \
         "perhaps behind activations, stays floating point, since OpenVINO computes "  \
         "wrong numbers there.")                                                       \
    RULE(V13, AUTO,                                                                    \
         "A layer that reads what a pool of windows makes, and behind it a factor "    \
         "below zero, 1 - x or an absolute value, stays floating point, since "        \
         "OpenVINO computes wrong numbers there.")                                     \
    QDQI_SATURATION_RULE(RULE)

enum { RULES(QDQI_RULE_INDEX) N_RULES };

enum { FAR = 8 };           /* layers between an input of the model and a Conv */
enum { MOST_ELEMENTS = 9 }; /* of a depthwise kernel that is faster with integers */

/*
 * Making integers of an input of the model for a Conv with strides pays from LEAST_GIVEN products
 * of each number on: measured by OpenVINO 2026.4.1 with AMX, 18 take 0.72 to 0.99 of the time
 * in floating point, and 36 gain as often as they lose. A pointwise Conv from 8 channels to 8 takes
 * up to 1.18 of the float model's time with integers, one to 16 less than it. bench/README.md has
 * the tables.
 */
enum { LEAST_GIVEN = 24, LEAST_READ = 16, LEAST_MADE = 12 };

static const struct qdqi_node *
node_of(const struct planner *p, const struct qdq_layer *layer)
{
    return &p->model->graph.nodes[layer->node];
}

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
    if (rule == V12 || rule == V13) {
        *ret_reason = spec->weight_only ? "activations stay floating point"
                                        : "the result would be wrong";
        return !spec->weight_only;
    }
    if (rule >= V9 && rule <= V11 && spec->weight_only) {
        *ret_reason = "activations stay floating point";
        return false;
    }
    return rule == V4 || rule == V8 ? decide_slow(spec, ret_reason)
                                    : is_auto(spec, ret_reason);
}

static bool
folds(const struct qdq_spec *spec)
{
    return qdqi_spec_has_rule(spec, V5);
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
is_slow_product(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Gemm", "MatMul", NULL};
    return qdqi_node_is_one_of(node_of(p, layer)->proto, ops);
}

/* Returns whether the layer is a Conv whose weight has one input channel. */
static bool
has_one_input(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = node_of(p, layer);
    const int64_t *dims;
    size_t rank;
    return qdqi_node_is(node->proto, "Conv") && layer->weight_input >= 0 &&
           qdqi_tensor_dims(node->inputs[layer->weight_input], &dims, &rank) &&
           rank > 2 && dims[1] == 1;
}

static bool
is_depthwise(const struct planner *p, const struct qdq_layer *layer)
{
    return qdqi_node_int(node_of(p, layer)->proto, "group", 1) > 1 &&
           has_one_input(p, layer);
}

/* Returns whether the layer is depthwise with more than 3 x 3 elements for each channel. */
static bool
is_wide_depthwise(const struct planner *p, const struct qdq_layer *layer)
{
    const int64_t *dims;
    size_t rank;
    int64_t n = 1;
    if (!is_depthwise(p, layer) ||
        !qdqi_tensor_dims(node_of(p, layer)->inputs[layer->weight_input], &dims, &rank))
        return false;
    for (size_t i = 2; i < rank && n <= MOST_ELEMENTS; i++)
        n *= dims[i] <= MOST_ELEMENTS ? dims[i] : MOST_ELEMENTS + 1;
    return n > MOST_ELEMENTS;
}

/* Returns whether the tensor is an input of the model, perhaps behind layers that move or
   scale it. */
static bool
is_given(const struct planner *p, const struct qdqi_tensor *t)
{
    static const char *const ops[] = {"Add", "Cast",      "Div",       "Identity",
                                      "Mul", "Pad",       "Reshape",   "Squeeze",
                                      "Sub", "Transpose", "Unsqueeze", NULL};
    for (int i = 0; t && i < FAR; i++) {
        if (t->producer < 0)
            return t->is_input && t->scope == 0 && !t->is_fixed;
        const struct qdqi_node *node = &p->model->graph.nodes[t->producer];
        if (!qdqi_node_is_one_of(node->proto, ops) || node->proto->n_input == 0)
            return false;
        t = node->inputs[0];
    }
    return false;
}

/* Returns the dimensions of the weight of a Conv without groups; NULL for other layers. */
static const int64_t *
plain_conv(const struct qdqi_node *node, const struct qdq_layer *layer,
           size_t *ret_rank)
{
    const int64_t *dims;
    return qdqi_node_is(node->proto, "Conv") && layer->weight_input == 1 &&
                   qdqi_node_int(node->proto, "group", 1) == 1 &&
                   qdqi_tensor_dims(node->inputs[1], &dims, ret_rank) && *ret_rank > 2
               ? dims
               : NULL;
}

static double
count_taps(const int64_t *dims, size_t rank)
{
    double taps = 1;
    for (size_t i = 2; i < rank; i++)
        taps *= (double)dims[i];
    return taps;
}

static bool
reads_input_seldom(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = node_of(p, layer);
    size_t rank;
    const int64_t *dims = plain_conv(node, layer, &rank);
    const double strides = dims ? qdqi_strides(node) : 1;
    return strides > 1 &&
           (double)dims[0] * count_taps(dims, rank) / strides < LEAST_GIVEN &&
           is_given(p, node->inputs[0]);
}

static bool
is_narrow_pointwise(const struct planner *p, const struct qdq_layer *layer)
{
    size_t rank;
    const int64_t *dims = plain_conv(node_of(p, layer), layer, &rank);
    return dims && count_taps(dims, rank) <= 1 && dims[0] < LEAST_MADE &&
           dims[1] < LEAST_READ;
}

static bool
makes_spectrum(const struct planner *p, const struct qdq_layer *layer)
{
    return p->patterns->squared[layer->node];
}

/*
 * OpenVINO 2026.4 takes a pair into the kernel in front of it, or moves it there. Behind the
 * largest of several numbers that kernel then compares what has been rounded to 8 bits without
 * its scale, and behind a pool a factor below zero loses its sign: 0 to 17 dB are left. Both were
 * found by running small models (tests/e2e/targets/test_openvino_extremes.py).
 */
static bool
is_made_by(const bool *marked, const struct qdqi_tensor *t)
{
    return t && t->producer >= 0 && marked[t->producer];
}

/* Returns whether marked nodes make data that the layer reads, or would read. */
static bool
reads_any(const struct planner *p, const struct qdq_layer *layer, const bool *marked)
{
    const struct qdqi_node *node = node_of(p, layer);
    for (size_t i = 0; i < node->proto->n_input; i++)
        if ((int)i != layer->weight_input && is_made_by(marked, node->inputs[i]))
            return true;
    return false;
}

static bool
reads_extremes(const struct planner *p, const struct qdq_layer *layer)
{
    return reads_any(p, layer, p->patterns->extreme);
}

static bool
reads_turned(const struct planner *p, const struct qdq_layer *layer)
{
    return reads_any(p, layer, p->patterns->turned);
}

static const struct qdqi_veto vetoes[] = {
    {QDQI_VETO(V12), reads_extremes, false},
    {QDQI_VETO(V13), reads_turned, false},
    {QDQI_VETO(V4), is_slow_product, false},
    {QDQI_VETO(V7), makes_spectrum, false},
    {QDQI_VETO(V8), has_one_input, false},
    {QDQI_VETO(V9), is_wide_depthwise, false},
    {QDQI_VETO(V10), reads_input_seldom, false},
    {QDQI_VETO(V11), is_narrow_pointwise, false},
    {0},
};

/* Returns whether the spec asks for blocks that do not divide the axis of the layer's
   weight. */
static bool
has_broken_block(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = node_of(p, layer);
    const int64_t block = p->spec->weight_block, *dims;
    size_t rank;
    return p->spec->weight_granularity == QDQ_PER_BLOCK && layer->weight_input >= 0 &&
           layer->weight_axis >= 0 &&
           qdqi_tensor_dims(node->inputs[layer->weight_input], &dims, &rank) &&
           (size_t)layer->weight_axis < rank && dims[layer->weight_axis] % block != 0;
}

static const char broken_block[] = "rule:V6, the block does not divide its weight";

static const char *
hindrance(const struct planner *p, const struct qdq_layer *layer, bool wants_inputs)
{
    (void)wants_inputs;
    return has_broken_block(p, layer) ? broken_block : NULL;
}

/* --- the plan -------------------------------------------------------------- */

/* Returns whether a pair of the layer stands behind a marked node. */
static bool
has_pair_behind(const struct planner *p, const struct qdq_layer *layer,
                const bool *marked)
{
    const struct qdqi_node *node = node_of(p, layer);
    for (size_t i = 0; i < layer->n_inputs; i++)
        if (is_made_by(marked, node->inputs[layer->quantized_inputs[i]]))
            return true;
    return false;
}

static bool
lint_pair_behind_maximum(const struct planner *p, const struct qdq_layer *layer)
{
    return has_pair_behind(p, layer, p->patterns->extreme);
}

static bool
lint_pair_behind_pool(const struct planner *p, const struct qdq_layer *layer)
{
    return has_pair_behind(p, layer, p->patterns->turned);
}

static const struct qdqi_lint lints[] = {
    {QDQI_LINT(pair_behind_maximum), V12,
     "OpenVINO computes wrong numbers where a pair stands behind a ReduceMax, a "
     "ReduceMin or a GlobalMaxPool; leave the layer in floating point"},
    {QDQI_LINT(pair_behind_pool), V13,
     "OpenVINO computes wrong numbers where a pair stands behind a pool of windows and "
     "a factor below zero; leave the layer in floating point"},
    {0},
};

/* Warns of the layers that rule V6 leaves in floating point. */
static enum qdq_code
warn_blocks(struct planner *p, struct qdq_error *err)
{
    const struct qdq_layer *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < p->n_layers; i++)
        if (p->layers[i].reason == broken_block && n++ == 0)
            first = &p->layers[i];
    if (n == 0)
        return QDQ_OK;
    enum qdq_code code = qdqi_warn(
        &p->warnings, p->plan->arena, err, "block_does_not_divide", first->name,
        "%zu layer%s (%.128s%s): blocks of %lld do not divide the weight, and "
        "OpenVINO refuses such a layer, so that it stays in floating point; "
        "choose a block that divides the weight's axis",
        n, n == 1 ? "" : "s", first->name, n == 1 ? "" : ", ...",
        (long long)p->spec->weight_block);
    if (!code)
        p->warnings.rows[p->warnings.n - 1].rule = qdqi_rule_id(p, V6);
    return code;
}

static enum qdq_code
complete(struct planner *p, struct qdq_error *err)
{
    qdqi_saturation_plan(p, C7);
    return warn_blocks(p, err);
}

static void
cite(const struct planner *p, struct qdq_layer *layer)
{
    if (!qdqi_layer_is_quantized(layer)) {
        if (layer->reason == broken_block)
            layer->rules |= qdqi_rule_bit(p, V6);
        else if (!layer->rules && strcmp(layer->reason, QDQI_OFF_BY_DEFAULT) == 0)
            layer->rules |= qdqi_rule_bit(p, V3);
        return;
    }
    if (layer->weight_input >= 0 && layer->n_inputs > 0)
        layer->rules |= qdqi_rule_bit(p, V1);
    if (layer->weight_axis >= 0 && p->spec->weight_granularity == QDQ_PER_CHANNEL)
        layer->rules |= qdqi_rule_bit(p, V2);
}

/* --- formats ---------------------------------------------------------------- */

/* Returns whether OpenVINO keeps weights of the format compressed until it multiplies. */
static bool
keeps_weights(enum qdq_format format)
{
    return qdqi_is_8_bit_integer(format) || format == QDQ_FORMAT_INT4 ||
           format == QDQ_FORMAT_UINT4;
}

static enum qdq_code
warn_format(struct planner *p, const char *what, struct qdq_error *err)
{
    return qdqi_warn(&p->warnings, p->plan->arena, err, "target_format", NULL,
                     "OpenVINO's CPU plugin has no integer kernel for this format of "
                     "%s, so that pairs cost time for nothing",
                     what);
}

/* Behind quantized activations weights of int8 alone are multiplied as integers. */
static enum qdq_code
check_weights(struct planner *p, struct qdq_error *err)
{
    const enum qdq_format format = p->spec->weight_format;
    if (p->spec->weight_only)
        return keeps_weights(format) ? QDQ_OK : warn_format(p, "weights", err);
    if (format == QDQ_FORMAT_INT8)
        return QDQ_OK;
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
    return strcmp(layer->op, "MatMul") == 0 && layer->weight_input == 1 &&
           layer->weight_axis >= 0 && layer->n_inputs > 0 &&
           qdqi_tensor_dims(node_of(p, layer)->inputs[1], &dims, &rank) && rank > 2;
}

static enum qdq_code
warn_batched(struct planner *p, struct qdq_error *err)
{
    const bool fails =
        qdqi_multiplies_bytes(p->spec) && p->spec->weight_granularity != QDQ_PER_BLOCK;
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; fails && i < p->n_layers; i++) {
        if (!has_batched_scales(p, &p->layers[i]))
            continue;
        first = first ? first : p->layers[i].name;
        n++;
    }
    if (n == 0)
        return QDQ_OK;
    return qdqi_warn(
        &p->warnings, p->plan->arena, err, "target_format", first,
        "%zu MatMul, this one first, have a scale for each column of weights "
        "of three or more axes: OpenVINO runs that, and ONNX Runtime fails "
        "in its first run; weights.granularity \"tensor\" makes a model "
        "that both run",
        n);
}

static enum qdq_code
check_formats(struct planner *p, struct qdq_error *err)
{
    const struct qdq_spec *spec = p->spec;
    enum qdq_code code = qdqi_saturation_check(p, C7, err);
    if (!code && !spec->weight_only && !qdqi_is_8_bit_integer(spec->activation_format))
        code = warn_format(p, "activations", err);
    if (!code && !(code = warn_batched(p, err)))
        code = qdqi_warn_blocks(p, err);
    return code ? code : check_weights(p, err);
}

/* --- the row -------------------------------------------------------------- */

static const struct qdq_rule rules[] = {RULES(QDQI_RULE_ROW)};

static const struct qdqi_hooks hooks = {
    .decide_rule = decide_rule,
    .folds = folds,
    .fuses_biases = true,
    .is_on = is_on,
    .vetoes = vetoes,
    .hindrance = hindrance,
    .complete = complete,
    .cite = cite,
    .check_formats = check_formats,
    .lints = lints,
};

const struct qdq_target qdqi_target_openvino = {
    .name = "openvino",
    .title = "OpenVINO",
    .text = "Pairs stand on the data inputs of Conv, ConvTranspose, Gemm and MatMul, "
            "whose weights are integers.",
    .weights = QDQ_FORMAT_INT8,
    .activations = QDQ_FORMAT_UINT8,
    .storage = QDQ_STORE_DQ,
    .short_names = true,
    .recipe = QDQ_RECIPE_AUTO,
    .runtime = "openvino",
    .rules = rules,
    .n_rules = N_RULES,
    .hooks = &hooks,
};
