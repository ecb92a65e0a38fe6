/* SPDX-License-Identifier: Apache-2.0 */
/* The stored numbers of a quantized weight. They are generated piece by piece from
   the floats in the model file while the result is written, so they need no memory. */
#ifndef QDQI_GRAPH_WEIGHTS_INTEGERS_H
#define QDQI_GRAPH_WEIGHTS_INTEGERS_H

#include "ground/base/arena.h"
#include "files/model/constant.h"
#include "numbers/arithmetic/params.h"

/*
 * Returns a generator of the elements of a float32 or float16 weight in the format of
 * its params, in C order, as raw_data has them: with fewer than 8 bits, several
 * elements share a byte, the first one in the lowest bits. The generator is in the
 * arena and borrows the weight's bytes, its shape and the scales. NULL: out of memory.
 */
const struct qdqi_made *qdqi_integers_new(struct qdqi_arena *arena,
                                          const struct qdqi_constant *weight,
                                          const struct qdqi_params *params);

/* Copies integers into the form of params->rounded. NULL: out of memory. */
const uint8_t *qdqi_rounded_pack(struct qdqi_arena *arena, enum qdqi_format format,
                                 const int16_t *integers, size_t n);

/* Makes the generator of the same numbers as float32, of a weight whose params->rounded is
   set. */
const struct qdqi_made *qdqi_rounded_new(struct qdqi_arena *arena,
                                         const struct qdqi_constant *weight,
                                         const struct qdqi_params *params);

/* Returns the number of bytes of n elements. */
uint64_t qdqi_integers_size(enum qdqi_format format, size_t n);

/* Stores given integers in the same form. `to` has room for qdqi_integers_size()
   bytes. */
void qdqi_store_integers(enum qdqi_format format, const int32_t *from, size_t n,
                         uint8_t *to);

#endif
