/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantizes biases to int32, which integer kernels add to their sums of products. The
 * scale of a bias is the product of the scales of activation and weight, as ONNX
 * defines it for QLinearConv-10.
 */
#ifndef QDQI_STAGES_SCALE_BIAS_H
#define QDQI_STAGES_SCALE_BIAS_H

#include "stages/attempt/attempt.h"

/*
 * Fills in scales->biases. Activations and weights must have their scales. If a bias
 * would exceed int32, the weight's scale of that channel is raised, and a warning gives
 * the factor. If the weight has one scale for all channels the bias stays floating
 * point, with a warning. NO_MEMORY.
 */
enum qdq_code qdqi_choose_biases(struct qdqi_attempt *a, struct qdqi_scales *scales,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
