/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/layers/operators.h"

#include <string.h>

bool
qdqi_is_product(const char *op)
{
    return strcmp(op, "Conv") == 0 || strcmp(op, "Gemm") == 0 ||
           strcmp(op, "MatMul") == 0;
}

bool
qdqi_is_pointwise(const struct qdqi_node *node)
{
    static const char *const ops[] = {"BatchNormalization",
                                      "Relu",
                                      "Clip",
                                      "LeakyRelu",
                                      "PRelu",
                                      "Elu",
                                      "Selu",
                                      "Celu",
                                      "Gelu",
                                      "Mish",
                                      "Softplus",
                                      "Sigmoid",
                                      "HardSwish",
                                      "Tanh",
                                      "Swish",
                                      "ThresholdedRelu",
                                      "HardSigmoid",
                                      NULL};
    return qdqi_node_is_one_of(node->proto, ops);
}

double
qdqi_strides(const struct qdqi_node *node)
{
    const Onnx__AttributeProto *a = qdqi_node_attribute(node->proto, "strides");
    double product = 1;
    for (size_t i = 0; a && i < a->n_ints; i++)
        product *= (double)a->ints[i];
    return product;
}

bool
qdqi_swaps_axes(const struct qdqi_node *node)
{
    const Onnx__AttributeProto *perm = qdqi_node_attribute(node->proto, "perm");
    return qdqi_node_is(node->proto, "Transpose") && node->proto->n_input == 1 &&
           node->inputs[0] && node->proto->n_output == 1 && node->outputs[0] &&
           (!perm || (perm->n_ints == 2 && perm->ints[0] == 1 && perm->ints[1] == 0));
}

const struct qdqi_node *
qdqi_maker_before_copies(const struct qdqi_graph *graph, const struct qdqi_tensor *t)
{
    const struct qdqi_node *maker = qdqi_maker_of(graph, t);
    while (maker && qdqi_node_is(maker->proto, "Identity") && maker->proto->n_input > 0)
        maker = qdqi_maker_of(graph, maker->inputs[0]);
    return maker;
}

bool
qdqi_has_scales_along_sum(const struct qdqi_graph *graph, const struct qdqi_node *node,
                          bool *ret_square)
{
    enum { RIGHT = 1, SCALE = 1, OPERANDS = 2, MOST_TURNS = 16 };
    const bool gemm = qdqi_node_is(node->proto, "Gemm");
    const int64_t *dims, *scales;
    size_t rank, scale_rank;
    if ((!gemm && !qdqi_node_is(node->proto, "MatMul")) ||
        node->proto->n_input < OPERANDS)
        return false;
    bool turned = gemm && qdqi_node_int(node->proto, "transB", 0);
    const struct qdqi_node *maker =
        qdqi_maker_before_copies(graph, node->inputs[RIGHT]);
    for (int i = 0; i < MOST_TURNS && maker && qdqi_swaps_axes(maker); i++) {
        maker = qdqi_maker_before_copies(graph, maker->inputs[0]);
        turned = !turned;
    }
    if (!maker || !qdqi_node_is(maker->proto, "DequantizeLinear") ||
        maker->proto->n_input <= SCALE || !maker->inputs[SCALE] ||
        !qdqi_tensor_dims(maker->inputs[0], &dims, &rank) || rank != 2 ||
        !qdqi_tensor_dims(maker->inputs[SCALE], &scales, &scale_rank) ||
        scale_rank != 1 || scales[0] < 2)
        return false;
    const int64_t axis = qdqi_node_int(maker->proto, "axis", 1);
    *ret_square = dims[0] == dims[1];
    return (axis < 0 ? axis + 2 : axis) == (turned ? 1 : 0);
}
