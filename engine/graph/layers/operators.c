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
