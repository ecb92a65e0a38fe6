/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the scales and zero points of a weight from its elements. */
#ifndef QDQI_GRAPH_WEIGHTS_SCALES_H
#define QDQI_GRAPH_WEIGHTS_SCALES_H

#include "ground/base/arena.h"
#include "files/model/constant.h"
#include "numbers/arithmetic/params.h"

/* Returns whether weights of a format are quantized symmetrically. That is so for
   formats with negative numbers. */
bool qdqi_weight_is_symmetric(enum qdqi_format format);

/*
 * The scales and zero points of a float32 or float16 weight; scales have the weight's type.
 * p has the format, the axis and the block, and gets the other members, in the arena. The
 * range of a scale is that of its elements, or [-amax, amax] in symmetric formats. Channels
 * that are all zeros get the median of the other ranges, so that they neither overflow nor
 * stand out. NONFINITE names the tensor.
 *
 * Weights may share their time: the first function makes room for the scales and zero points
 * in the arena, which one thread does for all weights, …
 */
enum qdq_code qdqi_weight_params_new(const struct qdqi_constant *weight,
                                     const char *name, struct qdqi_arena *arena,
                                     struct qdqi_params *p,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/* … and computes them, in any thread. The weight may be a part of one, whose first scale is
   number `first`. Counts the channels that are all zeros. */
enum qdq_code qdqi_weight_params_find(const struct qdqi_constant *part,
                                      const char *name, size_t first,
                                      struct qdqi_params *p, size_t *ret_dead,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the number of stored elements from one index of `axis` to the next. */
size_t qdqi_weight_inner(const struct qdqi_constant *weight, int axis);

/*
 * Replaces each range by the fraction of it with the least squared error of its
 * elements. It tries fractions in steps of 1/64 and then in steps of 1/1024 around the
 * best one. The error is never larger than that of the original range. NO_MEMORY.
 */
enum qdq_code qdqi_weight_narrow(const struct qdqi_constant *weight,
                                 struct qdqi_params *p,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Rounds each scale up so that it times `factor` is a number of ten binary digits, times a power of two: by
   a thousandth at most. */
void qdqi_scales_shorten(struct qdqi_params *p, double factor);

#endif
