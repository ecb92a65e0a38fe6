/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_WEIGHTS_LOWERED_H
#define QDQI_WEIGHTS_LOWERED_H

#include "base/arena.h"
#include "model/constant.h"

/* The elements of a float32 constant in C order as float16 or bfloat16, made while the
   model is written; its bytes are borrowed. In the arena; NULL: out of memory. */
const struct qdqi_made *qdqi_lowered_new(struct qdqi_arena *arena, enum qdqi_dtype low,
                                         const struct qdqi_constant *constant);

#endif
