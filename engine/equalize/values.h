/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channels of an activation behind attention, followed back to the layer that makes the
 * values: through their product with the probabilities, and through the operators around it
 * that move, split and choose elements. A factor of one of the layer's outputs is one of the
 * same channel of the activation. The layer may make queries and keys, too.
 */
#ifndef QDQI_EQUALIZE_VALUES_H
#define QDQI_EQUALIZE_VALUES_H

#include "equalize/weight.h"

enum { QDQI_MAX_ABSORBING = 6 };

struct qdqi_values {
    size_t maker; /* the layer: a MatMul or a Gemm */
    struct qdqi_weight weight;
    const uint32_t *outputs; /* by channel of the activation: the layer's output */
    /* biases, each with one element for each of the layer's outputs */
    size_t n_constants;
    struct qdqi_constant constants[QDQI_MAX_ABSORBING];
    const struct qdqi_tensor *tensors[QDQI_MAX_ABSORBING];
};

/* Follows the last axis of an activation back. Returns NULL, or the reason why it cannot be
   followed. After an allocation that fails, the arena is exhausted. */
const char *qdqi_values_find(const struct qdq_model *model,
                             const struct qdqi_tensor *activation, size_t channels,
                             struct qdqi_arena *arena, struct qdqi_values *ret);

#endif
