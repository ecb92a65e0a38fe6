/* SPDX-License-Identifier: Apache-2.0 */
/* Valid models of which ONNX Runtime ends the process instead of saying what it cannot run. */
#ifndef QDQI_RUN_SESSION_CRASHES_H
#define QDQI_RUN_SESSION_CRASHES_H

#include "files/model/model.h"

/*
 * Returns UNSUPPORTED, with the node, for a model that no session may be opened of: one with an
 * Attention of com.microsoft without the input `bias`, which is optional, and which the kernel of
 * ONNX Runtime 1.31 reads all the same.
 */
enum qdq_code qdqi_refuse_crash(const Onnx__ModelProto *proto,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
