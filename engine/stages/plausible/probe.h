/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The float model with a few of its activations as further outputs: those of the first operators
 * that can be dead or saturated. They tell something of the data without a quantized model. Beside it
 * the part of the model that makes these alone, for samples whose outputs are known.
 */
#ifndef QDQI_STAGES_PLAUSIBLE_PROBE_H
#define QDQI_STAGES_PLAUSIBLE_PROBE_H

#include "files/model/write.h"

enum { QDQI_MOST_PROBES = 3 };

/* An activation whose values have bounds; one that does not is -inf or +inf. */
struct qdqi_probe {
    const char *tensor;
    double low, high;
};

struct qdqi_probed {
    Onnx__ModelProto model; /* the first outputs are those of the model */
    Onnx__GraphProto graph;
    struct qdqi_probe probes[QDQI_MOST_PROBES];
    size_t n;
    /* what makes the probes, which are its only outputs; without nodes where that cannot be told */
    Onnx__ModelProto front;
    Onnx__GraphProto front_graph;
};

/* Makes both, which share their messages with the given model, and *ret must not move. Without such
   operators the first has the same outputs. NO_MEMORY. */
enum qdq_code qdqi_probe(const struct qdq_model *model, struct qdqi_arena *arena,
                         struct qdqi_probed *ret, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
