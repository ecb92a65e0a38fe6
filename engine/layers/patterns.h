/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of several nodes that the targets' rules speak of, and the part that a node
   has in them. */
#ifndef QDQI_LAYERS_PATTERNS_H
#define QDQI_LAYERS_PATTERNS_H

#include "layers/layers.h"

/* What a node is to an attention: scores = MatMul, a mask's Add, Softmax, MatMul. */
enum qdqi_attention {
    QDQI_NO_ATTENTION,
    QDQI_ATTENTION_MATMUL,
    QDQI_ATTENTION_LONG, /* a MatMul of a sequence known to be longer than 512 */
    QDQI_ATTENTION_SOFT, /* the mask's Add, the Softmax */
};

struct qdqi_patterns {
    const struct qdqi_layers *graph;
    /* By node: */
    uint8_t *attention; /* enum qdqi_attention */
    bool *makes_output; /* of the graph, as it is or passed on */
};

/* Borrows the graph. NO_MEMORY. */
enum qdq_code qdqi_patterns_new(const struct qdqi_layers *graph,
                                struct qdqi_arena *arena, struct qdqi_patterns **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Whether a node is one of these operators of ONNX's own domain: NULL ends the list. */
bool qdqi_is_one_of(const struct qdqi_node *node, const char *const *ops);

/* Conv or ConvTranspose; what makes the data of one: that, or a BatchNormalization
   behind it. NULL is neither. */
bool qdqi_is_conv(const struct qdqi_node *node);
bool qdqi_ends_conv(const struct qdqi_layers *graph, const struct qdqi_node *node);

/* A layer with a weight, also seen through a BatchNormalization. */
bool qdqi_ends_weighted(const struct qdqi_layers *graph, const struct qdqi_node *node);

/* An activation or BatchNormalization: fused with the layer that feeds it. */
bool qdqi_is_pointwise(const struct qdqi_node *node);

/* AveragePool, GlobalAveragePool, MaxPool, or a ReduceMean that stands for one. */
bool qdqi_is_pooling(const struct qdqi_layers *graph, const struct qdqi_node *node);

/* A Mul of a tensor and its own Sigmoid or HardSigmoid; another Mul by such a gate. */
bool qdqi_is_swish(const struct qdqi_layers *graph, const struct qdqi_node *node);
bool qdqi_is_gated(const struct qdqi_layers *graph, const struct qdqi_node *node);

/* A Mul or Add of computed tensors that an exporter made of LayerNormalization or of
   Gelu by erf. */
bool qdqi_is_norm_or_gelu(const struct qdqi_layers *graph,
                          const struct qdqi_node *node);

#endif
