/* SPDX-License-Identifier: Apache-2.0 */
/* Observe as a custom operator of ONNX Runtime. This header is only for engine/run/. */
#ifndef QDQI_RUN_OPERATORS_OBSERVE_H
#define QDQI_RUN_OPERATORS_OBSERVE_H

#include "numbers/range/observer.h"
#include "run/operators/op.h"

/* Initializes the operator. A node's slot is an index into `observers`, which is
   borrowed. */
void qdqi_observe_init(struct qdqi_op *op, const OrtApi *api,
                       struct qdqi_observers *observers);

/* Initializes the operator that reads tensors which may be in blocks (transform/rewrite/blocked.h). */
void qdqi_observe_blocked_init(struct qdqi_op *op, const OrtApi *api,
                               struct qdqi_observers *observers);

/* Reads the input tensor of an Observe node. Fails if its type is not the
   observer's; otherwise *ret_dtype is that type. */
OrtStatusPtr qdqi_observed_input(const struct qdqi_kernel *kernel,
                                 OrtKernelContext *context,
                                 const struct qdqi_observers *observers,
                                 struct qdqi_op_tensor *ret,
                                 enum qdqi_dtype *ret_dtype);

#endif
