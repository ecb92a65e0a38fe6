/* SPDX-License-Identifier: Apache-2.0 */
/* Observe as a custom operator of ONNX Runtime. Only for engine/run/. */
#ifndef QDQI_RUN_OBSERVE_H
#define QDQI_RUN_OBSERVE_H

#include "range/observer.h"
#include "run/op.h"

/* The slots are the observers'. */
void qdqi_observe_init(struct qdqi_op *op, const OrtApi *api,
                       struct qdqi_observers *observers);

/* A node's tensor, and its type, which is the one that is expected. */
OrtStatusPtr qdqi_observed_input(const struct qdqi_kernel *kernel,
                                 OrtKernelContext *context,
                                 const struct qdqi_observers *observers,
                                 struct qdqi_op_tensor *ret,
                                 enum qdqi_dtype *ret_dtype);

#endif
