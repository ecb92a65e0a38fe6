/* SPDX-License-Identifier: Apache-2.0 */
/* The step that computes weights of LSTM which the file has in parts. */
#ifndef QDQI_TRANSFORM_PREPARE_JOIN_GATES_H
#define QDQI_TRANSFORM_PREPARE_JOIN_GATES_H

#include "transform/prepare/prepare.h"

/* Does nothing unless the runtime is to quantize activations. Changes no name of a node. */
enum qdq_code qdqi_step_join_gates(struct qdqi_preparing *p, struct qdq_model **ret,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

#endif
