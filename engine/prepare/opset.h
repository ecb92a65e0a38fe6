/* SPDX-License-Identifier: Apache-2.0 */
/* The step that raises a model to the opset that the spec's scheme needs. */
#ifndef QDQI_PREPARE_OPSET_H
#define QDQI_PREPARE_OPSET_H

#include "prepare/prepare.h"

/* The first opset of ONNX that can say all that the spec asks for of this model. */
int64_t qdqi_opset_needed(const struct qdq_spec *spec, const struct qdq_model *model);

enum qdq_code qdqi_step_opset(struct qdqi_preparing *p, struct qdq_model **ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

#endif
