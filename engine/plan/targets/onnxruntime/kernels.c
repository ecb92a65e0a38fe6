/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan/targets/onnxruntime/kernels.h"

#include <stddef.h>
#include <string.h>

/*
 * The operators that onnxruntime's CPU provider runs in integers or passes integers
 * through. The target onnxruntime quantizes these by default; it uses this table in the
 * place of the states in ground/tbl/layers.h.
 *
 *   COMPUTES  has an integer kernel, which is used if all inputs and outputs have pairs
 *   UNIT      the same, and its output is in [0, 1] for any data
 *   CLIPS     is folded into the QuantizeLinear behind it if the lowest number of that
 *             format is the lower bound of the clipping; so it gets a pair behind it and
 *             none before it
 *   MOVES     moves integers as it moves floats: it is quantized if its input is, with the
 *             scale and zero point of the input
 *
 * Source: onnxruntime's qdq_selector_action_transformer.cc and relu_quant_rewrite.cc.
 */
static const struct {
    const char *op;
    enum qdqi_role role;
} kernels[] = {
    {"Conv", QDQI_COMPUTES},
    {"Gemm", QDQI_COMPUTES},
    {"MatMul", QDQI_COMPUTES},
    {"Add", QDQI_COMPUTES},
    {"Mul", QDQI_COMPUTES},
    {"AveragePool", QDQI_COMPUTES},
    {"GlobalAveragePool", QDQI_COMPUTES},
    {"LeakyRelu", QDQI_COMPUTES},
    {"Concat", QDQI_COMPUTES},
    {"Sigmoid", QDQI_UNIT},
    {"Softmax", QDQI_UNIT},
    {"Relu", QDQI_CLIPS},
    {"Clip", QDQI_CLIPS},
    {"MaxPool", QDQI_MOVES},
    {"Reshape", QDQI_MOVES},
    {"Transpose", QDQI_MOVES},
    {"Squeeze", QDQI_MOVES},
    {"Unsqueeze", QDQI_MOVES},
    {"Flatten", QDQI_MOVES},
    {"Gather", QDQI_MOVES},
    {"Slice", QDQI_MOVES},
    {"Split", QDQI_MOVES},
    {"Resize", QDQI_MOVES},
    {"Pad", QDQI_MOVES},
    {"Identity", QDQI_MOVES},
    {"Dropout", QDQI_MOVES},
};

enum qdqi_role
qdqi_kernel_role(const char *op)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].op, op) == 0)
            return kernels[i].role;
    return QDQI_NO_KERNEL;
}

bool
qdqi_has_kernel(const char *op)
{
    enum qdqi_role role = qdqi_kernel_role(op);
    return role == QDQI_COMPUTES || role == QDQI_UNIT;
}

const char *
qdqi_kernel_hindrance(const struct qdqi_node *node)
{
    if (qdqi_node_is(node->proto, "AveragePool") &&
        qdqi_node_attribute(node->proto, "dilations"))
        return "the integer kernel of AveragePool has no dilations";
    if (qdqi_node_is(node->proto, "AveragePool") &&
        qdqi_node_int(node->proto, "ceil_mode", 0) &&
        qdqi_node_int(node->proto, "count_include_pad", 0))
        return "the integer kernel of AveragePool counts other windows";
    return NULL;
}
