/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_WEIGHTS_LOWERED_H
#define QDQI_WEIGHTS_LOWERED_H

#include "base/arena.h"
#include "model/constant.h"

/*
 * Returns a generator of the elements of a float32 constant as float16 or bfloat16, in
 * C order. It converts them while the model is written. The generator is in the arena
 * and borrows the constant's bytes. NULL: out of memory.
 */
const struct qdqi_made *qdqi_lowered_new(struct qdqi_arena *arena, enum qdqi_dtype low,
                                         const struct qdqi_constant *constant);

#endif
