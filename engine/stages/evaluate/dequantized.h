/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of weights alone whose weight the runtime dequantizes in each run. */
#ifndef QDQI_STAGES_EVALUATE_DEQUANTIZED_H
#define QDQI_STAGES_EVALUATE_DEQUANTIZED_H

#include "stages/attempt/attempt.h"

/* Returns why the runtime, which made no kernel for the layer's quantized weight beside floats,
   made none, as far as that can be told. */
const char *qdqi_why_dequantized(const struct qdqi_attempt *attempt,
                                 const struct qdq_layer *layer);

#endif
