/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers that a weight is stored as: made of the floats where these lie, piece by
 * piece, while the model is written. They take no memory by their number.
 */
#ifndef QDQI_WEIGHTS_INTEGERS_H
#define QDQI_WEIGHTS_INTEGERS_H

#include "base/arena.h"
#include "model/constant.h"
#include "number/params.h"

/*
 * The elements of a float32 or float16 weight in its params' format, in C order, as
 * raw_data has them: formats of fewer than 8 bits share a byte, the first element in the
 * lowest bits. In the arena; the weight's bytes, its shape and the scales are borrowed. NULL: out of memory.
 */
const struct qdqi_made *qdqi_integers_new(struct qdqi_arena *arena,
                                          const struct qdqi_constant *weight,
                                          const struct qdqi_params *params);

/* Bytes of n of them. */
uint64_t qdqi_integers_size(enum qdqi_format format, size_t n);

/* The same of numbers that are there: `to` has room for qdqi_integers_size() bytes. */
void qdqi_store_integers(enum qdqi_format format, const int32_t *from, size_t n,
                         uint8_t *to);

#endif
