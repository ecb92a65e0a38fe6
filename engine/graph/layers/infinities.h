/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that a model itself gives infinities, as the masks of attention are: they have no range. */
#ifndef QDQI_GRAPH_LAYERS_INFINITIES_H
#define QDQI_GRAPH_LAYERS_INFINITIES_H

#include "files/model/model.h"
#include "ground/base/arena.h"

/* Returns whether a constant holds an infinity or a NaN. One of more than some millions of elements is not
   looked at. */
bool qdqi_constant_is_infinite(const struct qdq_model *model,
                               const struct qdqi_tensor *constant);

/* Does the same, and for numbers that are at least so far from 0. */
bool qdqi_constant_is_far(const struct qdq_model *model,
                          const struct qdqi_tensor *constant, double least);

/* Makes an array by node: whether its outputs may hold numbers that are at least so far from 0, by constants
   of the model that operators pass on. NULL when out of memory. */
const bool *qdqi_far_ones_find(const struct qdq_model *model, struct qdqi_arena *arena,
                               double least);

/* Makes an array by node: whether its outputs may hold an infinity that comes from a constant of the
   model, or from the logarithm of a mask in front of a Softmax. NULL when out of memory. */
const bool *qdqi_infinities_find(const struct qdq_model *model,
                                 struct qdqi_arena *arena);

#endif
