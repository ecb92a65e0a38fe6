/* SPDX-License-Identifier: Apache-2.0 */
/* The step that converts a model to the opset that the spec's formats need. */
#ifndef QDQI_TRANSFORM_PREPARE_OPSET_H
#define QDQI_TRANSFORM_PREPARE_OPSET_H

#include "transform/prepare/prepare.h"

enum qdq_code qdqi_step_opset(struct qdqi_preparing *p, struct qdq_model **ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

#endif
