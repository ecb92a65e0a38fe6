/* SPDX-License-Identifier: Apache-2.0 */
/* Moment as a custom operator of ONNX Runtime. This header is only for engine/run/. */
#ifndef QDQI_RUN_MOMENTS_H
#define QDQI_RUN_MOMENTS_H

#include "range/patches.h"
#include "run/op.h"

/* Initializes the operator. A node's slot is an index into `moments`, which is
   borrowed. Nodes run on the host. */
void qdqi_moments_init(struct qdqi_op *op, const OrtApi *api,
                       struct qdqi_moments *moments);

#endif
