/* SPDX-License-Identifier: Apache-2.0 */
/* Moment as a custom operator of ONNX Runtime. This header is only for engine/run/. */
#ifndef QDQI_RUN_OPERATORS_MOMENTS_H
#define QDQI_RUN_OPERATORS_MOMENTS_H

#include "numbers/range/patches.h"
#include "run/operators/op.h"

enum { QDQI_MOMENTS_RANK = 64 }; /* the most of an input */

/* Describes the input of a node. `dims` has room for QDQI_MOMENTS_RANK. */
OrtStatusPtr qdqi_moments_input(const struct qdqi_kernel *k, OrtKernelContext *context,
                                int64_t *dims, struct qdqi_patched *ret);
/* Makes the status for an input that could not be taken in. */
OrtStatusPtr qdqi_moments_misfit(const struct qdqi_kernel *k);

/* Initializes the operator. A node's slot is an index into `moments`, which is
   borrowed. Nodes run on the host. */
void qdqi_moments_init(struct qdqi_op *op, const OrtApi *api,
                       struct qdqi_moments *moments);

#endif
