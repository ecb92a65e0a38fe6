/* SPDX-License-Identifier: Apache-2.0 */
/* The layers that read an activation and whose weights can take in the factors of its
   channels. */
#ifndef QDQI_TRANSFORM_EQUALIZE_READERS_H
#define QDQI_TRANSFORM_EQUALIZE_READERS_H

#include "transform/equalize/chain.h"

/* Returns the rank of input 0 of a layer; 0: any, and channels are the last axis. */
size_t qdqi_reader_rank(const struct qdqi_node *layer);

/* Makes an empty list of readers. Returns false when out of memory. */
bool qdqi_readers_begin(struct qdqi_chain *chain, struct qdqi_arena *arena);

/* Adds the layer that uses the activation there. The first one decides the axis of the
   channels and their number. Returns NULL, or the reason why its weight cannot take the factors
   in. */
const char *qdqi_readers_add(const struct qdq_model *model, struct qdqi_chain *chain,
                             const struct qdqi_use *use, struct qdqi_arena *arena);

/*
 * Lets a Mul behind the activation take in the factors of a chain that has a reason, for those
 * of its readers that can follow; the others go on reading the activation. The chain stays as
 * it is where none can, where the activation lies in a nested graph, and where a
 * DequantizeLinear of the model makes it. After an allocation that fails, the arena is
 * exhausted.
 */
void qdqi_readers_multiply(const struct qdq_model *model, struct qdqi_chain *chain,
                           struct qdqi_arena *arena);

#endif
