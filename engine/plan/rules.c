/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/rules.h"

#include "layers/patterns.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- the table ------------------------------------------------------------ */

#define STATE_FIXED true, true
#define STATE_ON false, true
#define STATE_OFF false, false

static const struct qdq_rule rules[] = {
#define RULE(id, target, state, text) {#id, QDQ_TARGET_##target, STATE_##state, text},
#include "tbl/rules.h"
#undef RULE
};

static_assert(QDQI_N_RULES <= 64, "a set of rules is a word of 64 bits");

/* What a report says of a layer that the rule left alone. */
static const char *const reasons[] = {
#define RULE(id, target, state, text) "rule:" #id,
#include "tbl/rules.h"
#undef RULE
};

const struct qdq_rule *
qdq_rule(size_t i)
{
    return i < QDQI_N_RULES ? &rules[i] : NULL;
}

uint64_t
qdqi_rules_default(void)
{
    uint64_t set = 0;
    for (int i = 0; i < QDQI_N_RULES; i++)
        if (rules[i].is_on)
            set |= qdqi_rule_bit((enum qdqi_rule)i);
    return set;
}

bool
qdqi_rule_is_on(const struct qdq_spec *spec, enum qdqi_rule rule)
{
    return rules[rule].target == spec->target && (spec->rules & qdqi_rule_bit(rule));
}

/* --- what has a pair ------------------------------------------------------ */

bool
qdqi_layer_is_quantized(const struct qdq_layer *layer)
{
    return layer->n_inputs > 0 || layer->weight_input >= 0;
}

static int
compare_inputs(const void *a, const void *b)
{
    int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

bool
qdqi_layer_has_pair(const struct qdq_layer *layer, int i)
{
    return layer->n_inputs > 0 && bsearch(&i, layer->quantized_inputs, layer->n_inputs,
                                          sizeof i, compare_inputs);
}

static const struct qdqi_node *
node_of(const struct planner *p, const struct qdq_layer *layer)
{
    return &p->model->graph.nodes[layer->node];
}

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

/* Computes in int8 by itself: has a weight, or multiplies two computed tensors. */
static bool
is_product(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"MatMul", "Gemm", "Conv", "ConvTranspose", NULL};
    return has_weight(p, layer) || qdqi_is_one_of(node_of(p, layer), ops);
}

/* --- what the rules speak of ---------------------------------------------- */

static bool
pooling_alone(const struct planner *p, const struct qdq_layer *layer)
{
    return qdqi_is_pooling(p->graph, node_of(p, layer)) && !p->feeds_int8[layer->node];
}

static bool
int8_into_float(const struct planner *p, const struct qdq_layer *layer)
{
    return !is_product(p, layer) && !qdqi_is_pooling(p->graph, node_of(p, layer)) &&
           !p->feeds_int8[layer->node];
}

static bool
norm_or_gelu(const struct planner *p, const struct qdq_layer *layer)
{
    return qdqi_is_norm_or_gelu(p->graph, node_of(p, layer));
}

static bool
output_layer(const struct planner *p, const struct qdq_layer *layer)
{
    return !is_product(p, layer) && p->patterns->makes_output[layer->node];
}

/* The shape of the weight, if it is constant and has at least `least` axes; else 0. */
static size_t
weight_dims(const struct planner *p, const struct qdq_layer *layer, size_t least,
            const int64_t **ret)
{
    const struct qdqi_node *node = node_of(p, layer);
    size_t rank = 0;
    int w = has_weight(p, layer) ? qdqi_weight_input(class_of(p, layer), node) : -1;
    return qdqi_input_is_constant(node, w) &&
                   qdqi_tensor_dims(node->inputs[w], ret, &rank) && rank >= least
               ? rank
               : 0;
}

enum { SMALL = 16 }; /* channels, rows, columns */

/* Few channels that have fast kernels nonetheless: a square kernel over multiples of 8,
   with 16 on one side or at the network's input; a depthwise kernel of 3 or more. */
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
           (reads_input || (out > in ? out : in) >= SMALL);
}

static bool
small_channels(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = node_of(p, layer);
    const int64_t *dims;
    size_t rank =
        qdqi_node_is(node->proto, "Conv") ? weight_dims(p, layer, 3, &dims) : 0;
    return rank > 0 && (dims[0] < SMALL || dims[1] < SMALL) &&
           !is_fast_though_small(p, node, dims, rank);
}

static bool
small_matmul(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Gemm", "MatMul", NULL};
    const int64_t *dims;
    size_t rank =
        qdqi_is_one_of(node_of(p, layer), ops) ? weight_dims(p, layer, 1, &dims) : 0;
    return rank == 1 ||
           (rank > 1 && (dims[rank - 1] < SMALL || dims[rank - 2] < SMALL));
}

static bool
attention(const struct planner *p, const struct qdq_layer *layer)
{
    return p->patterns->attention[layer->node] >= QDQI_ATTENTION_LONG;
}

/* Rules that keep what they mean in floating point. */
static const struct veto {
    enum qdqi_rule rule;
    bool (*means)(const struct planner *p, const struct qdq_layer *layer);
    bool is_late; /* asks what is quantized behind the layer */
} vetoes[] = {
    {QDQI_RULE_T14, pooling_alone, true},   {QDQI_RULE_T18, norm_or_gelu, false},
    {QDQI_RULE_T19, int8_into_float, true}, {QDQI_RULE_T20, output_layer, false},
    {QDQI_RULE_T22, small_channels, false}, {QDQI_RULE_T23, small_matmul, false},
    {QDQI_RULE_T24, attention, false},
};

enum { N_VETOES = sizeof vetoes / sizeof *vetoes };

bool
qdqi_rule_means(const struct planner *p, enum qdqi_rule rule,
                const struct qdq_layer *layer)
{
    for (size_t i = 0; i < N_VETOES; i++)
        if (vetoes[i].rule == rule)
            return vetoes[i].means(p, layer);
    return false;
}

static void
apply(struct planner *p, struct qdq_layer *layer, bool late)
{
    if (!qdqi_layer_is_quantized(layer) ||
        p->selection.choices[layer->node].rank >= QDQI_BY_MATCH)
        return;
    for (size_t i = 0; i < N_VETOES; i++) {
        const struct veto *veto = &vetoes[i];
        if (veto->is_late != late || !qdqi_rule_is_on(p->spec, veto->rule) ||
            !veto->means(p, layer))
            continue;
        layer->quantized_inputs = NULL;
        layer->n_inputs = 0;
        layer->weight_input = layer->weight_axis = -1;
        layer->weight = NULL;
        layer->reason = reasons[veto->rule];
        layer->rules = qdqi_rule_bit(veto->rule);
        return;
    }
}

void
qdqi_rules_apply(struct planner *p, struct qdq_layer *layer)
{
    apply(p, layer, false);
}

/* --- what stands behind a layer ------------------------------------------- */

/* Whether a node gives on what is fused into the layer before it: copies, activations,
   MaxPool, which commutes with a pair. */
static bool
is_seen_through(const struct planner *p, const struct qdqi_use *use)
{
    const struct qdqi_node *node = &p->model->graph.nodes[use->node];
    return p->graph->passes[use->node] == use->input ||
           (use->input == 0 && qdqi_is_pointwise(node)) ||
           (p->graph->classes[use->node] && qdqi_is_swish(p->graph, node)) ||
           qdqi_node_is(node->proto, "MaxPool");
}

static bool
is_read_as_int8(const struct planner *p, const struct qdqi_use *use)
{
    const struct qdq_layer *layer = p->by_node[use->node];
    if (layer && qdqi_layer_has_pair(layer, use->input))
        return true;
    return is_seen_through(p, use) && p->feeds_int8[use->node];
}

static bool
feeds_int8(const struct planner *p, size_t i)
{
    const struct qdqi_node *node = &p->model->graph.nodes[i];
    for (size_t k = 0; k < node->proto->n_output; k++) {
        const struct qdqi_tensor *t = node->outputs[k];
        /* Who reads what a nested graph gives out is not looked for. */
        if (t && (t->is_captured || (t->is_output && t->scope > 0)))
            return true;
        for (const struct qdqi_use *use = t ? t->uses : NULL; use; use = use->next)
            if (is_read_as_int8(p, use))
                return true;
    }
    return false;
}

/* --- what a decision follows ---------------------------------------------- */

static uint64_t
rules_of_weighted(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const with_bias[] = {"Conv", "ConvTranspose", "Gemm", NULL};
    const struct qdqi_node *node = node_of(p, layer);
    bool library = strcmp(class_of(p, layer)->support.source, "library") == 0;
    uint64_t set = 0;
    if (layer->n_inputs > 0 && layer->weight_input >= 0)
        set |= qdqi_rule_bit(QDQI_RULE_T8);
    if (layer->weight_axis >= 0)
        set |=
            qdqi_rule_bit(QDQI_RULE_T2) | (library ? qdqi_rule_bit(QDQI_RULE_T3) : 0);
    if (qdqi_is_one_of(node, with_bias) && node->proto->n_input > 2 && node->inputs[2])
        set |= qdqi_rule_bit(QDQI_RULE_T5);
    return set;
}

/* An Add that leaves out what a convolution makes. */
static bool
is_residual(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Add", "Sum", NULL};
    const struct qdqi_node *node = node_of(p, layer);
    if (layer->n_inputs == 0 || !qdqi_is_one_of(node, ops))
        return false;
    for (int i = 0; (size_t)i < node->proto->n_input; i++)
        if (!qdqi_layer_has_pair(layer, i) &&
            qdqi_ends_conv(p->graph, qdqi_layer_producer(p->graph, node, i)))
            return true;
    return false;
}

/* Why a class is off by default. */
static uint64_t
rules_of_default(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = node_of(p, layer);
    const struct qdqi_class *cls = class_of(p, layer);
    const struct qdqi_node *producer = qdqi_layer_producer(p->graph, node, 0);
    if (cls->moves_data && qdqi_is_onnx_domain(node->proto->domain))
        return qdqi_rule_bit(QDQI_RULE_T16);
    if (qdqi_is_swish(p->graph, node))
        return qdqi_rule_bit(QDQI_RULE_T27);
    if (qdqi_is_pointwise(node) && qdqi_ends_weighted(p->graph, producer))
        return qdqi_rule_bit(QDQI_RULE_T10);
    if (qdqi_node_is(node->proto, "Concat"))
        return qdqi_rule_bit(QDQI_RULE_T15);
    return cls->state == QDQI_ASKED || qdqi_node_is(node->proto, "Resize")
               ? qdqi_rule_bit(QDQI_RULE_T17)
               : 0;
}

static uint64_t
rules_of(const struct planner *p, const struct qdq_layer *layer)
{
    uint64_t set = layer->rules;
    if (p->spec->target != QDQ_TARGET_TENSORRT)
        return set; /* those of onnxruntime: plan/outputs.c */
    if (!qdqi_layer_is_quantized(layer))
        return set || strcmp(layer->reason, QDQI_OFF_BY_DEFAULT) != 0
                   ? set
                   : rules_of_default(p, layer);
    if (has_weight(p, layer))
        set |= rules_of_weighted(p, layer);
    if (is_residual(p, layer))
        set |= qdqi_rule_bit(QDQI_RULE_T11);
    if (layer->n_inputs == 2 && qdqi_is_gated(p->graph, node_of(p, layer)))
        set |= qdqi_rule_bit(QDQI_RULE_T27);
    return set;
}

/* --- when all are decided on ---------------------------------------------- */

/* From the last node to the first: what is decided of a layer is known to those that
   feed it. */
enum qdq_code
qdqi_rules_settle(struct planner *p, struct qdq_error *err)
{
    size_t n = p->model->graph.n_nodes;
    p->by_node = qdqi_arena_array(p->plan->arena, n, sizeof *p->by_node);
    p->feeds_int8 = qdqi_arena_array(p->plan->arena, n, sizeof *p->feeds_int8);
    if (!p->by_node || !p->feeds_int8)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < p->n_layers; i++)
        p->by_node[p->layers[i].node] = &p->layers[i];
    for (size_t i = n; i-- > 0;) {
        p->feeds_int8[i] = feeds_int8(p, i);
        if (p->by_node[i])
            apply(p, p->by_node[i], true);
    }
    for (size_t i = 0; i < p->n_layers; i++)
        p->layers[i].rules = rules_of(p, &p->layers[i]);
    return QDQ_OK;
}
