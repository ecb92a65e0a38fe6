/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one arithmetic of quantization, as ONNX QuantizeLinear-13 states it:
 *
 *   q = saturate(round_half_to_even(x / scale) + zero_point)
 *   x' = (q - zero_point) * scale
 *
 * Symmetric int8: zero point 0, scale = amax / 127, for weights and activations; q
 * saturates at -128, which a range of [-amax, amax] never reaches, and one that is
 * narrower may.
 */
#ifndef QDQI_QUANTIZE_H
#define QDQI_QUANTIZE_H

#include "base/arena.h"
#include "model/constant.h"
#include "number/format.h"

enum { QDQI_INT8_MAX = 127 };

/*
 * float32 scale of [-amax, amax]; the smallest normal float32 where amax / 127 lies
 * below it (a scale is never zero or subnormal), 1 where amax is 0: zero stays zero
 * with any scale.
 */
float qdqi_symmetric_scale(double amax);

/*
 * The same for a tensor of that type, whose scale has it, too. float16: the nearest one,
 * ties to even, but never below the smallest normal nor above the largest. That is at
 * most 1/2048 off, so what lies at amax is at most 0.07 of a step beyond 127 and rounds
 * to 127: the range is not clipped.
 */
float qdqi_scale_of(enum qdqi_dtype dtype, double amax);

/*
 * Scales of a float32 or float16 weight, with which its type goes: one for each index of `axis`, or a single one for axis
 * -1, in the arena. A channel of zeros gets the median of the others' scales, so that
 * it neither overflows nor stands out. NONFINITE names the tensor.
 */
enum qdq_code qdqi_weight_scales(const struct qdqi_constant *weight, int axis,
                                 const char *name, struct qdqi_arena *arena,
                                 float **ret, size_t *ret_n,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Elements of a weight from one index of `axis` to the next, as they are stored. */
size_t qdqi_weight_inner(const struct qdqi_constant *weight, int axis);

/*
 * Makes each of those scales the one, not above it, with which the squared error of its
 * channel's elements is least; a search in steps of 1/1024 of the scale around the best
 * of 1/64. Never a greater error than with the scale that was there. NO_MEMORY.
 */
enum qdq_code qdqi_weight_narrow(const struct qdqi_constant *weight, int axis,
                                 float *scales, size_t n,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
