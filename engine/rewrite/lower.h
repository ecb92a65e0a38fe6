/* SPDX-License-Identifier: Apache-2.0 */
/* A result in float16 or bfloat16, but for what stays float32: the last edit of all. */
#ifndef QDQI_REWRITE_LOWER_H
#define QDQI_REWRITE_LOWER_H

#include "model/write.h"
#include "plan/low.h"

/*
 * Makes of an edited copy of `source` one in which the nodes of `low`, and the pairs
 * that they read, have its type, with Casts where float32 begins and ends. Inputs and
 * outputs of the graph, and all that nested graphs see, keep name and type. Constants
 * that nothing else reads get the type while the model is written.
 *
 * A pair that is read by such a node stays float32, with Casts, where the type has not
 * its scales exactly: they are never rounded here.
 *
 * `edited` has its origins. *ret lies in the arena and borrows from both. NO_MEMORY.
 */
enum qdq_code qdqi_lower(const struct qdq_model *source,
                         const struct qdqi_edited *edited, const struct qdqi_low *low,
                         struct qdqi_arena *arena, struct qdqi_edited *ret,
                         struct qdq_error *err) QDQ_MUST_CHECK;

#endif
