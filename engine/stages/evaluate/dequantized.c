/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/dequantized.h"

#include "files/model/constant.h"
#include "plan/placement/target.h"

#include <string.h>

#define IN_EACH_RUN ", so its weight is dequantized in each run"

enum { BIAS = 2, MIN_BLOCK = 16, MAX_BLOCK = 256 };

static bool
is_transposed_or_scaled(const struct qdqi_node *node)
{
    return qdqi_node_is(node->proto, "Gemm") &&
           (qdqi_node_int(node->proto, "transA", 0) ||
            qdqi_node_int(node->proto, "transB", 0) ||
            !qdqi_gemm_is_unscaled(node->proto));
}

/* Returns whether a Gemm has a bias that is no constant with one axis. */
static bool
has_wide_bias(const struct qdqi_attempt *a, const struct qdqi_node *node)
{
    struct qdqi_constant bias;
    return qdqi_node_is(node->proto, "Gemm") && node->proto->n_input > BIAS &&
           node->inputs[BIAS] &&
           (!node->inputs[BIAS]->is_fixed ||
            qdqi_constant_read(a->model, node->inputs[BIAS], &bias, NULL) ||
            bias.rank != 1 || bias.n < 2);
}

static bool
is_clipped(const struct qdqi_attempt *a, const struct qdqi_node *node)
{
    const struct qdqi_use *use = node->outputs[0] ? node->outputs[0]->uses : NULL;
    const struct qdqi_hooks *hooks = a->spec->target->hooks;
    return use && !use->next && hooks->is_clipping &&
           hooks->is_clipping(a->model->graph.nodes[use->node].proto->op_type);
}

static bool
has_odd_blocks(const struct qdq_layer *layer)
{
    const int64_t block = layer->weight_block;
    return block > 0 &&
           (block < MIN_BLOCK || block > MAX_BLOCK || (block & (block - 1)) != 0);
}

const char *
qdqi_why_dequantized(const struct qdqi_attempt *a, const struct qdq_layer *layer)
{
    const struct qdqi_node *node = &a->model->graph.nodes[layer->node];
    if (!strstr(layer->weight_dtype ? layer->weight_dtype : "", "int"))
        return "the weight's format is one of floats" IN_EACH_RUN;
    if (layer->weight_input != 1 || strcmp(layer->op, "Conv") == 0)
        return "the runtime multiplies floats by integers only on the right of a "
               "MatMul or "
               "Gemm" IN_EACH_RUN;
    if (has_odd_blocks(layer))
        return "the blocks are not of 16, 32, 64, 128 or 256 elements" IN_EACH_RUN;
    if (node->inputs[1]->uses && node->inputs[1]->uses->next)
        return "several nodes read the weight" IN_EACH_RUN;
    if (is_transposed_or_scaled(node))
        return "the Gemm has transA, transB, alpha or beta" IN_EACH_RUN;
    if (has_wide_bias(a, node))
        return "the Gemm's bias is no constant with one number for each "
               "column" IN_EACH_RUN;
    if (is_clipped(a, node))
        return "a Relu or Clip reads the layer" IN_EACH_RUN;
    return "the runtime has no kernel for the layer as it is" IN_EACH_RUN;
}
