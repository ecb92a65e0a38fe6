/* SPDX-License-Identifier: Apache-2.0 */
/* Why a layer stays in floating point: the HTP refuses it, or has no kernel for it as it is. */
#include "config.h"
#include "plan/targets/qnn/qnn.h"

#include <string.h>

/* Returns why the HTP has no kernel for the layer with activations of int16, or NULL. */
static const char *
why_not_signed(const struct qdq_layer *layer, const struct qdqi_node *node)
{
    static const char *const refused[] = {"AveragePool", "GlobalAveragePool", "MatMul",
                                          NULL};
    if (layer->format->activations.format != QDQ_FORMAT_INT16)
        return NULL;
    if (qdqi_node_is_one_of(node->proto, refused))
        return "rule:Q11, the HTP refuses it with int16; uint16 is computed";
    return qdqi_node_is(node->proto, "Conv") &&
                   qdqi_node_int(node->proto, "group", 1) > 1
               ? "rule:Q11, the HTP refuses groups with int16; uint16 is computed"
               : NULL;
}

bool
qdqi_htp_refuses_wide(const char *op)
{
    return strcmp(op, "PRelu") == 0 || strcmp(op, "Log") == 0;
}

static bool
is_narrow_conv(const struct qdq_layer *layer, const struct qdqi_node *node)
{
    static const char *const ops[] = {"Conv", "ConvTranspose", NULL};
    const enum qdq_format format = layer->format->weights.format;
    return qdqi_node_is_one_of(node->proto, ops) && layer->weight_axis < 0 &&
           layer->weight_input >= 0 &&
           (format == QDQ_FORMAT_INT4 || format == QDQ_FORMAT_INT3 ||
            format == QDQ_FORMAT_UINT4);
}

/* Returns whether the layer makes or reads masked scores that others read, too. */
static bool
touches_scores(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_qnn_marks *marks = p->marks;
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    bool any = marks->scores[layer->node];
    for (size_t i = 0; i < node->proto->n_input && !any; i++)
        any = node->inputs[i] && node->inputs[i]->producer >= 0 &&
              marks->scores[node->inputs[i]->producer];
    return any;
}

/* Returns whether the layer computes with floats that no pair can stand on: rule Q22 is off, or a constant is
   infinite. */
static bool
has_bare_operand(const struct planner *p, const struct qdq_layer *layer,
                 const struct qdqi_node *node)
{
    if (p->graph->classes[layer->node]->kind != QDQ_MULTI_INPUT)
        return false;
    for (size_t i = 0; i < node->proto->n_input; i++) {
        const struct qdqi_tensor *t = node->inputs[i];
        if (t && t->dtype == QDQI_FLOAT32 && (t->is_fixed || t->is_shape) &&
            qdqi_layer_input(p->graph, node, (int)i) != QDQI_INPUT_DATA)
            return true;
    }
    return false;
}

/* Returns whether layers that have no kernel of 16 bits are computed in 8: an HTP of v68 or v69 has no floats. */
static bool
is_narrowed(const struct planner *p)
{
    return qdqi_rule_is_on(p, Q16) &&
           (p->spec->host == QDQ_HOST_V68 || p->spec->host == QDQ_HOST_V69);
}

const char *
qdqi_qnn_hindrance(const struct planner *p, struct qdq_layer *layer, bool wants_inputs)
{
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    const enum qdq_format format = layer->format->activations.format;
    const bool wide = format == QDQ_FORMAT_UINT16 || format == QDQ_FORMAT_INT16;
    const char *why = NULL;
    if (wants_inputs && qdqi_rule_is_on(p, Q17) && touches_scores(p, layer)) {
        qdqi_rule_cite(layer, Q17);
        return "rule:Q17, masked scores that others than a Softmax read have no "
               "integers";
    }
    if (wants_inputs && has_bare_operand(p, layer, node))
        return "no pair can stand on what it computes with";
    if (is_narrow_conv(layer, node))
        why = "rule:Q11, the HTP refuses a Conv of 4 bits without a scale for each "
              "channel";
    else if (wants_inputs && wide && !is_narrowed(p) &&
             qdqi_node_is(node->proto, "PRelu"))
        why = "rule:Q11, the HTP refuses a PRelu of 16 bits";
    else if (wants_inputs && wide && !is_narrowed(p) &&
             qdqi_node_is(node->proto, "Log"))
        why = "rule:Q11, the HTP computes wrong numbers of a Log of 16 bits";
    else if (wants_inputs)
        why = why_not_signed(layer, node);
    if (why)
        qdqi_rule_cite(layer, Q11);
    return why;
}
