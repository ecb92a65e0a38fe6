/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/layers/bias.h"

enum { BIAS = 2 };

const char *const qdqi_biased_ops[] = {"Conv", "Gemm", "MatMul", NULL};

/* Returns the place behind a MatMul: the other input of an Add that alone reads it. */
static struct qdqi_bias_place
find_add(const struct qdq_model *model, const struct qdqi_tensor *out)
{
    if (!out || !out->uses || out->uses->next || out->is_output || out->is_captured)
        return (struct qdqi_bias_place){0};
    const struct qdqi_node *add = &model->graph.nodes[out->uses->node];
    int other = 1 - out->uses->input;
    if (!qdqi_node_is(add->proto, "Add") || !add->inputs[other] ||
        !add->inputs[other]->is_fixed)
        return (struct qdqi_bias_place){0};
    return (struct qdqi_bias_place){out->uses->node, other, add->inputs[other], NULL};
}

struct qdqi_bias_place
qdqi_bias_find(const struct qdq_model *model, const struct qdqi_node *layer)
{
    if (qdqi_node_is(layer->proto, "MatMul"))
        return find_add(model, layer->outputs[0]);
    struct qdqi_bias_place place = {
        (size_t)(layer - model->graph.nodes), BIAS,
        layer->proto->n_input > BIAS ? layer->inputs[BIAS] : NULL, NULL};
    if (qdqi_node_is(layer->proto, "Gemm") && !qdqi_gemm_is_unscaled(layer->proto))
        place.why = "alpha or beta of the Gemm is not 1";
    return place;
}

bool
qdqi_bias_read(const struct qdq_model *model, const struct qdqi_bias_place *place,
               size_t outputs, struct qdqi_constant *ret)
{
    const struct qdqi_tensor *t = place->tensor;
    return t && !place->why && t->is_fixed && !qdqi_constant_is_overridable(model, t) &&
           !qdqi_constant_read(model, t, ret, NULL) && ret->dtype == QDQI_FLOAT32 &&
           ret->n == outputs && ret->rank >= 1 &&
           (size_t)ret->dims[ret->rank - 1] == outputs && !ret->strides;
}
