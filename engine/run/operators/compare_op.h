/* SPDX-License-Identifier: Apache-2.0 */
/* Compare and Pass as custom operators of ONNX Runtime. This header is only for
   engine/run/. */
#ifndef QDQI_RUN_OPERATORS_COMPARE_OP_H
#define QDQI_RUN_OPERATORS_COMPARE_OP_H

#include "ground/base/dtype.h"
#include "run/operators/compare.h"
#include "run/operators/op.h"

/* Initializes the operator Compare. A node's slot is an index into `comparisons`,
   which is borrowed. */
void qdqi_compare_init(struct qdqi_op *op, const OrtApi *api,
                       struct qdqi_comparisons *comparisons);
/* Reads the two input tensors of a Compare node. Sets *ret to whether they can be
   compared; if they cannot, marks the comparison as `differs`. */
OrtStatusPtr qdqi_compared_inputs(const struct qdqi_kernel *kernel,
                                  OrtKernelContext *context,
                                  struct qdqi_comparison *row, struct qdqi_op_tensor *f,
                                  struct qdqi_op_tensor *q, bool *ret);
/* Adds n elements of two tensors, each of float32 or float16, to the sums. */
void qdqi_compare_add(struct qdqi_noise *sums, enum qdqi_dtype f_dtype, const void *f,
                      enum qdqi_dtype q_dtype, const void *q, size_t n);
/* Initializes the operator Pass, whose output is its input. The elements must be
   whole bytes. Its only slot is 0. */
void qdqi_pass_init(struct qdqi_op *op, const OrtApi *api);

#endif
