/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/targets/openvino/blocks.h"

#include "plan/placement/layer_formats.h"
#include "plan/placement/lint.h"

/* Returns whether ONNX Runtime makes an integer kernel of the layer, and its weight has blocks.
   It makes none of a Gemm with blocks. */
static bool
fails_by_blocks(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Conv", "MatMul", NULL};
    const struct qdqi_node *node = qdqi_node_of(p, layer);
    return qdqi_layer_multiplies_bytes(p, layer) && layer->n_inputs > 0 &&
           layer->weight_input >= 0 && qdqi_node_is_one_of(node->proto, ops) &&
           qdqi_block_of(p, layer, node->inputs[layer->weight_input]) > 0;
}

enum qdq_code
qdqi_warn_blocks(struct planner *p, struct qdq_error *err)
{
    const struct qdqi_layer_count count = qdqi_count_layers(p, fails_by_blocks);
    return qdqi_warn_count(
        p, &count, "target_format",
        "ONNX Runtime fails in its first run of 8-bit weights in blocks behind 8-bit "
        "activations: choose another granularity, or \"activations\": \"none\"",
        err);
}
