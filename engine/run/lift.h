/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large weights that a model keeps in Constant nodes and in graphs of If, Loop and Scan,
 * as initializers of its main graph: only these can ONNX Runtime read where they are
 * mapped, and with the others inline a model may be more than a protobuf message holds.
 * A name is one tensor's in all these graphs (model/scopes.c), so nothing is renamed.
 */
#ifndef QDQI_RUN_LIFT_H
#define QDQI_RUN_LIFT_H

#include "model/write.h"

/* What is changed is copied into the arena; *ret is `model` where nothing is. */
enum qdq_code qdqi_lift_weights(const struct qdqi_runnable *model,
                                struct qdqi_arena *arena, const Onnx__ModelProto **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
