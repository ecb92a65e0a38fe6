/* SPDX-License-Identifier: Apache-2.0 */
/* From a weight's elements to its scales and zero points. */
#ifndef QDQI_WEIGHTS_SCALES_H
#define QDQI_WEIGHTS_SCALES_H

#include "base/arena.h"
#include "model/constant.h"
#include "number/params.h"

/* Whether weights of a format are quantized symmetrically: those that have negative
   numbers are. */
bool qdqi_weight_is_symmetric(enum qdqi_format format);

/*
 * Scales and zero points of a float32 or float16 weight, with which its type goes: p has
 * the format, the axis and the block, and gets the rest, in the arena. The range is that
 * of the elements, or [-amax, amax] of them. What is all zeros gets the median of the
 * others' ranges, so that it neither overflows nor stands out. NONFINITE names the
 * tensor.
 */
enum qdq_code qdqi_weight_params(const struct qdqi_constant *weight, const char *name,
                                 struct qdqi_arena *arena, struct qdqi_params *p,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Elements of a weight from one index of `axis` to the next, as they are stored. */
size_t qdqi_weight_inner(const struct qdqi_constant *weight, int axis);

/*
 * Makes each of those ranges the share of it with which the squared error of its elements
 * is least; a search in steps of 1/1024 around the best of 1/64. Never a greater error
 * than with the range that was there. NO_MEMORY.
 */
enum qdq_code qdqi_weight_narrow(const struct qdqi_constant *weight,
                                 struct qdqi_params *p,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
