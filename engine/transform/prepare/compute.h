/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes tensors that follow from constants alone, as a runtime does when it loads the model:
 * arithmetic with broadcasting, reductions, and operators that move elements, of ONNX opsets
 * 1 to 25. Only float32 is computed.
 */
#ifndef QDQI_TRANSFORM_PREPARE_COMPUTE_H
#define QDQI_TRANSFORM_PREPARE_COMPUTE_H

#include "files/model/constant.h"

enum { QDQI_COMPUTED_AXES = 8 };

/* The model that is computed from, and how much may be computed. */
struct qdqi_computing {
    const struct qdq_model *model;
    struct qdqi_arena *arena;     /* for elements */
    const struct qdqi_map *named; /* tensors and nodes that stay, by their names */
    uint64_t left; /* bytes that may be allocated: few nodes can ask for many */
};

/* Elements in C order, in the arena. */
struct qdqi_computed {
    size_t rank, n;
    int64_t dims[QDQI_COMPUTED_AXES];
    float *elements;
};

/* Begins with as many bytes left as a model may have computed. */
struct qdqi_computing qdqi_computing_begin(const struct qdq_model *model,
                                           const struct qdqi_map *named,
                                           struct qdqi_arena *arena);

/* Computes a tensor. Returns false where an operator, a type or a size is not one of these, an
   initializer can be overridden by a caller of the model, a name is to stay, or memory is short. */
bool qdqi_compute(struct qdqi_computing *c, const struct qdqi_tensor *tensor,
                  struct qdqi_computed *ret);

#endif
