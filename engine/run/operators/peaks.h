/* SPDX-License-Identifier: Apache-2.0 */
/* Peak as a custom operator of ONNX Runtime. This header is only for engine/run/. */
#ifndef QDQI_RUN_OPERATORS_PEAKS_H
#define QDQI_RUN_OPERATORS_PEAKS_H

#include "numbers/range/peaks.h"
#include "run/operators/op.h"

/* Initializes the operator. A node's slot is an index into `peaks`, which is borrowed.
   Nodes run on the host. */
void qdqi_peaks_init(struct qdqi_op *op, const OrtApi *api,
                     struct qdqi_all_peaks *peaks);

#endif
