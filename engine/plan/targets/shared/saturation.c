/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/targets/shared/saturation.h"

#include "ground/base/host.h"
#include "graph/layers/operators.h"
#include "plan/placement/formats.h"

#include <string.h>

static bool
has_int8_weights(const struct qdq_layer_format *format)
{
    return format->weights.format == QDQ_FORMAT_INT8;
}

bool
qdqi_saturation_decide(const struct qdq_spec *spec, const char **ret_reason)
{
    const struct qdqi_host_row *host = qdqi_host_row(spec->host);
    if (!host)
        *ret_reason = "the spec states no host";
    else if (!host->adds_in_16_bits)
        *ret_reason = host->text;
    else if (spec->weight_only && !spec->dynamic)
        *ret_reason = "activations stay floating point, so no sum is one of integers";
    else if (!qdqi_spec_has(spec, has_int8_weights))
        *ret_reason = "the rule is of int8 weights alone";
    else if (!spec->dynamic && !qdqi_spec_has(spec, qdqi_has_byte_activations))
        *ret_reason = "there are integer kernels of int8 and uint8 activations alone";
    else {
        *ret_reason = host->text;
        return true;
    }
    return false;
}

/* Returns the axis whose neighbours the kernels of a layer add in 16 bits; -1: it is not
   known. A frozen spec of version 0.1, which has no host, knew none. */
static int
find_pair_axis(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = &p->model->graph.nodes[layer->node];
    const struct qdqi_class *cls = p->graph->classes[layer->node];
    const int64_t *dims;
    size_t rank;
    if (!qdqi_host_row(p->spec->host) || cls->is_recurrent ||
        p->plan->weights[layer->weight_row].block > 0 ||
        !qdqi_tensor_dims(node->inputs[layer->weight_input], &dims, &rank) ||
        rank < 2 ||
        /* The groups share the axis of the outputs. */
        (qdqi_node_is(node->proto, "ConvTranspose") &&
         qdqi_node_int(node->proto, "group", 1) > 1))
        return -1;
    const int axis = cls->axis(cls, node, layer->weight_input, rank);
    return axis < 0 ? -1 : qdqi_input_axis(node, axis, rank);
}

/* Returns whether the layer adds products of its weight. */
static bool
is_limited(const struct planner *p, const struct qdq_layer *layer)
{
    return qdqi_is_product(layer->op) || strcmp(layer->op, "ConvTranspose") == 0 ||
           p->graph->classes[layer->node]->is_recurrent;
}

static void
limit_weight(struct qdqi_planned_weight *w, int pair_axis)
{
    w->pair_axis = w->is_reduced && w->pair_axis != pair_axis ? -1 : pair_axis;
    w->is_reduced = true;
}

/* Limits the integers of the layer's weights, if the layer adds products of int8. */
static void
limit_weights(struct planner *p, int rule, struct qdq_layer *layer)
{
    struct qdqi_planned_weight *weights = p->plan->weights;
    if (!is_limited(p, layer) || layer->weight_input < 0 ||
        weights[layer->weight_row].format != QDQI_TO_INT8)
        return;
    limit_weight(&weights[layer->weight_row], find_pair_axis(p, layer));
    if (p->graph->classes[layer->node]->is_recurrent)
        limit_weight(&weights[layer->recurrent_row], -1);
    qdqi_rule_cite(layer, rule);
}

void
qdqi_saturation_plan(struct planner *p, int rule)
{
    for (size_t i = 0; qdqi_rule_is_on(p, rule) && i < p->n_layers; i++)
        limit_weights(p, rule, &p->layers[i]);
}

static bool
has_int8(const struct planner *p)
{
    bool has = qdqi_spec_has(p->spec, has_int8_weights);
    for (size_t i = 0; i < p->plan->view.n_weights && !has; i++)
        has = p->plan->weights[i].format == QDQI_TO_INT8; /* as a case asks */
    return has;
}

enum qdq_code
qdqi_saturation_check(const struct planner *p, int rule, struct qdq_error *err)
{
    if (!qdqi_rule_is_on(p, rule) || has_int8(p))
        return QDQ_OK;
    return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/rules/C7",
                         "rule C7 is of weights whose dtype is int8");
}

bool
qdqi_saturation_switch_off(struct qdq_spec *spec)
{
    const int rule = qdq_target_find_rule(spec->target, "C7");
    if (rule < 0 || !qdq_spec_has_rule(spec, (size_t)rule))
        return false;
    qdq_spec_switch_rule(spec, (size_t)rule, false);
    return true;
}
