/* SPDX-License-Identifier: Apache-2.0 */
/* FakeQuant as a custom operator of ONNX Runtime. This header is only for
   engine/run/. */
#ifndef QDQI_RUN_OPERATORS_FAKE_H
#define QDQI_RUN_OPERATORS_FAKE_H

#include "numbers/arithmetic/fake.h"
#include "run/operators/op.h"

/* Initializes the operator. A node's slot is an index into `fakes`, which is
   borrowed. */
void qdqi_fake_init(struct qdqi_op *op, const OrtApi *api,
                    const struct qdqi_fakes *fakes);

/* Reads the input tensor of a FakeQuant node and returns the memory for its output. */
OrtStatusPtr qdqi_faked_tensors(const struct qdqi_kernel *kernel,
                                OrtKernelContext *context, const struct qdqi_fake *fake,
                                struct qdqi_op_tensor *ret, void **ret_to);

#endif
