/* SPDX-License-Identifier: Apache-2.0 */
/* Compare and Pass as custom operators of ONNX Runtime. Only for engine/run/. */
#ifndef QDQI_RUN_COMPARE_OP_H
#define QDQI_RUN_COMPARE_OP_H

#include "base/dtype.h"
#include "run/compare.h"
#include "run/op.h"

/* The slots are the comparisons'. */
void qdqi_compare_init(struct qdqi_op *op, const OrtApi *api,
                       struct qdqi_comparisons *comparisons);
/* A node's tensors; *ret: whether they can be compared, else the comparison says so. */
OrtStatusPtr qdqi_compared_inputs(const struct qdqi_kernel *kernel,
                                  OrtKernelContext *context,
                                  struct qdqi_comparison *row, struct qdqi_op_tensor *f,
                                  struct qdqi_op_tensor *q, bool *ret);
/* Adds n elements, of float32 or float16 each, to the sums. */
void qdqi_compare_add(struct qdqi_noise *sums, enum qdqi_dtype f_dtype, const void *f,
                      enum qdqi_dtype q_dtype, const void *q, size_t n);
/* Hands on a tensor whose elements have whole bytes; it has slot 0 alone. */
void qdqi_pass_init(struct qdqi_op *op, const OrtApi *api);

#endif
