/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The integers that a weight is stored as: made of the floats where these lie, piece by
 * piece, while the model is written. They take no memory by their number.
 */
#ifndef QDQI_INTEGERS_H
#define QDQI_INTEGERS_H

#include "base/arena.h"
#include "model/constant.h"

/*
 * The int8 elements of a float32 or float16 weight, in C order, with one scale for each index of
 * `axis`, or a single one for axis -1. In the arena; the weight's bytes, its shape and
 * the scales are borrowed. NULL: out of memory.
 */
const struct qdqi_made *qdqi_integers_new(struct qdqi_arena *arena,
                                          const struct qdqi_constant *weight, int axis,
                                          const float *scales);

#endif
