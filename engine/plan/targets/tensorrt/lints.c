/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warnings about layers that TensorRT does not fuse or computes slowly. Each row of the
 * table has a function that returns whether its warning applies to a layer.
 * docs/reference/lint.md explains the warnings.
 */
#include "config.h"
#include "plan/targets/tensorrt/tensorrt.h"

#include "graph/layers/operators.h"
#include "plan/targets/tensorrt/patterns.h"

#include <string.h>

static const struct qdqi_node *
producer_of(const struct planner *p, const struct qdq_layer *layer, int i)
{
    return qdqi_layer_producer(p->graph, qdqi_node_of(p, layer), i);
}

/* --- single layers ------------------------------------------------------- */

/* Begins the function of a row, which returns whether the warning applies to a
   layer. */
#define MEANT(code) \
    static bool lint_##code(const struct planner *p, const struct qdq_layer *layer)

MEANT(conv_transpose_axis)
{
    const struct qdqi_class *cls = p->graph->classes[layer->node];
    return layer->weight_axis >= 0 && !cls->is_given &&
           qdqi_node_is(qdqi_node_of(p, layer)->proto, "ConvTranspose");
}

MEANT(conv_transpose_in_float)
{
    return layer->weight_input >= 0 && layer->n_inputs > 0 &&
           qdqi_node_is(qdqi_node_of(p, layer)->proto, "ConvTranspose");
}

MEANT(grouped_conv_transpose)
{
    return lint_conv_transpose_in_float(p, layer) &&
           qdqi_node_int(qdqi_node_of(p, layer)->proto, "group", 1) > 1;
}

MEANT(pair_before_activation)
{
    return qdqi_layer_has_pair(layer, 0) && qdqi_is_pointwise(qdqi_node_of(p, layer)) &&
           qdqi_ends_weighted(p->graph, producer_of(p, layer, 0));
}

static bool
is_add(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Add", "Sum", NULL};
    return qdqi_node_is_one_of(qdqi_node_of(p, layer)->proto, ops);
}

/* If neither a case nor a name decides about the layer, the warning
   residual_without_case is given instead. */
MEANT(residual_all_inputs)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    bool fusible = false;
    if (!is_add(p, layer) || layer->n_inputs < 2 ||
        p->selection.choices[layer->node].rank < QDQI_BY_CASE)
        return false;
    for (int i = 0; (size_t)i < node->proto->n_input; i++) {
        const struct qdqi_node *maker = producer_of(p, layer, i);
        if (qdqi_layer_input(p->graph, node, i) == QDQI_INPUT_DATA &&
            !qdqi_layer_has_pair(layer, i))
            return false;
        fusible =
            fusible || (maker && qdqi_ends_conv(p->graph, maker) &&
                        p->graph->n_consumers[qdqi_layer_index(p->graph, maker)] == 1);
    }
    return fusible;
}

/* Finds a Concat two different inputs of which have a pair. */
MEANT(concat_scales)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    if (!qdqi_node_is(node->proto, "Concat"))
        return false;
    for (size_t i = 1; i < layer->n_inputs; i++)
        if (node->inputs[layer->quantized_inputs[i]] !=
            node->inputs[layer->quantized_inputs[0]])
            return true;
    return false;
}

MEANT(pair_behind_pad)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    if (!qdqi_is_conv(node) || !qdqi_layer_has_pair(layer, 0))
        return false;
    int64_t maker = node->inputs[0]->producer;
    return maker >= 0 && qdqi_node_is(p->model->graph.nodes[maker].proto, "Pad");
}

MEANT(half_quantized)
{
    const struct qdqi_class *cls = p->graph->classes[layer->node];
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    if (cls->kind != QDQ_WEIGHTED)
        return false;
    int w = qdqi_weight_input(cls, node);
    bool weight = qdqi_layer_is_paired(p->graph, node, w), input = false;
    for (int i = 0; (size_t)i < node->proto->n_input; i++)
        input = input || qdqi_layer_input(p->graph, node, i) == QDQI_INPUT_PAIRED;
    return (layer->n_inputs > 0 || input) != (layer->weight_input >= 0 || weight);
}

/* A Mul by a gate stands between int8 layers: a layer behind it reads int8. */
MEANT(gate_in_float)
{
    return qdqi_is_gated(p->graph, qdqi_node_of(p, layer)) && layer->n_inputs < 2 &&
           qdqi_patterns_of(p)->feeds_int8[layer->node];
}

/* --- rules that the plan does not follow ----------------------------------- */

static bool
is_meant(const struct planner *p, const struct qdq_layer *layer, int rule)
{
    return qdqi_layer_is_quantized(layer) && qdqi_rule_means(p, rule, layer);
}

/* Only one warning is given for each layer: a pooling layer that makes an output
   gets the warning about outputs and not this one. */
MEANT(pooling_alone)
{
    return is_meant(p, layer, T14) && !is_meant(p, layer, T20);
}

MEANT(int8_into_float)
{
    return is_meant(p, layer, T19) && !is_meant(p, layer, T18) &&
           !is_meant(p, layer, T20) && !is_meant(p, layer, T24);
}

/* --- patterns across layers ----------------------------------------------- */

/* Returns whether a node is the swish of a convolution that is quantized. */
static bool
is_swish_of_conv(const struct planner *p, const struct qdqi_node *node)
{
    for (int i = 0; node && qdqi_is_swish(p->graph, node) && i < 2; i++) {
        const struct qdqi_node *conv = qdqi_layer_producer(p->graph, node, i);
        if (conv && qdqi_node_is(conv->proto, "BatchNormalization"))
            conv = qdqi_layer_producer(p->graph, conv, 0);
        if (!qdqi_is_conv(conv))
            continue;
        const struct qdq_layer *layer = p->by_node[qdqi_layer_index(p->graph, conv)];
        if (layer && qdqi_layer_is_quantized(layer))
            return true;
    }
    return false;
}

/* The layer is an Add behind a convolution and its swish. */
MEANT(swish_into_add)
{
    size_t n = is_add(p, layer) ? qdqi_node_of(p, layer)->proto->n_input : 0;
    for (size_t i = 0; i < n; i++)
        if (is_swish_of_conv(p, producer_of(p, layer, (int)i)))
            return true;
    return false;
}

/* --- the table ------------------------------------------------------------ */

/* Rows as published are those that the plans of TensorRT for RTX 1.7.1 refute, which
   tests/tensorrt/test_lint_rows.py asks: there the pair costs neither a kernel nor a byte. */

const struct qdqi_lint qdqi_tensorrt_lints[] = {
    {QDQI_LINT(conv_transpose_axis), T3,
     "releases of TensorRT disagree on the axis of a ConvTranspose's scales; "
     "\"rules\": {\"T3\": false} gives the weight one scale",
     QDQI_LINT_AS_PUBLISHED},
    {QDQI_LINT(grouped_conv_transpose), T3,
     "TensorRT has refused a ConvTranspose of several groups in int8; an entry of "
     "layers that names it leaves it in floating point",
     QDQI_LINT_AS_PUBLISHED},
    {QDQI_LINT(conv_transpose_in_float), T3,
     "TensorRT for RTX 1.7 computes a ConvTranspose in floating point, behind a kernel "
     "that makes its weight from integers: pairs only cost time there",
     QDQI_LINT_AS_PLANNED},
    {QDQI_LINT(pair_before_activation), T10,
     "the pair stands between a layer and the activation or BatchNormalization "
     "behind it, which are no longer one kernel",
     QDQI_LINT_AS_PUBLISHED},
    {QDQI_LINT(residual_all_inputs), T11,
     "all inputs of the Add have a pair, so it is not fused with the convolution "
     "that makes one of them; leave that one out of quantization_index",
     QDQI_LINT_AS_PUBLISHED},
    {QDQI_LINT(pooling_alone), T14,
     "pooling reads int8 and nothing behind it does, so it is converted back at "
     "once; \"rules\": {\"T14\": true} leaves it in floating point",
     QDQI_LINT_AS_PUBLISHED},
    {QDQI_LINT(concat_scales), T15,
     "the inputs of the Concat have different scales, so they are rescaled to be "
     "joined; pairs on the layers behind it avoid that",
     QDQI_LINT_AS_PUBLISHED},
    {QDQI_LINT(pair_behind_pad), T16,
     "the pair stands between a Pad and the convolution that it feeds, so the Pad "
     "stays a kernel of its own",
     QDQI_LINT_AS_PUBLISHED},
    {QDQI_VETO_LINT(norm_or_gelu), T18,
     "this is part of a LayerNormalization or Gelu, whose kernel a pair breaks; "
     "\"rules\": {\"T18\": true} leaves such nodes in floating point",
     QDQI_LINT_AS_PUBLISHED},
    {QDQI_LINT(int8_into_float), T19,
     "the inputs are int8 and nothing behind it reads int8, so the time that reading "
     "saves is spent on converting; \"rules\": {\"T19\": true} leaves it in "
     "floating point",
     QDQI_LINT_AS_PUBLISHED},
    {QDQI_VETO_LINT(output_layer), T20,
     "it makes an output of the model, which is float, from int8 inputs; "
     "\"rules\": {\"T20\": true} leaves it in floating point",
     QDQI_LINT_AS_PUBLISHED},
    {QDQI_VETO_LINT(small_channels), T22,
     "a Conv of so few channels is seldom faster in int8; \"rules\": {\"T22\": "
     "true} leaves it in floating point",
     QDQI_LINT_ALWAYS},
    {QDQI_VETO_LINT(small_matmul), T23,
     "a weight with fewer than 16 rows or columns is seldom faster in int8; "
     "\"rules\": {\"T23\": true} leaves it in floating point",
     QDQI_LINT_ALWAYS},
    {QDQI_VETO_LINT(attention), T24,
     "this part of an attention is slower with pairs; \"rules\": {\"T24\": true} "
     "leaves it in floating point",
     QDQI_LINT_ALWAYS},
    {QDQI_VETO_LINT(one_place), T34,
     "TensorRT for RTX 1.7 computes a Conv of one place and so few channels in "
     "floating point; \"rules\": {\"T34\": true} leaves it so",
     QDQI_LINT_ALWAYS},
    {QDQI_LINT(half_quantized), T26,
     "the layer has a pair on its input or on its weight, not on both, so it "
     "computes in floating point",
     QDQI_LINT_ALWAYS},
    {QDQI_LINT(gate_in_float), T27,
     "a Mul by the gate of squeeze and excitation does not have a pair on both inputs, "
     "so that it separates int8 layers; the case efficientnet gives it both",
     QDQI_LINT_AS_PUBLISHED},
    {QDQI_LINT(swish_into_add), T28,
     "a convolution, its swish and this Add are not fused as a whole: the Add is a "
     "kernel of its own",
     QDQI_LINT_AS_PUBLISHED},
    {0},
};
