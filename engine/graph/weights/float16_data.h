/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_GRAPH_WEIGHTS_FLOAT16_DATA_H
#define QDQI_GRAPH_WEIGHTS_FLOAT16_DATA_H

#include "ground/base/arena.h"
#include "files/model/constant.h"

/*
 * Returns a generator of the elements of a float32 constant as float16 or bfloat16, in
 * C order. It converts them while the model is written. The generator is in the arena
 * and borrows the constant's bytes. NULL: out of memory.
 */
const struct qdqi_made *qdqi_float16_data_new(struct qdqi_arena *arena,
                                              enum qdqi_dtype type,
                                              const struct qdqi_constant *constant);

#endif
