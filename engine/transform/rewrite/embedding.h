/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a decoder's embeddings, which its head shares (output.decoder). */
#ifndef QDQI_TRANSFORM_REWRITE_EMBEDDING_H
#define QDQI_TRANSFORM_REWRITE_EMBEDDING_H

#include "transform/rewrite/nbits.h"

/* Returns whether a Gather, whose indices have a declared rank, selects rows of the transpose of a
   weight. */
bool qdqi_is_table(const struct qdqi_pairs *p, const struct qdqi_tensor *weight);

/* Makes such Gathers select rows of the stored integers of 4 or 8 bits, with their scales and zero points,
   which are then dequantized: the float weight is read nowhere. K is a multiple of the block.
   Returns false when out of memory. */
bool qdqi_share_table(struct qdqi_pairs *p, const struct qdqi_tensor *weight,
                      const struct qdqi_nbits *stored);

#endif
