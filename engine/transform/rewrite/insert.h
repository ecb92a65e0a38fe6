/* SPDX-License-Identifier: Apache-2.0 */
/* The edits that carry out a plan: Q/DQ pairs for the result, Observe nodes for
   calibration and FakeQuant nodes for what-ifs. */
#ifndef QDQI_TRANSFORM_REWRITE_INSERT_H
#define QDQI_TRANSFORM_REWRITE_INSERT_H

#include "files/model/write.h"
#include "numbers/arithmetic/params.h"
#include "plan/placement/plan.h"

/* The domain of our operators. Each has the attribute "slot". */
#define QDQI_DOMAIN "qdqd"
#define QDQI_OBSERVE "Observe"      /* one input, no output */
#define QDQI_MOMENT "Moment"        /* one input, no output */
#define QDQI_PEAK "Peak"            /* one input, no output */
#define QDQI_FAKE_QUANT "FakeQuant" /* one input, one output */

struct qdqi_metadata {
    const char *key, *value;
};

/*
 * Returns the source with one Q/DQ pair for each planned tensor, which all planned
 * edges share. If a weight's integers are given, they are an initializer with only a
 * DequantizeLinear behind it, and the float weight is removed unless another node reads
 * it.
 */
enum qdq_code qdqi_insert_pairs(const struct qdq_model *source,
                                const struct qdq_plan *plan,
                                const struct qdqi_scales *scales,
                                const struct qdqi_metadata *metadata, size_t n_metadata,
                                struct qdqi_arena *arena, struct qdqi_edited *ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Returns the source with one Observe node for each planned activation i with wanted[i],
 * whose slot is i, and a Moment node for each of the n inputs of layers, whose slot is its
 * index. An activation with blocked[i] > 0 may be in blocks (transform/rewrite/blocked.h); `blocked`
 * may be NULL.
 */
enum qdq_code qdqi_insert_observers(const struct qdq_model *source,
                                    const struct qdq_plan *plan, const bool *wanted,
                                    const size_t *blocked,
                                    const struct qdqi_tensor *const *inputs, size_t n,
                                    struct qdqi_arena *arena,
                                    const Onnx__ModelProto **ret,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the source with one node of the operator, which has one input and no output,
   for each of the n tensors. The slot of node i is i. */
enum qdq_code qdqi_insert_sinks(const struct qdq_model *source, const char *op,
                                const struct qdqi_tensor *const *tensors, size_t n,
                                struct qdqi_arena *arena, const Onnx__ModelProto **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* The array that the parameters of a FakeQuant node come from. */
enum qdqi_fake_kind {
    QDQI_FAKE_ACTIVATION, /* the plan's activations */
    QDQI_FAKE_WEIGHT,     /* the plan's weights */
    QDQI_FAKE_BIAS,       /* the shifted biases of the scales */
    QDQI_FAKE_INT_BIAS    /* the biases of the scales, which are stored as integers */
};

/* The place of a FakeQuant node: an input of a layer that the plan quantizes, or its
   bias. */
struct qdqi_fake_place {
    size_t layer; /* index into the plan's layers; their number: it is no layer's */
    enum qdqi_fake_kind kind;
    size_t planned; /* index into the array */
    size_t node;    /* the reader, */
    int input;      /* and its input; -1: it is the output of the graph */
};

/*
 * Returns the source with one FakeQuant node for each planned edge, for each layer's
 * weight and for each shifted bias. Layers that share a tensor have a node each, so each
 * layer can be switched alone. Slot i is at places[i]; the places are in the order of the
 * layers. Behind them are those of an activation that all readers read from its pair: its
 * other readers, and the output of the graph that it is.
 */
enum qdq_code
qdqi_insert_fakes(const struct qdq_model *source, const struct qdq_plan *plan,
                  const struct qdqi_scales *scales, struct qdqi_arena *arena,
                  struct qdqi_fake_place **ret_places, size_t *ret_n,
                  const Onnx__ModelProto **ret, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
