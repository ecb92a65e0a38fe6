/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs whose QuantizeLinear says its type by `output_dtype` (ONNX operator version 21) instead of
 * by a zero point. In a model of opset 21 or later, ONNX Runtime (seen with 1.31.1) makes a Gemm of
 * a MatMul and an Add behind it, moves the int8 pair in front of a reshape of its own with that
 * attribute, and then turns the zero point into uint8: the model does not load. It leaves a pair
 * without a zero point alone. TensorRT reads both forms alike.
 */
#ifndef QDQI_TRANSFORM_REWRITE_TYPED_PAIR_H
#define QDQI_TRANSFORM_REWRITE_TYPED_PAIR_H

#include "files/model/model.h"
#include "numbers/arithmetic/params.h"

/* Returns whether the pair of a computed tensor is to be typed: it is int8, all zero points are 0,
   and a MatMul that an Add follows reads it. */
bool qdqi_is_typed_pair(const struct qdq_model *source, const struct qdqi_tensor *t,
                        const struct qdqi_params *params);

#endif
