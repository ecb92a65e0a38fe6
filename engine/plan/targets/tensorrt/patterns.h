/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of several nodes that the rules of the target tensorrt refer to, and the role of
   a node in them. They are the marks of this target (plan/placement/planner.h). */
#ifndef QDQI_PLAN_TARGETS_TENSORRT_PATTERNS_H
#define QDQI_PLAN_TARGETS_TENSORRT_PATTERNS_H

#include "plan/placement/planner.h"

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
    /* whether a layer reads its outputs from a pair, perhaps behind copies and activations:
       known for the nodes from which settling has begun (qdqi_mark_int8_reader()) */
    bool *feeds_int8;
};

/* Finds the patterns of the plan's model. NO_MEMORY. */
enum qdq_code qdqi_patterns_begin(struct planner *p,
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

/* Returns whether the node computes several operands of attentions at once, as one MatMul for
   queries, keys and values does. */
bool qdqi_is_packed_projection(const struct planner *p, const struct qdqi_node *node);

/* Returns the patterns of the plan's model. */
static inline struct qdqi_patterns *
qdqi_patterns_of(const struct planner *p)
{
    return p->marks;
}

/* Finds out whether a node feeds int8. All nodes behind it must have been settled. */
void qdqi_mark_int8_reader(struct planner *p, size_t node);

#endif
