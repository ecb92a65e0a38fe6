/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about single nodes. */
#ifndef QDQI_GRAPH_LAYERS_OPERATORS_H
#define QDQI_GRAPH_LAYERS_OPERATORS_H

#include "files/model/model.h"

/* Returns whether the operator is one of the products with a weight: Conv, Gemm,
   MatMul. */
bool qdqi_is_product(const char *op);

/* Returns whether the node is an activation function or a BatchNormalization, which
   runtimes fuse with the layer in front of it. */
bool qdqi_is_pointwise(const struct qdqi_node *node);

/* Returns the node that makes a tensor, or NULL for NULL and for other tensors. */
static inline const struct qdqi_node *
qdqi_maker_of(const struct qdqi_graph *graph, const struct qdqi_tensor *t)
{
    return t && t->producer >= 0 ? &graph->nodes[t->producer] : NULL;
}

/* Returns the node that makes a tensor, in front of Identities, which runtimes remove. */
const struct qdqi_node *qdqi_maker_before_copies(const struct qdqi_graph *graph,
                                                 const struct qdqi_tensor *t);

/* Returns whether the node is a Gemm or MatMul whose right operand, a matrix, a DequantizeLinear makes
   by a scale for each index of the axis that is summed over, perhaps in front of Transposes. *ret_square: the matrix is square. */
bool qdqi_has_scales_along_sum(const struct qdqi_graph *graph,
                               const struct qdqi_node *node, bool *ret_square);

/* Returns whether the node is a Transpose that swaps the two axes of a matrix. One with other numbers
   of inputs or outputs than the operator has is none. */
bool qdqi_swaps_axes(const struct qdqi_node *node);

/* Returns the product of the node's strides along all axes: 1 where it has none. */
double qdqi_strides(const struct qdqi_node *node);

#endif
