/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channels of an activation behind attention, followed back to the layer that makes the
 * values: through their product with the probabilities, and through the operators around it
 * that move, split and choose elements. A factor of one of the layer's outputs is one of the
 * same channel of the activation. The layer may make queries and keys, too.
 */
#ifndef QDQI_TRANSFORM_EQUALIZE_VALUES_H
#define QDQI_TRANSFORM_EQUALIZE_VALUES_H

#include "transform/equalize/weight.h"

enum { QDQI_MAX_ABSORBING = 6 };

/* The layer and the constants that take in the factors of an activation's channels. */
struct qdqi_maker {
    size_t layer; /* node index of the layer; n_nodes when there is none */
    struct qdqi_weight weight;
    /* by channel: the output of the layer; NULL: they are in the same order */
    const uint32_t *outputs;
    /* constants, each with one element for each channel, or for each output of the layer
       where there are `outputs` */
    size_t n_constants;
    struct qdqi_constant constants[QDQI_MAX_ABSORBING];
    const struct qdqi_tensor *tensors[QDQI_MAX_ABSORBING];
};

/* Adds a constant that has n elements, one behind the other along an axis that is counted
   from the end. Returns NULL, or the reason why it cannot be scaled. */
const char *qdqi_maker_add(const struct qdq_model *model, struct qdqi_maker *maker,
                           const struct qdqi_tensor *tensor, size_t from_end, size_t n);

/* Follows the last axis of an activation back to a MatMul or a Gemm. Returns NULL, or the
   reason why it cannot be followed. After an allocation that fails, the arena is exhausted. */
const char *qdqi_values_find(const struct qdq_model *model,
                             const struct qdqi_tensor *activation, size_t channels,
                             struct qdqi_arena *arena, struct qdqi_maker *ret);

#endif
