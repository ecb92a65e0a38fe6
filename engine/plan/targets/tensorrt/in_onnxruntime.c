/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of which ONNX Runtime computes something else than the model says. A result for TensorRT
 * is often tried there, and its optimizer makes integers of the float weight and of the float bias
 * of a Conv or Gemm between two pairs: the weight with one scale, the bias whether it fits int32 or
 * not. Seen with release 1.31. Warnings tell it; nothing is changed, because TensorRT runs the
 * result as it is.
 */
#include "config.h"
#include "plan/targets/tensorrt/tensorrt.h"

#include "plan/placement/lint.h"

static bool
has_pair(const struct planner *p, const struct qdqi_tensor *t)
{
    for (const struct qdqi_use *use = t->uses; use; use = use->next) {
        const struct qdq_layer *layer = p->by_node[use->node];
        if (layer && qdqi_layer_has_pair(layer, use->input))
            return true;
    }
    return false;
}

/* Returns whether nothing but clipping stands between the layer and a pair. */
static bool
makes_a_pair(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const clipping[] = {"Relu", "Clip", NULL};
    const struct qdqi_tensor *t = qdqi_node_of(p, layer)->outputs[0];
    while (t && !t->is_output && !has_pair(p, t)) {
        const struct qdqi_use *use = t->uses;
        const struct qdqi_node *next =
            use && !use->next ? &p->model->graph.nodes[use->node] : NULL;
        t = next && qdqi_node_is_one_of(next->proto, clipping) ? next->outputs[0]
                                                               : NULL;
    }
    return t && !t->is_output;
}

static bool
stands_between_pairs(const struct planner *p, const struct qdq_layer *layer,
                     const char *const *ops)
{
    return qdqi_node_is_one_of(qdqi_node_of(p, layer)->proto, ops) &&
           qdqi_layer_has_pair(layer, 0) && makes_a_pair(p, layer);
}

static bool
has_float_weight(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Conv", "ConvTranspose", "Gemm", NULL};
    return layer->weight_input < 0 &&
           qdqi_input_is_constant(qdqi_node_of(p, layer), 1) &&
           stands_between_pairs(p, layer, ops);
}

static bool
has_float_bias(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Conv", "Gemm", NULL};
    return layer->weight_input == 1 && layer->n_inputs == 1 &&
           qdqi_input_is_constant(qdqi_node_of(p, layer), 2) &&
           stands_between_pairs(p, layer, ops);
}

/* Notes the biases whose range is checked when the scales are known. */
static enum qdq_code
note_biases(struct planner *p, struct qdq_error *err)
{
    struct qdq_plan *plan = p->plan;
    plan->float_biases =
        qdqi_arena_array(plan->arena, p->n_layers, sizeof *plan->float_biases);
    if (!plan->float_biases)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < p->n_layers; i++) {
        const struct qdq_layer *layer = &p->layers[i];
        if (!has_float_bias(p, layer))
            continue;
        plan->float_biases[plan->n_float_biases++] = (struct qdqi_planned_bias){
            .tensor = qdqi_node_of(p, layer)->inputs[2],
            .layer = i,
            .input = 2,
            .activation = layer->input_rows[0],
            .weight = layer->weight_row,
        };
    }
    return QDQ_OK;
}

enum qdq_code
qdqi_tensorrt_check_in_onnxruntime(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_layer_count count = qdqi_count_layers(p, has_float_weight);
    enum qdq_code code =
        qdqi_warn_count(p, &count, "onnxruntime_differs",
                        "the weight stays in floating point between two pairs. "
                        "TensorRT computes that as "
                        "the model says, and ONNX Runtime makes the weight int8 with "
                        "one scale where it "
                        "runs the same file, by its default optimizations: say "
                        "\"quantize_input\": false, "
                        "too, or run the file there without optimizations",
                        err);
    return code ? code : note_biases(p, err);
}
