/* SPDX-License-Identifier: Apache-2.0 */
/* Compare and Pass as custom operators of ONNX Runtime. Only for engine/run/. */
#ifndef QDQI_COMPARE_OP_H
#define QDQI_COMPARE_OP_H

#include "run/compare.h"
#include "run/op.h"

/* The slots are the comparisons'. */
void qdqi_compare_init(struct qdqi_op *op, const OrtApi *api,
                       struct qdqi_comparisons *comparisons);
/* Hands on a tensor whose elements have whole bytes; it has slot 0 alone. */
void qdqi_pass_init(struct qdqi_op *op, const OrtApi *api);

#endif
