/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of several nodes that the rules of targets refer to, and the role of a
   node in them. */
#ifndef QDQI_GRAPH_LAYERS_PATTERNS_H
#define QDQI_GRAPH_LAYERS_PATTERNS_H

#include "graph/layers/layers.h"

/* The role of a node in an attention: MatMul (scores), Add (mask), Softmax, MatMul. */
enum qdqi_attention {
    QDQI_NO_ATTENTION,
    QDQI_ATTENTION_MATMUL,
    /* a MatMul of a sequence that is known to be longer than 512 */
    QDQI_ATTENTION_LONG,
    QDQI_ATTENTION_SOFT, /* the Add of the mask, or the Softmax */
};

struct qdqi_patterns {
    const struct qdqi_layers *graph;
    /* Arrays by node: */
    uint8_t *attention; /* values of enum qdqi_attention */
    /* whether it makes an output of the graph, directly or passed on */
    bool *makes_output;
    bool *squared; /* whether its output is squared (graph/layers/spectra.h) */
    /* whether its output is the largest of several numbers, and whether a pool and a function
       that falls made it (graph/layers/fused.h) */
    bool *extreme, *turned;
};

/* Borrows the graph. NO_MEMORY. */
enum qdq_code qdqi_patterns_new(const struct qdqi_layers *graph,
                                struct qdqi_arena *arena, struct qdqi_patterns **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * qdqi_is_conv() returns whether the node is a Conv or a ConvTranspose.
 * qdqi_ends_conv() also accepts a BatchNormalization behind one. Both return false for
 * NULL.
 */
bool qdqi_is_conv(const struct qdqi_node *node);
bool qdqi_ends_conv(const struct qdqi_layers *graph, const struct qdqi_node *node);

/* Returns whether the node is a layer with a weight or a BatchNormalization behind
   one. */
bool qdqi_ends_weighted(const struct qdqi_layers *graph, const struct qdqi_node *node);

/* Returns whether the node is an activation function or a BatchNormalization, which
   runtimes fuse with the layer in front of it. */
bool qdqi_is_pointwise(const struct qdqi_node *node);

/* Returns whether the node is an AveragePool, GlobalAveragePool, MaxPool, or a
   ReduceMean that stands for one. */
bool qdqi_is_pooling(const struct qdqi_layers *graph, const struct qdqi_node *node);

/*
 * qdqi_is_swish() returns whether the node is a Mul of a tensor and its own Sigmoid or
 * HardSigmoid. qdqi_is_gated() returns whether it is another Mul by a Sigmoid or
 * HardSigmoid.
 */
bool qdqi_is_swish(const struct qdqi_layers *graph, const struct qdqi_node *node);
bool qdqi_is_gated(const struct qdqi_layers *graph, const struct qdqi_node *node);

/* Returns whether the node is a Mul or Add of computed tensors that is part of an
   exported LayerNormalization or of Gelu with Erf. */
bool qdqi_is_norm_or_gelu(const struct qdqi_layers *graph,
                          const struct qdqi_node *node);

#endif
