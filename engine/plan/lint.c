/* SPDX-License-Identifier: Apache-2.0 */
/* A pure function of model and plan: what was asked for is done, and this is said of it. */
#include "config.h"
#include "plan/lint.h"

#include "layers/patterns.h"
#include "plan/rules.h"

#include <stdio.h>
#include <string.h>

static const struct qdqi_node *
node_of(const struct planner *p, const struct qdq_layer *layer)
{
    return &p->model->graph.nodes[layer->node];
}

static const struct qdqi_node *
producer_of(const struct planner *p, const struct qdq_layer *layer, int i)
{
    return qdqi_layer_producer(p->graph, node_of(p, layer), i);
}

/* --- of single layers ----------------------------------------------------- */

/* A function of a row: whether a layer of the plan is meant. */
#define MEANT(code) \
    static bool lint_##code(const struct planner *p, const struct qdq_layer *layer)

MEANT(conv_transpose_axis)
{
    const struct qdqi_class *cls = p->graph->classes[layer->node];
    return layer->weight_axis >= 0 && strcmp(cls->support.source, "library") == 0 &&
           qdqi_node_is(node_of(p, layer)->proto, "ConvTranspose");
}

MEANT(grouped_conv_transpose)
{
    const struct qdqi_node *node = node_of(p, layer);
    return layer->weight_input >= 0 && layer->n_inputs > 0 &&
           qdqi_node_is(node->proto, "ConvTranspose") &&
           qdqi_node_int(node->proto, "group", 1) > 1;
}

MEANT(pair_before_activation)
{
    return qdqi_layer_has_pair(layer, 0) && qdqi_is_pointwise(node_of(p, layer)) &&
           qdqi_ends_weighted(p->graph, producer_of(p, layer, 0));
}

static bool
is_add(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Add", "Sum", NULL};
    return qdqi_is_one_of(node_of(p, layer), ops);
}

/* Where neither a case nor a name decides, the warning residual_without_case speaks. */
MEANT(residual_all_inputs)
{
    const struct qdqi_node *node = node_of(p, layer);
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

/* Two of its tensors have a pair each. */
MEANT(concat_scales)
{
    const struct qdqi_node *node = node_of(p, layer);
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
    const struct qdqi_node *node = node_of(p, layer);
    if (!qdqi_is_conv(node) || !qdqi_layer_has_pair(layer, 0))
        return false;
    int64_t maker = node->inputs[0]->producer;
    return maker >= 0 && qdqi_node_is(p->model->graph.nodes[maker].proto, "Pad");
}

MEANT(half_quantized)
{
    const struct qdqi_class *cls = p->graph->classes[layer->node];
    const struct qdqi_node *node = node_of(p, layer);
    if (cls->kind != QDQ_WEIGHTED)
        return false;
    int w = qdqi_weight_input(cls, node);
    bool weight = qdqi_layer_is_paired(p->graph, node, w), input = false;
    for (int i = 0; (size_t)i < node->proto->n_input; i++)
        input = input || qdqi_layer_input(p->graph, node, i) == QDQI_INPUT_PAIRED;
    return (layer->n_inputs > 0 || input) != (layer->weight_input >= 0 || weight);
}

/* What is gated is int8 on both sides: a layer behind it reads int8. */
MEANT(gate_in_float)
{
    return qdqi_is_gated(p->graph, node_of(p, layer)) && layer->n_inputs < 2 &&
           p->feeds_int8[layer->node];
}

/* --- by the rules of the same meaning ------------------------------------- */

static bool
is_meant(const struct planner *p, const struct qdq_layer *layer, enum qdqi_rule rule)
{
    return qdqi_layer_is_quantized(layer) && qdqi_rule_means(p, rule, layer);
}

/* Each layer is told one thing: who makes an output, say, that and not more. */
MEANT(pooling_alone)
{
    return is_meant(p, layer, QDQI_RULE_T14) && !is_meant(p, layer, QDQI_RULE_T20);
}

MEANT(int8_into_float)
{
    return is_meant(p, layer, QDQI_RULE_T19) && !is_meant(p, layer, QDQI_RULE_T18) &&
           !is_meant(p, layer, QDQI_RULE_T20) && !is_meant(p, layer, QDQI_RULE_T24);
}

MEANT(norm_or_gelu)
{
    return is_meant(p, layer, QDQI_RULE_T18);
}

MEANT(output_layer)
{
    return is_meant(p, layer, QDQI_RULE_T20);
}

MEANT(small_channels)
{
    return is_meant(p, layer, QDQI_RULE_T22);
}

MEANT(small_matmul)
{
    return is_meant(p, layer, QDQI_RULE_T23);
}

MEANT(attention)
{
    return is_meant(p, layer, QDQI_RULE_T24);
}

/* --- of what no layer has ------------------------------------------------- */

/* Whether a node is the swish of a convolution that is quantized. */
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

/* A convolution, its swish, and this Add. */
MEANT(swish_into_add)
{
    size_t n = is_add(p, layer) ? node_of(p, layer)->proto->n_input : 0;
    for (size_t i = 0; i < n; i++)
        if (is_swish_of_conv(p, producer_of(p, layer, (int)i)))
            return true;
    return false;
}

/* --- the table ------------------------------------------------------------ */

static const struct lint {
    const char *code;
    enum qdqi_rule rule;
    const char *text;
    bool (*means)(const struct planner *p, const struct qdq_layer *layer);
} lints[] = {
#define LINT(code, rule, text) {#code, QDQI_RULE_##rule, text, lint_##code},
#include "tbl/lints.h"
#undef LINT
};

enum { N_LINTS = sizeof lints / sizeof *lints };

bool
qdq_lint(size_t i, struct qdq_lint *ret)
{
    if (i >= N_LINTS)
        return false;
    *ret = (struct qdq_lint){lints[i].code, qdq_rule(lints[i].rule), lints[i].text};
    return true;
}

/* --- one warning for all that is meant ------------------------------------ */

enum { NAMED = 3, LONGEST = 64 };

/* "1 layer (conv1)", "2 layers (a, b)", "17 layers (a, b, c, …)" */
struct layers {
    size_t n;
    const char *first;
    char names[NAMED * (LONGEST + 8) + 8];
};

static void
add_layer(struct layers *to, const char *name)
{
    size_t len = strlen(to->names), room = sizeof to->names - len;
    if (to->n == 0)
        to->first = name;
    if (to->n < NAMED)
        snprintf(to->names + len, room, "%s%.*s%s", to->n ? ", " : "", LONGEST, name,
                 strlen(name) > LONGEST ? "..." : "");
    else if (to->n == NAMED)
        snprintf(to->names + len, room, ", ...");
    to->n++;
}

static enum qdq_code
warn(struct planner *p, const struct lint *lint, const struct layers *layers,
     struct qdq_error *err)
{
    enum qdq_code code =
        qdqi_warn(&p->warnings, p->plan->arena, err, lint->code, layers->first,
                  "%zu layer%s (%s): %s", layers->n, layers->n == 1 ? "" : "s",
                  layers->names, lint->text);
    if (!code)
        p->warnings.rows[p->warnings.n - 1].rule = qdq_rule(lint->rule)->id;
    return code;
}

enum qdq_code
qdqi_lint(struct planner *p, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    /* Weights alone: nothing computes in int8, unless the model has pairs of its own. */
    if (p->plan->view.n_tensors == 0 && p->spec->existing_qdq == QDQ_EXISTING_ERROR)
        return QDQ_OK;
    for (size_t k = 0; k < N_LINTS && !code; k++) {
        struct layers layers = {0};
        if (qdq_rule(lints[k].rule)->target != p->spec->target)
            continue;
        for (size_t i = 0; i < p->n_layers; i++)
            if (lints[k].means(p, &p->layers[i]))
                add_layer(&layers, p->layers[i].name);
        if (layers.n > 0)
            code = warn(p, &lints[k], &layers, err);
    }
    return code;
}
