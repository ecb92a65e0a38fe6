/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/targets/shared/blocks.h"

#include "plan/placement/formats.h"

/* Returns whether ONNX Runtime makes an integer kernel of the layer, and its weight has blocks.
   It makes none of a Gemm with blocks. */
static bool
fails_by_blocks(const struct planner *p, const struct qdq_layer *layer)
{
    static const char *const ops[] = {"Conv", "MatMul", NULL};
    const struct qdqi_node *node = &p->model->graph.nodes[layer->node];
    return layer->n_inputs > 0 && layer->weight_input >= 0 &&
           qdqi_node_is_one_of(node->proto, ops) &&
           qdqi_block_of(p, layer, node->inputs[layer->weight_input]) > 0;
}

enum qdq_code
qdqi_warn_blocks(struct planner *p, struct qdq_error *err)
{
    const char *first = NULL;
    size_t n = 0;
    for (size_t i = 0; qdqi_multiplies_bytes(p->spec) && i < p->n_layers; i++) {
        const struct qdq_layer *layer = &p->layers[i];
        if (!fails_by_blocks(p, layer))
            continue;
        first = first ? first : layer->name;
        n++;
    }
    if (n == 0)
        return QDQ_OK;
    return qdqi_warn(&p->warnings, p->plan->arena, err, "target_format", first,
                     "%zu layer%s (%.128s%s): ONNX Runtime fails in its first run of "
                     "8-bit weights in blocks behind 8-bit activations: choose another "
                     "granularity, or \"activations\": \"none\"",
                     n, n == 1 ? "" : "s", first, n == 1 ? "" : ", ...");
}
