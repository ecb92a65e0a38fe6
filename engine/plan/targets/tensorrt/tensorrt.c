/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target tensorrt: pairs on inputs and weights, placed by TensorRT's published
 * rules for explicit quantization. The rows of ground/tbl/layers.h say which layers are
 * quantized by default.
 */
#include "config.h"
#include "plan/targets/tensorrt/tensorrt.h"

#include "graph/layers/operators.h"
#include "plan/targets/targets.h"
#include "plan/targets/tensorrt/patterns.h"

#include <string.h>

static const struct qdqi_class *
class_of(const struct planner *p, const struct qdq_layer *layer)
{
    return p->graph->classes[layer->node];
}

static bool
has_weight(const struct planner *p, const struct qdq_layer *layer)
{
    return class_of(p, layer)->kind == QDQ_WEIGHTED;
}

/* Returns whether the layer itself computes in int8: it has a weight, or multiplies
   two computed tensors. */
static bool
is_product(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"MatMul", "Gemm", "Conv", "ConvTranspose", NULL};
    return has_weight(p, layer) ||
           qdqi_node_is_one_of(qdqi_node_of(p, layer)->proto, ops);
}

/* --- conditions of the rules ----------------------------------------------- */

static bool
pooling_alone(const struct planner *p, const struct qdq_layer *layer)
{
    return qdqi_is_pooling(p->graph, qdqi_node_of(p, layer)) &&
           !qdqi_patterns_of(p)->feeds_int8[layer->node];
}

static bool
int8_into_float(const struct planner *p, const struct qdq_layer *layer)
{
    return !is_product(p, layer) &&
           !qdqi_is_pooling(p->graph, qdqi_node_of(p, layer)) &&
           !qdqi_patterns_of(p)->feeds_int8[layer->node];
}

static bool
norm_or_gelu(const struct planner *p, const struct qdq_layer *layer)
{
    return qdqi_is_norm_or_gelu(p->graph, qdqi_node_of(p, layer));
}

static bool
output_layer(const struct planner *p, const struct qdq_layer *layer)
{
    return !is_product(p, layer) && qdqi_patterns_of(p)->makes_output[layer->node];
}

/* Returns the rank of the weight, and its shape in *ret, if it is constant and has
   at least `least` axes; else 0. */
static size_t
weight_dims(const struct planner *p, const struct qdq_layer *layer, size_t least,
            const int64_t **ret)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    size_t rank = 0;
    int w = has_weight(p, layer) ? qdqi_weight_input(class_of(p, layer), node) : -1;
    return qdqi_input_is_constant(node, w) &&
                   qdqi_tensor_dims(node->inputs[w], ret, &rank) && rank >= least
               ? rank
               : 0;
}

/* channels, rows or columns below which a layer counts as small */
enum { SMALL_SIDE = 16 };

/*
 * Returns whether a Conv of few channels has a fast kernel nonetheless. It has one for
 * a square kernel over multiples of 8 channels, with 16 on one side or at the network's
 * input, and for a depthwise kernel of size 3 or more.
 */
static bool
is_fast_though_small(const struct planner *p, const struct qdqi_node *node,
                     const int64_t *dims, size_t rank)
{
    int64_t out = dims[0], in = dims[1], least = INT64_MAX, most = 0;
    for (size_t i = 2; i < rank; i++) {
        least = dims[i] < least ? dims[i] : least;
        most = dims[i] > most ? dims[i] : most;
    }
    if (qdqi_node_int(node->proto, "group", 1) > 1)
        return out % 8 == 0 && least >= 3;
    bool reads_input = !qdqi_layer_producer(p->graph, node, 0);
    return (out % 8 == 0 || in % 8 == 0) && least == most &&
           (reads_input || (out > in ? out : in) >= SMALL_SIDE);
}

static bool
small_channels(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const int64_t *dims;
    size_t rank =
        qdqi_node_is(node->proto, "Conv") ? weight_dims(p, layer, 3, &dims) : 0;
    return rank > 0 && (dims[0] < SMALL_SIDE || dims[1] < SMALL_SIDE) &&
           !is_fast_though_small(p, node, dims, rank);
}

static bool
small_matmul(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Gemm", "MatMul", NULL};
    const int64_t *dims;
    size_t rank = qdqi_node_is_one_of(qdqi_node_of(p, layer)->proto, ops)
                      ? weight_dims(p, layer, 1, &dims)
                      : 0;
    return rank == 1 ||
           (rank > 1 && (dims[rank - 1] < SMALL_SIDE || dims[rank - 2] < SMALL_SIDE));
}

static bool
attention(const struct planner *p, const struct qdq_layer *layer)
{
    return qdqi_patterns_of(p)->attention[layer->node] >= QDQI_ATTENTION_LONG;
}

/* Returns whether a Conv multiplies each place by itself: its kernel has size 1, nothing is added at the borders,
   and it has one group. */
static bool
is_pointwise_conv(const struct qdqi_node *node)
{
    const int64_t *dims;
    size_t rank;
    if (!node || !qdqi_node_is(node->proto, "Conv") ||
        qdqi_node_int(node->proto, "group", 1) != 1 ||
        !qdqi_input_is_constant(node, 1) ||
        !qdqi_tensor_dims(node->inputs[1], &dims, &rank) || rank < 3)
        return false;
    for (size_t i = 2; i < rank; i++)
        if (dims[i] != 1)
            return false;
    const Onnx__AttributeProto *pads = qdqi_node_attribute(node->proto, "pads");
    for (size_t i = 0; pads && i < pads->n_ints; i++)
        if (pads->ints[i] != 0)
            return false;
    return true;
}

/* Returns whether the model may compute one sample at a time: no input has more of them. */
static bool
may_have_one_sample(const struct qdq_model_info *model)
{
    for (size_t i = 0; i < model->n_inputs; i++)
        if (model->inputs[i].rank == 0 || model->inputs[i].dims[0].value > 1)
            return false;
    return true;
}

/* Returns whether what the node reads is one place, as a global pool leaves it, behind at most so many nodes. */
static bool
reads_one_place(const struct planner *p, const struct qdqi_node *node, int nodes)
{
    static const char *const pools[] = {"GlobalAveragePool", "GlobalMaxPool",
                                        "GlobalLpPool", NULL};
    const struct qdqi_node *from = qdqi_layer_producer(p->graph, node, 0);
    if (from && qdqi_is_swish(p->graph, from))
        return nodes > 0 && reads_one_place(p, from, nodes - 1);
    return from &&
           (qdqi_node_is_one_of(from->proto, pools) ||
            (nodes > 0 && (is_pointwise_conv(from) || qdqi_is_pointwise(from)) &&
             reads_one_place(p, from, nodes - 1)));
}

/* A Conv of size 1 with at most 4 input channels, over one place of one sample: seen with channels from 1 to 8, with
   4 to 256 output channels, behind a swish, a Relu and nothing; two places, or four samples, are int8. */
static bool
one_place(const struct planner *p, const struct qdq_layer *layer)
{
    enum { MOST_NODES = 8, MOST_CHANNELS = 4 };
    const int64_t *dims;
    return is_pointwise_conv(qdqi_node_of(p, layer)) &&
           weight_dims(p, layer, 3, &dims) > 0 && dims[1] <= MOST_CHANNELS &&
           may_have_one_sample(&p->graph->model->info) &&
           reads_one_place(p, qdqi_node_of(p, layer), MOST_NODES);
}

static bool
average_pool(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    return qdqi_is_pooling(p->graph, node) && !qdqi_node_is(node->proto, "MaxPool");
}

/* The rules that keep layers in floating point. */
static const struct qdqi_veto vetoes[] = {
    {QDQI_VETO(T14), pooling_alone, true},   {QDQI_VETO(T18), norm_or_gelu, false},
    {QDQI_VETO(T19), int8_into_float, true}, {QDQI_VETO(T20), output_layer, false},
    {QDQI_VETO(T22), small_channels, false}, {QDQI_VETO(T23), small_matmul, false},
    {QDQI_VETO(T24), attention, false},      {QDQI_VETO(T30), average_pool, false},
    {QDQI_VETO(T34), one_place, false},      {0},
};

/* --- weights -------------------------------------------------------------- */

static bool
is_per_channel(const struct planner *p, const struct qdq_layer *layer, int weight_input,
               size_t rank)
{
    (void)weight_input;
    (void)rank;
    return strcmp(layer->op, "ConvTranspose") != 0 || qdqi_rule_is_on(p, T3);
}

static bool
needs_weight(const struct planner *p, struct qdq_layer *layer)
{
    if (!qdqi_rule_is_on(p, T26))
        return false;
    qdqi_rule_cite(layer, T26);
    return true;
}

/* --- residual connections ------------------------------------------------- */

/* Runs the case that rule T11 stands for, before the cases of the spec. */
static enum qdq_code
run_cases(struct planner *p, struct qdq_error *err)
{
    return p->spec->mode == QDQ_MODE_FULL && qdqi_rule_is_on(p, T11)
               ? qdqi_residual_run(p, "/rules/T11", err)
               : QDQ_OK;
}

static enum qdq_code
warn_connections(struct planner *p, struct qdq_error *err)
{
    return p->spec->mode == QDQ_MODE_FULL
               ? qdqi_residual_warn(p, qdqi_rule_id(p, T11), err)
               : QDQ_OK;
}

/* --- the rules that a decision follows ------------------------------------- */

static void
cite_weighted(const struct planner *p, struct qdq_layer *layer)
{
    static const char *const with_bias[] = {"Conv", "ConvTranspose", "Gemm", NULL};
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    if (layer->n_inputs > 0 && layer->weight_input >= 0)
        qdqi_rule_cite(layer, T8);
    if (layer->weight_axis >= 0) {
        qdqi_rule_cite(layer, T2);
        if (!class_of(p, layer)->is_given)
            qdqi_rule_cite(layer, T3);
    }
    if (qdqi_node_is_one_of(node->proto, with_bias) && node->proto->n_input > 2 &&
        node->inputs[2])
        qdqi_rule_cite(layer, T5);
}

/* Returns whether the layer is an Add that has no pair on the output of a
   convolution. */
static bool
is_residual(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Add", "Sum", NULL};
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    if (layer->n_inputs == 0 || !qdqi_node_is_one_of(node->proto, ops))
        return false;
    for (int i = 0; (size_t)i < node->proto->n_input; i++)
        if (!qdqi_layer_has_pair(layer, i) &&
            qdqi_ends_conv(p->graph, qdqi_layer_producer(p->graph, node, i)))
            return true;
    return false;
}

/* Returns the rule by which a class is off by default, or QDQI_NO_RULE. */
static int
rule_of_default(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const struct qdqi_class *cls = class_of(p, layer);
    const struct qdqi_node *producer = qdqi_layer_producer(p->graph, node, 0);
    if (cls->moves_data && qdqi_is_onnx_domain(node->proto->domain))
        return T16;
    if (qdqi_is_swish(p->graph, node))
        return T27;
    if (qdqi_is_pointwise(node) && qdqi_ends_weighted(p->graph, producer))
        return T10;
    if (qdqi_node_is(node->proto, "Concat"))
        return T15;
    return cls->state == QDQI_ASKED || qdqi_node_is(node->proto, "Resize")
               ? T17
               : QDQI_NO_RULE;
}

static void
cite(const struct planner *p, struct qdq_layer *layer)
{
    if (!qdqi_layer_is_quantized(layer)) {
        const int rule = layer->reason_kind == QDQ_REASON_OFF_BY_DEFAULT
                             ? rule_of_default(p, layer)
                             : QDQI_NO_RULE;
        if (rule != QDQI_NO_RULE)
            qdqi_rule_cite(layer, rule);
        return;
    }
    if (has_weight(p, layer))
        cite_weighted(p, layer);
    if (is_residual(p, layer))
        qdqi_rule_cite(layer, T11);
    if (p->selection.choices[layer->node].rank == QDQI_BY_CASE &&
        qdqi_patterns_of(p)->attention[layer->node] == QDQI_ATTENTION_MATMUL)
        qdqi_rule_cite(layer, T24);
    if (layer->n_inputs == 2 && qdqi_is_gated(p->graph, qdqi_node_of(p, layer)))
        qdqi_rule_cite(layer, T27);
}

/* --- versions -------------------------------------------------------------- */

/* The one version that there is, TensorRT for RTX 1.7. */
static void
apply_version(struct qdq_spec *spec)
{
    static const int rules[] = {T30, T34};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!qdq_rule_set_has(&spec->rules_on, rules[i]) &&
            !qdq_rule_set_has(&spec->rules_off, rules[i]))
            qdq_spec_switch_rule(spec, rules[i], true);
}

/* --- tables of embeddings --------------------------------------------------- */

static bool
shares_tables(const struct qdq_spec *spec)
{
    return spec->weight_only && qdq_spec_has_rule(spec, T36);
}

static unsigned
ties(const struct qdq_spec *spec)
{
    return shares_tables(spec) ? QDQI_TIES_TABLES : 0;
}

/* TensorRT takes no integers that anything but a DequantizeLinear reads. */
static enum qdq_code
complete(struct planner *p, struct qdq_error *err)
{
    (void)err;
    if (shares_tables(p->spec))
        qdqi_tied_plan(
            p, (struct qdqi_tied_rules){.table = T36, .forms = T36, .whole = true});
    return QDQ_OK;
}

/* --- the row -------------------------------------------------------------- */

static const struct qdq_rule rules[] = {TENSORRT_RULES(QDQI_RULE_ROW)};

static const struct qdqi_hooks hooks = {
    .apply_version = apply_version,
    .ties = ties,
    .fuses_biases = true,
    .begin = qdqi_patterns_begin,
    .settle_node = qdqi_mark_int8_reader,
    .run_cases = run_cases,
    .vetoes = vetoes,
    .hindrance = qdqi_tensorrt_hindrance,
    .needs_weight = needs_weight,
    .is_per_channel = is_per_channel,
    .complete = complete,
    .cite = cite,
    .warn_connections = warn_connections,
    .refusal = qdqi_tensorrt_refusal,
    .check_formats = qdqi_tensorrt_check_formats,
    .lints = qdqi_tensorrt_lints,
};

const struct qdq_target qdqi_target_tensorrt = {
    .name = "tensorrt",
    .runtime = "tensorrt_rtx",
    .loaded_by = "trtexec",
    .title = "TensorRT",
    .is_proprietary = true,
    .has_versions = true,
    .measures_if_asked = true,
    .searches_patterns = true,
    .text = "Pairs stand on the inputs and weights of the layers that TensorRT "
            "computes in int8.",
    .weights = QDQ_FORMAT_INT8,
    .activations = QDQ_FORMAT_INT8,
    .storage = QDQ_STORE_QDQ,
    .rules = rules,
    .n_rules = N_RULES,
    .hooks = &hooks,
};
