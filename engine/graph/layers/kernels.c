/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "graph/layers/kernels.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *op;
    enum qdqi_role role;
} kernels[] = {
#define KERNEL(op, role) {op, QDQI_##role},
#include "ground/tbl/kernels.h"
#undef KERNEL
};

enum qdqi_role
qdqi_kernel_role(const char *op)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].op, op) == 0)
            return kernels[i].role;
    return QDQI_NO_KERNEL;
}

/* QLinearAveragePool does not support the attribute dilations, not even with all of
   them 1. */
const char *
qdqi_kernel_hindrance(const struct qdqi_node *node)
{
    if (qdqi_node_is(node->proto, "AveragePool") &&
        qdqi_node_attribute(node->proto, "dilations"))
        return "the integer kernel of AveragePool has no dilations";
    return NULL;
}

bool
qdqi_is_product(const char *op)
{
    return strcmp(op, "Conv") == 0 || strcmp(op, "Gemm") == 0 ||
           strcmp(op, "MatMul") == 0;
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
