/* SPDX-License-Identifier: Apache-2.0 */
/* The requirements that number formats have of a model. */
#ifndef QDQI_PLAN_PLACEMENT_FORMATS_H
#define QDQI_PLAN_PLACEMENT_FORMATS_H

#include "qdq/spec.h"

/* The first opset of ONNX whose QuantizeLinear has the formats and blocks of a spec. */
int64_t qdqi_formats_opset(const struct qdq_spec *spec);

bool qdqi_is_8_bit_integer(enum qdq_format format);

/* Returns whether activations and weights are both quantized to integers of 8 bits. */
bool qdqi_multiplies_bytes(const struct qdq_spec *spec);

#endif
