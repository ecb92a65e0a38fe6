/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_TRANSFORM_PREPARE_NAMED_H
#define QDQI_TRANSFORM_PREPARE_NAMED_H

#include "ground/base/map.h"
#include "qdq/spec.h"

/* Returns the tensors for which a spec gives ranges and all names in its entries of layers, as the keys
   of a map in the arena: what they name is to stay in the model. NULL: out of memory. */
struct qdqi_map *qdqi_named_by_spec(const struct qdq_spec *spec,
                                    struct qdqi_arena *arena);

#endif
