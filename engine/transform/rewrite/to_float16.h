/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a result to float16 or bfloat16, except for the nodes that stay float32.
   This is the last edit of a model. */
#ifndef QDQI_TRANSFORM_REWRITE_TO_FLOAT16_H
#define QDQI_TRANSFORM_REWRITE_TO_FLOAT16_H

#include "files/model/write.h"
#include "plan/placement/float16_nodes.h"

/*
 * Converts an edited copy of `source`: the nodes of `chosen`, and the Q/DQ pairs that they
 * read, get its type. Casts stand where float32 begins and ends. Inputs and outputs of
 * the graph, and all tensors that nested graphs use, keep their names and types.
 * Constants that only converted nodes read are converted while the model is written.
 *
 * A pair that a converted node reads stays float32, between Casts, if its scales are
 * not exact in the type: scales are never rounded here.
 *
 * `edited` must have its origins. *ret is in the arena and borrows from both.
 * NO_MEMORY.
 */
enum qdq_code qdqi_convert_to_float16(const struct qdq_model *source,
                                      const struct qdqi_edited *edited,
                                      const struct qdqi_float16_nodes *chosen,
                                      struct qdqi_arena *arena, struct qdqi_edited *ret,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

#endif
