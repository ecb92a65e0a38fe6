/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rule C30. ONNX Runtime 1.31 makes a MatMulNBits with blocks of 32 inputs of a weight of 4 or 8 bits that has a scale
 * for each channel, and rounds what the layer reads for each such block. The kernel takes less time with longer blocks,
 * and with a scale for each block the weight is more exact, too.
 */
#include "config.h"
#include "plan/targets/onnxruntime/onnxruntime.h"

#include "graph/layers/operators.h"
#include "plan/placement/formats.h"

/* The elements of a block by the bits of a weight, and the inputs of a layer from which on it has blocks. Longer ones
   take less time still, and cost accuracy by the rounding of what the layer reads, which weights of 4 bits hide. */
enum { BLOCK_OF_8_BITS = 64, BLOCK_OF_4_BITS = 128, LEAST_INPUTS = 256 };
enum { OPSET_BLOCKS = 21, RIGHT = 1, COLUMNS = 1 };

static bool
has_channels(const struct qdq_layer_format *f)
{
    return (qdqi_is_8_bit_integer(f->weights.format) ||
            f->weights.format == QDQ_FORMAT_INT4 ||
            f->weights.format == QDQ_FORMAT_UINT4) &&
           f->weights.granularity == QDQ_PER_CHANNEL &&
           f->weights.storage == QDQ_STORE_DQ;
}

bool
qdqi_kernel_blocks_decide(const struct qdq_spec *spec, const char **ret_reason)
{
    if (!spec->weight_only || spec->dynamic)
        *ret_reason = "activations are quantized, too";
    else if (spec->recipe < QDQ_RECIPE_AUTO)
        *ret_reason = "the recipe is none";
    else if (spec->decoder != QDQ_DECODER_AS_IS)
        *ret_reason = "output.decoder says how weights are stored";
    else if (!(spec->open & QDQ_CHOICE_GRANULARITY))
        *ret_reason = "weights.granularity is stated";
    else if (!qdqi_spec_has(spec, has_channels))
        *ret_reason = "the rule is of weights that are stored as integers of 4 or 8 "
                      "bits, with a scale for each channel";
    else {
        *ret_reason = "the kernels take less time";
        return true;
    }
    return false;
}

/* Returns whether a Gemm or MatMul multiplies by a constant matrix on the right that has enough rows, or columns
   where the Gemm turns it. */
static bool
has_many_inputs(const struct qdqi_node *node)
{
    const bool gemm = qdqi_node_is(node->proto, "Gemm");
    const size_t axis = gemm && qdqi_node_int(node->proto, "transB", 0) ? 1 : 0;
    const int64_t *dims;
    size_t rank;
    return (gemm || qdqi_node_is(node->proto, "MatMul")) &&
           node->proto->n_input > RIGHT && qdqi_input_is_constant(node, RIGHT) &&
           qdqi_tensor_dims(node->inputs[RIGHT], &dims, &rank) && rank == 2 &&
           dims[axis] >= LEAST_INPUTS;
}

int64_t
qdqi_onnxruntime_least_opset(const struct qdq_spec *spec, const struct qdq_model *model)
{
    for (size_t i = 0; qdq_spec_has_rule(spec, C30) && i < model->graph.n_nodes; i++)
        if (has_many_inputs(&model->graph.nodes[i]))
            return OPSET_BLOCKS;
    return 0;
}

/* Returns whether the layer alone reads its weight, which has a scale for each column that no entry asks for. */
static bool
can_have_blocks(const struct planner *p, const struct qdq_layer *layer)
{
    const struct qdq_layer_entry *entry = p->selection.choices[layer->node].entry;
    if (layer->weight_input != RIGHT || layer->weight_axis != COLUMNS ||
        (entry && entry->weights &&
         entry->weights->granularity != QDQ_GRANULARITY_DEFAULT))
        return false;
    const struct qdqi_planned_weight *w = &p->plan->weights[layer->weight_row];
    const struct qdqi_use *use = w->tensor->uses;
    return has_channels(layer->format) && has_many_inputs(qdqi_node_of(p, layer)) &&
           w->axis == COLUMNS && w->block == 0 && !w->table && !w->apart &&
           !w->is_table && !w->is_gates && use && !use->next && !w->tensor->is_captured;
}

void
qdqi_kernel_blocks_plan(struct planner *p)
{
    if (!qdqi_rule_is_on(p, C30) || !p->has_axes ||
        qdqi_model_opset(p->model->proto) < OPSET_BLOCKS)
        return;
    for (size_t i = 0; i < p->n_layers; i++) {
        struct qdq_layer *layer = &p->layers[i];
        if (layer->weight_input < 0 || !can_have_blocks(p, layer))
            continue;
        struct qdqi_planned_weight *w = &p->plan->weights[layer->weight_row];
        w->block = qdqi_is_8_bit_integer(layer->format->weights.format)
                       ? BLOCK_OF_8_BITS
                       : BLOCK_OF_4_BITS;
        w->axis = layer->weight_axis = 1 - COLUMNS;
        qdqi_rule_cite(layer, C30);
    }
}
