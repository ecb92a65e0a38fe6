/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of struct qdq_plan, for those who carry it out. */
#ifndef QDQI_PLAN_PLAN_H
#define QDQI_PLAN_PLAN_H

#include "model/model.h"
#include "number/format.h"
#include "qdq/plan.h"

/* An activation that gets a pair. */
struct qdqi_planned_tensor {
    const struct qdqi_tensor *tensor;
    enum qdqi_dtype dtype; /* float32 or float16 */
    enum qdqi_format format;
    bool symmetric;
    bool everywhere; /* all who read the tensor read it from its pair */
    bool is_unit;    /* it lies in [0, 1], whatever the data */
    size_t leader;   /* the activation whose numbers it has: itself, or another */
};

/* A bias that is stored as int32: its scale is the product of the activation's and the
   weight's, its zero point 0. */
struct qdqi_planned_bias {
    const struct qdqi_tensor *tensor; /* [channels], float32 */
    size_t layer;                     /* of the plan's */
    int input;                        /* of that layer's node */
    size_t activation, weight;        /* the layer's, of those planned */
};

#define QDQI_NONE SIZE_MAX

/* A weight that gets one pair, shared by all layers that use it with the same axis. */
struct qdqi_planned_weight {
    const struct qdqi_tensor *tensor;
    int axis;          /* of the scales; -1: per tensor */
    int64_t block;     /* elements along it that share one; 0: it has channels */
    const char *layer; /* the first that uses it */
    enum qdqi_format format;
    bool is_reduced; /* its integers are from -64 to 64 */
    size_t
        next_axis; /* the next weight of the same tensor, with another axis; QDQI_NONE */
};

struct qdq_plan {
    struct qdqi_arena *arena;
    struct qdq_plan_view view;
    struct qdqi_planned_tensor *activations; /* view.n_tensors, in the view's order */
    struct qdqi_planned_weight *weights;     /* view.n_weights */
    const bool *reads_raw; /* by layer: what it reads is read as it is, though all else
                              reads it from its pair; NULL: none does */
    struct qdqi_planned_bias *biases; /* NULL: none */
    size_t n_biases;
};

#endif
