/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits a model into consecutive parts. Each part is a model of its own that reads the
 * outputs of earlier ones. After a change, only the part with the change and the later
 * parts need to be run again.
 */
#ifndef QDQI_TRANSFORM_REWRITE_SPLIT_H
#define QDQI_TRANSFORM_REWRITE_SPLIT_H

#include "files/model/write.h"

/* Stands for the model's own inputs in the place of a part. */
#define QDQI_NO_PART SIZE_MAX

/* A tensor: output `output` of part `part`. */
struct qdqi_split_value {
    const char *name;
    size_t part, output;
};

struct qdqi_split_part {
    /* The inputs of its graph are those listed in `inputs`. Inputs that earlier
       parts make have no type, and neither have outputs for later parts. */
    Onnx__ModelProto *proto;
    struct qdqi_split_value *inputs;
    size_t n_inputs;
    /* Number of outputs that later parts read. The outputs behind them are only the
       model's. */
    size_t n_passed_on;
};

struct qdqi_split {
    struct qdqi_split_part *parts;
    size_t n_parts;                   /* >= 1 */
    struct qdqi_split_value *outputs; /* the model's outputs in their order */
    size_t n_outputs;
    size_t *part_of_slot; /* by slot of a FakeQuant node */
    size_t n_slots;
};

/*
 * Splits a model into at most `most` parts with about equal numbers of FakeQuant nodes.
 * Each split is in front of such a node, at a place that few tensors cross. `proto` must
 * be in topological order; the parts share its messages. NO_MEMORY.
 */
enum qdq_code qdqi_split_model(const Onnx__ModelProto *proto, size_t most,
                               size_t n_slots, struct qdqi_arena *arena,
                               struct qdqi_split *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
