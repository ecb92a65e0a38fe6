/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/saturation.h"

#include "base/host.h"
#include "layers/kernels.h"

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
    else if (spec->weight_format != QDQ_FORMAT_INT8)
        *ret_reason = "the rule is of int8 weights alone";
    else if (!spec->dynamic && spec->activation_format != QDQ_FORMAT_INT8 &&
             spec->activation_format != QDQ_FORMAT_UINT8)
        *ret_reason = "there are integer kernels of int8 and uint8 activations alone";
    else {
        *ret_reason = host->text;
        return true;
    }
    return false;
}

/* Limits the integers of the layer's weights, if the layer adds products of int8. */
static void
limit_weights(struct planner *p, int rule, struct qdq_layer *layer)
{
    struct qdqi_planned_weight *weights = p->plan->weights;
    const bool is_recurrent = p->graph->classes[layer->node]->is_recurrent;
    if ((!qdqi_is_product(layer->op) && !is_recurrent) || layer->weight_input < 0 ||
        weights[layer->weight_row].format != QDQI_TO_INT8)
        return;
    weights[layer->weight_row].is_reduced = true;
    if (is_recurrent)
        weights[layer->recurrent_row].is_reduced = true;
    layer->rules |= qdqi_rule_bit(p, rule);
}

void
qdqi_saturation_plan(struct planner *p, int rule)
{
    for (size_t i = 0; qdqi_rule_is_on(p, rule) && i < p->n_layers; i++)
        limit_weights(p, rule, &p->layers[i]);
}

enum qdq_code
qdqi_saturation_check(const struct planner *p, int rule, struct qdq_error *err)
{
    if (!qdqi_rule_is_on(p, rule) || p->spec->weight_format == QDQ_FORMAT_INT8)
        return QDQ_OK;
    return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, "/rules/C7",
                         "rule C7 is of weights whose dtype is int8");
}
