/* SPDX-License-Identifier: Apache-2.0 */
/* The caches of a decoder's attention: inputs and outputs of the model. */
#ifndef QDQI_GRAPH_LAYERS_CACHES_H
#define QDQI_GRAPH_LAYERS_CACHES_H

#include "files/model/model.h"

/* Sets the last size of caches that the model leaves open, in a copy of its inputs, to the size of a
   head: GroupQueryAttention wants it even of an empty cache, and the projection before it says it. */
void qdqi_caches_fix(const struct qdq_model *model, struct qdq_model_info *fixed);

/* Returns the layer whose keys or values an output of the model is, where a GroupQueryAttention makes
   it: the only number in its name if each of these caches has one that is its layer's alone, else the
   place of the node among all. -1: it is none. */
long qdqi_caches_layer(const struct qdq_model *model, const char *output,
                       bool *ret_is_key);

#endif
