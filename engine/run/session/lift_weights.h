/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves large weights from Constant nodes and from the graphs of If, Loop and Scan to
 * the initializers of the main graph. ONNX Runtime can read only those from a mapped
 * file. Weights elsewhere would have to be inline, and the model might then exceed the
 * size limit of a protobuf message. A name stands for one tensor in all these graphs
 * (files/model/scopes.c), so nothing is renamed.
 */
#ifndef QDQI_RUN_SESSION_LIFT_WEIGHTS_H
#define QDQI_RUN_SESSION_LIFT_WEIGHTS_H

#include "files/model/write.h"

/* Changed messages are copied into the arena. *ret is `model` when nothing is moved. */
enum qdq_code qdqi_lift_weights(const struct qdqi_runnable *model,
                                struct qdqi_arena *arena, const Onnx__ModelProto **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
