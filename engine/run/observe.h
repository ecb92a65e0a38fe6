/* SPDX-License-Identifier: Apache-2.0 */
/* Observe as a custom operator of ONNX Runtime. Only for engine/run/. */
#ifndef QDQI_OBSERVE_H
#define QDQI_OBSERVE_H

#include "range/observer.h"

#include <onnxruntime_c_api.h>

/* The operator, bound to one session's observers; must live where it was initialized.
 */
struct qdqi_observe_op {
    OrtCustomOp op; /* first: the runtime hands it back */
    const OrtApi *api;
    struct qdqi_observers *observers;
};

void qdqi_observe_op_init(struct qdqi_observe_op *op, const OrtApi *api,
                          struct qdqi_observers *observers);

#endif
