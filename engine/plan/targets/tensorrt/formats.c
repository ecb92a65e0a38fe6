/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This file knows what TensorRT takes of number formats. NVIDIA's documentation of explicit quantization names
 * int8 and float8e4m3fn for activations, and int8, float8e4m3fn, int4 and float4e2m1 for
 * weights; zero points are 0. The rest was seen with the parser and the builder of TensorRT for
 * RTX 1.7.1, which ignore `block_size` and divide the axis by the number of scales instead.
 */
#include "config.h"
#include "plan/targets/tensorrt/tensorrt.h"

#include "graph/edit/edit.h"

#include "plan/placement/lint.h"
#include "plan/targets/tensorrt/patterns.h"

/* --- formats ----------------------------------------------------------------- */

static bool
takes_activations(enum qdqi_format format)
{
    return format == QDQI_TO_INT8 || format == QDQI_TO_FLOAT8E4M3FN;
}

/* Returns whether weights of the format are stored as int4. */
static bool
is_int4(enum qdqi_format format)
{
    return qdqi_format_row((int)format)->dtype == QDQI_INT4;
}

static bool
is_float4(enum qdqi_format format)
{
    return format == QDQI_TO_FLOAT4E2M1 || format == QDQI_TO_NVFP4;
}

#define TAKEN "int8, int4, float8e4m3fn, float4e2m1 or nvfp4"

static bool
takes_weights(enum qdqi_format format)
{
    return takes_activations(format) || is_int4(format) || is_float4(format);
}

static enum qdqi_format
weights_of(const struct qdq_layer *layer)
{
    return (enum qdqi_format)layer->format->weights.format;
}

/* --- weights --------------------------------------------------------------------- */

/* The blocks of a layer's weight. */
struct blocks {
    int64_t n;  /* 0: it has none */
    bool whole; /* whether they divide the axis */
};

/* Returns the shape of the layer's weight, whose rank is *ret. */
static const int64_t *
dims_of(const struct planner *p, const struct qdq_layer *layer, size_t *ret)
{
    const int64_t *dims = NULL;
    if (!qdqi_tensor_dims(qdqi_node_of(p, layer)->inputs[layer->weight_input], &dims,
                          ret))
        *ret = 0;
    return dims;
}

static struct blocks
blocks_of(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    size_t rank;
    const int64_t *dims = dims_of(p, layer, &rank);
    const int64_t block = qdqi_block_of(p, layer, node->inputs[layer->weight_input]);
    if (block == 0 || (size_t)layer->weight_axis >= rank)
        return (struct blocks){0};
    const int64_t size = dims[layer->weight_axis];
    return (struct blocks){(size + block - 1) / block, size % block == 0};
}

static bool
is_matrix(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Gemm", "MatMul", NULL};
    return qdqi_node_is_one_of(qdqi_node_of(p, layer)->proto, ops);
}

/* Returns whether the layer has a weight of nvfp4 with one block alone, or with one that is not full. */
static bool
is_uneven_nvfp4(const struct planner *p, const struct qdq_layer *layer)
{
    size_t rank, outputs = 1;
    if (!layer->weight || weights_of(layer) != QDQI_TO_NVFP4 || !is_matrix(p, layer))
        return false;
    const struct blocks blocks = blocks_of(p, layer);
    const int64_t *dims = dims_of(p, layer, &rank);
    for (size_t i = 0; i < rank; i++)
        outputs *= i == (size_t)layer->weight_axis ? 1 : (size_t)dims[i];
    return blocks.n > 0 && (!blocks.whole || (size_t)blocks.n * outputs == 1);
}

const char *
qdqi_tensorrt_hindrance(const struct planner *p, struct qdq_layer *layer,
                        bool wants_inputs)
{
    (void)wants_inputs;
    if (!layer->weight || !takes_weights(weights_of(layer)) || !is_matrix(p, layer))
        return NULL;
    if (is_uneven_nvfp4(p, layer) && qdqi_rule_is_on(p, T33)) {
        qdqi_rule_cite(layer, T33);
        return "rule:T33, TensorRT refuses its blocks of nvfp4";
    }
    if (weights_of(layer) == QDQI_TO_NVFP4)
        return NULL;
    const struct blocks blocks = blocks_of(p, layer);
    if (blocks.n <= 1 || blocks.whole)
        return NULL;
    qdqi_rule_cite(layer, T29);
    return "rule:T29, the block does not divide its weight";
}

/* --- warnings of layers ------------------------------------------------------------ */

/* Begins a function that returns whether a warning applies to a layer. */
#define MEANT(what) \
    static bool what(const struct planner *p, const struct qdq_layer *layer)

MEANT(is_broken)
{
    (void)p;
    return qdq_rule_set_has(&layer->rules, T29);
}

MEANT(has_refused_blocks)
{
    return is_uneven_nvfp4(p, layer);
}

MEANT(was_left)
{
    (void)p;
    return qdq_rule_set_has(&layer->rules, T33);
}

MEANT(has_blocks_elsewhere)
{
    return layer->weight && !is_matrix(p, layer) && blocks_of(p, layer).n > 0;
}

MEANT(is_odd)
{
    const enum qdqi_format format = weights_of(layer);
    size_t rank, n = 1;
    if (!layer->weight || (!is_int4(format) && !is_float4(format)))
        return false;
    const int64_t *dims = dims_of(p, layer, &rank);
    for (size_t i = 0; i < rank; i++)
        n *= (size_t)dims[i] % 2;
    return n == 1;
}

/* Returns whether one side of a matrix is 1. */
static bool
is_vector(const struct planner *p, const struct qdq_layer *layer)
{
    size_t rank;
    const int64_t *dims = dims_of(p, layer, &rank);
    return rank < 2 || dims[rank - 1] == 1 || dims[rank - 2] == 1;
}

/* Returns whether TensorRT has no product of the layer's formats. It multiplies int8 by int8 and
   float8e4m3fn by float8e4m3fn, both without blocks, and a matrix of int4 by int8. */
MEANT(is_no_product)
{
    const enum qdqi_format weight = weights_of(layer),
                           activation =
                               (enum qdqi_format)layer->format->activations.format;
    if (!layer->weight || layer->n_inputs == 0 || !takes_activations(activation))
        return false;
    const bool widened = is_int4(weight) && activation == QDQI_TO_INT8 &&
                         is_matrix(p, layer) && !is_vector(p, layer);
    return (weight != activation && !widened) || blocks_of(p, layer).n > 1;
}

/* Returns whether the layer is one MatMul for queries, keys and values whose weight is int8. */
MEANT(is_packed)
{
    return layer->weight && weights_of(layer) == QDQI_TO_INT8 &&
           qdqi_is_packed_projection(p, qdqi_node_of(p, layer));
}

MEANT(is_packed_alone)
{
    return p->spec->weight_only && layer->format->weights.storage == QDQ_STORE_QDQ &&
           is_packed(p, layer);
}

MEANT(is_packed_integer)
{
    return !p->spec->weight_only && layer->format->weights.storage == QDQ_STORE_DQ &&
           is_packed(p, layer);
}

MEANT(has_signs)
{
    if (!layer->weight)
        return false;
    const struct qdqi_planned_weight *w = &p->plan->weights[layer->weight_row];
    return w->range == QDQ_RANGE_FULL && is_int4(w->format);
}

/* Returns whether the one pair of a tensor stands outside of an If that holds the node. */
static bool
comes_into_if(const struct planner *p, const struct qdqi_node *node,
              const struct qdqi_tensor *t)
{
    const struct qdqi_graph *graph = &p->model->graph;
    const size_t pair =
        node->scope > 0 ? graph->nodes[qdqi_edit_before_uses(p->model, t)].scope : 0;
    for (size_t at = node->scope; at != pair && at != 0; at = graph->scopes[at].outer) {
        const int64_t owner = graph->scopes[at].owner;
        if (owner >= 0 && qdqi_node_is(graph->nodes[owner].proto, "If"))
            return true;
    }
    return false;
}

MEANT(reads_from_outside)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    for (size_t i = 0; i < layer->n_inputs; i++)
        if (comes_into_if(p, node, node->inputs[layer->quantized_inputs[i]]))
            return true;
    return false;
}

/* Returns whether a product in an If reads a pair that stands outside of it. */
MEANT(multiplies_from_outside)
{
    static const char *const ops[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", NULL};
    return !qdqi_rule_is_on(p, T31) && reads_from_outside(p, layer) &&
           qdqi_node_is_one_of(qdqi_node_of(p, layer)->proto, ops);
}

static const struct {
    bool (*means)(const struct planner *p, const struct qdq_layer *layer);
    const char *code, *text;
    int rule;
    bool refuses; /* TensorRT does not load the model */
} of_layers[] = {
    {is_broken, "block_does_not_divide",
     "TensorRT would read other scales from blocks that do not divide the weight's "
     "axis, so "
     "that the layer stays in floating point; choose a block that divides the axis",
     T29, false},
    {was_left, "block_does_not_divide",
     "TensorRT would refuse weights of nvfp4 with a block that is not full, or with "
     "one "
     "block alone, so that the layer stays in floating point; choose another format",
     T33, false},
    {has_refused_blocks, "target_format",
     "TensorRT would refuse weights of nvfp4 with a block that is not full, or with "
     "one "
     "block alone: rule T33 leaves such layers in floating point",
     T33, true},
    {has_blocks_elsewhere, "target_format",
     "TensorRT takes blocks of Gemm and MatMul alone, and would refuse the model: name "
     "the "
     "layers with \"quantize_weight\": false, or choose another granularity",
     QDQI_NO_RULE, true},
    {is_odd, "target_format",
     "TensorRT takes weights of 4 bits with an even number of elements alone, and "
     "would "
     "refuse the model: name the layers with \"quantize_weight\": false, or choose "
     "another "
     "format",
     QDQI_NO_RULE, true},
    {multiplies_from_outside, "target_format",
     "TensorRT computes a layer inside an If in floating point where the pair on what "
     "it reads stands outside, which rounds and saves nothing: \"rules\": {\"T31\": "
     "true} "
     "puts a pair inside",
     T31, false},
    {has_signs, "target_format",
     "negative scales were not tried with TensorRT: \"weights\": {\"range\": "
     "\"narrow\"} "
     "makes positive ones",
     QDQI_NO_RULE, false},
    {is_no_product, "target_format",
     "TensorRT cannot multiply this weight by quantized activations, and would refuse "
     "the "
     "model: \"activations\": \"none\" quantizes weights alone, and int8 without "
     "blocks is "
     "multiplied by int8",
     QDQI_NO_RULE, true},
    {is_packed_alone, "target_format",
     "TensorRT refuses such a weight, of several operands of an attention, alone "
     "behind "
     "QuantizeLinear: \"weights\": {\"storage\": \"dq\"} stores it as integers",
     QDQI_NO_RULE, true},
    {is_packed_integer, "packed_projection",
     "TensorRT computes several operands of an attention in floating point where their "
     "weight is stored as integers: \"weights\": {\"storage\": \"qdq\"} does not",
     QDQI_NO_RULE, false},
};

const char *
qdqi_tensorrt_refusal(const struct planner *p, const struct qdq_layer *layer)
{
    if (layer->weight && !takes_weights(weights_of(layer)))
        return "TensorRT takes weights of " TAKEN " alone, and would refuse the model";
    for (size_t i = 0; i < sizeof of_layers / sizeof *of_layers; i++)
        if (of_layers[i].refuses && of_layers[i].means(p, layer))
            return of_layers[i].text;
    return NULL;
}

static enum qdq_code
warn_layers(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < sizeof of_layers / sizeof *of_layers && !code; i++) {
        const struct qdqi_layer_count count = qdqi_count_layers(p, of_layers[i].means);
        code = qdqi_warn_count(p, &count, of_layers[i].code, of_layers[i].text, err);
        if (!code && count.n > 0 && of_layers[i].rule != QDQI_NO_RULE)
            p->warnings.rows[p->warnings.n - 1].rule =
                qdqi_rule_id(p, of_layers[i].rule);
    }
    return code;
}

/* Gives layers inside an If pairs inside, where the rule is on. */
static void
pair_in_branches(struct planner *p)
{
    p->plan->pairs_in_branches =
        p->model->graph.n_scopes > 1 && qdqi_rule_is_on(p, T31);
    for (size_t i = 0; p->plan->pairs_in_branches && i < p->n_layers; i++)
        if (reads_from_outside(p, &p->layers[i]))
            qdqi_rule_cite(&p->layers[i], T31);
}

/* --- warnings of formats ------------------------------------------------------------ */

static enum qdq_code
warn_format(struct planner *p, const char *takes, const char *prefix,
            enum qdqi_format format, const char *effect, struct qdq_error *err)
{
    enum qdq_code code = qdqi_warn(&p->warnings, p->plan->arena, err, "target_format",
                                   NULL, "TensorRT takes %s: it %s with %s%s", takes,
                                   effect ? effect : "would refuse the model", prefix,
                                   qdqi_format_row((int)format)->name);
    if (!code)
        p->warnings.rows[p->warnings.n - 1].rule = qdqi_rule_id(p, T1);
    return code;
}

/* TensorRT takes bytes of uint8 for int8. It looks at no more than the zero points, so that it
   refuses most such models but not all. */
static const char misread[] = "refuses the model, or reads the values above 127 as 127 "
                              "where all zero points are 0,";

static enum qdq_code
check_activations(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_planned_tensor *t = p->plan->activations,
                                     *end = t + p->plan->view.n_tensors;
    while (t < end && takes_activations(t->format) && t->symmetric)
        t++;
    if (t == end)
        return QDQ_OK;
    return warn_format(p, "activations of int8 or float8e4m3fn whose zero point is 0",
                       t->symmetric ? "symmetric " : "asymmetric ", t->format,
                       t->format == QDQI_TO_UINT8 ? misread : NULL, err);
}

enum qdq_code
qdqi_tensorrt_check_formats(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_planned_weight *w = p->plan->weights,
                                     *end = w + p->plan->view.n_weights;
    pair_in_branches(p);
    enum qdq_code code = check_activations(p, err);
    if (!code)
        code = qdqi_warn_several_scales(
            p,
            "TensorRT takes one scale for an activation, and ONNX Runtime, which "
            "computes the figures here, makes kernels of such pairs that do not load "
            "or "
            "fail in their first run: \"existing_qdq\": \"strip\" makes pairs anew",
            err);
    while (w < end && takes_weights(w->format))
        w++;
    if (!code && w < end)
        code = warn_format(p, "weights of " TAKEN, "", w->format, NULL, err);
    if (code || (code = warn_layers(p, err)))
        return code;
    return qdqi_tensorrt_check_in_onnxruntime(p, err);
}
