/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of formats that ONNX Runtime has no kernel for, as the floats that their
 * DequantizeLinear computes, so that the model runs by literal arithmetic: elements of float4e2m1
 * and float6e2m3, and those whose scales are float8e8m0.
 */
#ifndef QDQI_RUN_SESSION_FLOAT_WEIGHTS_H
#define QDQI_RUN_SESSION_FLOAT_WEIGHTS_H

#include "files/model/write.h"

/*
 * Replaces each DequantizeLinear of such a weight, whose inputs are all initializers, or scales
 * that a DequantizeLinear makes of initializers. Changed messages and the floats are in the arena;
 * *ret is the model itself when nothing is replaced. More than 1 GiB of floats stay as they are.
 * NO_MEMORY.
 */
enum qdq_code qdqi_float_weights(const struct qdqi_runnable *model,
                                 struct qdqi_arena *arena, const Onnx__ModelProto **ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
