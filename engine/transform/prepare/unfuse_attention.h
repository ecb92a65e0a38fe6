/* SPDX-License-Identifier: Apache-2.0 */
/* The operator Attention of com.microsoft, which has the weight of three projections inside. */
#ifndef QDQI_TRANSFORM_PREPARE_UNFUSE_ATTENTION_H
#define QDQI_TRANSFORM_PREPARE_UNFUSE_ATTENTION_H

#include "graph/edit/edit.h"

/* Returns whether the node is an Attention of com.microsoft with a constant weight of float32. */
bool qdqi_is_attention(const struct qdqi_node *node);

/*
 * Writes it as operators of ONNX, which compute the same: a MatMul that has its name and its weight, an Add of
 * the bias, a Split into queries, keys and values, and a product, a Softmax and a product by heads. A
 * mask of zeros and ones for each key, or for each query and key, and an addend of the scores are kept; where
 * positions see those before them alone, and `causal_too`, a Where says so. A weight
 * may be computed from constants, but for what `named` has (compute.h). Returns NULL, or the reason why it
 * stays as it is.
 */
const char *qdqi_unfuse_attention(const struct qdq_model *model, struct qdqi_edit *edit,
                                  struct qdqi_arena *arena,
                                  const struct qdqi_map *named, size_t node,
                                  bool causal_too);

#endif
