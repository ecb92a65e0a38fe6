/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Biases as int32: what an integer kernel adds to its sums of products. The scale is the
 * product of the activation's and the weight's, as ONNX's QLinearConv-10 states it.
 */
#ifndef QDQI_SCALE_BIAS_H
#define QDQI_SCALE_BIAS_H

#include "job/job.h"

/*
 * Fills scales->biases in, when activations and weights have their scales. Where a bias
 * would run over int32, the weight's scale of that channel is made larger, with a warning
 * that says how far; where there is one for all channels the bias stays floating point,
 * with a warning, too. NO_MEMORY.
 */
enum qdq_code qdqi_choose_biases(struct qdqi_job *job, struct qdqi_scales *scales,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
