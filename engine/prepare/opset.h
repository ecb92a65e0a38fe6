/* SPDX-License-Identifier: Apache-2.0 */
/* The step that converts a model to the opset that the spec's formats need. */
#ifndef QDQI_PREPARE_OPSET_H
#define QDQI_PREPARE_OPSET_H

#include "prepare/prepare.h"

/* Returns the first opset of ONNX that supports everything the spec asks for in this
   model. */
int64_t qdqi_opset_needed(const struct qdq_spec *spec, const struct qdq_model *model);

enum qdq_code qdqi_step_opset(struct qdqi_preparing *p, struct qdq_model **ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

#endif
