/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a model that makes some of its tensors, which become its outputs. */
#ifndef QDQI_TRANSFORM_REWRITE_TAPS_H
#define QDQI_TRANSFORM_REWRITE_TAPS_H

#include "files/model/model.h"
#include "qdq/error.h"

#include <stddef.h>

/*
 * Returns a copy of the model, with the n tensors of its main graph, which differ, as its outputs
 * and without the nodes that none of them needs. A model with nested graphs keeps all nodes. Names
 * and messages are borrowed. NULL when out of memory.
 */
const Onnx__ModelProto *qdqi_taps(const Onnx__ModelProto *model,
                                  const char *const *tensors, size_t n,
                                  struct qdqi_arena *arena);

#endif
