/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one arithmetic of quantization, as ONNX QuantizeLinear-13 states it:
 *
 *   q = saturate(round_half_to_even(x / scale) + zero_point)
 *   x' = (q - zero_point) * scale
 *
 * Symmetric int8: zero point 0, scale = amax / 127, for weights and activations; q
 * saturates at -128, which a range of [-amax, amax] never reaches.
 */
#ifndef QDQI_QUANTIZE_H
#define QDQI_QUANTIZE_H

#include "base/arena.h"
#include "model/constant.h"

enum { QDQI_INT8_MAX = 127 };

/*
 * float32 scale of [-amax, amax]; the smallest normal float32 where amax / 127 lies
 * below it (a scale is never zero or subnormal), 1 where amax is 0: zero stays zero
 * with any scale.
 */
float qdqi_symmetric_scale(double amax);

/*
 * Scales of a float32 weight: one for each index of `axis`, or a single one for axis
 * -1, in the arena. A channel of zeros gets the median of the others' scales, so that
 * it neither overflows nor stands out. NONFINITE names the tensor.
 */
enum qdq_code qdqi_weight_scales(const struct qdqi_constant *weight, int axis,
                                 const char *name, struct qdqi_arena *arena,
                                 float **ret, size_t *ret_n,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
