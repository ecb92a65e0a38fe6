/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a decoder that are caches of attention. */
#ifndef QDQI_GRAPH_LAYERS_CACHES_H
#define QDQI_GRAPH_LAYERS_CACHES_H

#include "files/model/model.h"

/* Sets the last size of caches that the model leaves open, in a copy of its inputs, to the size of a
   head: GroupQueryAttention wants it even of an empty cache, and the projection before it says it. */
void qdqi_caches_fix(const struct qdq_model *model, struct qdq_model_info *fixed);

#endif
