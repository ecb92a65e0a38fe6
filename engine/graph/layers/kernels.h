/* SPDX-License-Identifier: Apache-2.0 */
/* The roles that operators have in ONNX Runtime's integer kernels; see
   tbl/kernels.h. */
#ifndef QDQI_GRAPH_LAYERS_KERNELS_H
#define QDQI_GRAPH_LAYERS_KERNELS_H

#include "files/model/model.h"

enum qdqi_role {
    QDQI_NO_KERNEL,
    QDQI_COMPUTES,
    QDQI_UNIT,
    QDQI_CLIPS,
    QDQI_MOVES,
};

/* Returns the role of one of ONNX's own operators, from tbl/kernels.h. */
enum qdqi_role qdqi_kernel_role(const char *op);

/* Returns why the integer kernel that ONNX Runtime would make of the node between
   pairs does not run, or NULL if it runs. */
const char *qdqi_kernel_hindrance(const struct qdqi_node *node);

/* Returns whether the operator is one of the products with a weight: Conv, Gemm,
   MatMul. */
bool qdqi_is_product(const char *op);

/* Returns the product of the node's strides along all axes: 1 where it has none. */
double qdqi_strides(const struct qdqi_node *node);

#endif
