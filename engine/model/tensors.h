/* SPDX-License-Identifier: Apache-2.0 */
/* Every tensor of a parsed model, wherever it stands. */
#ifndef QDQI_MODEL_TENSORS_H
#define QDQI_MODEL_TENSORS_H

#include "onnx.pb-c.h"
#include "qdq/error.h"

/* Told of a tensor and of what errors call it: its name, or the first output of the node
   whose attribute it is; never NULL. */
typedef enum qdq_code (*qdqi_tensor_fn)(void *arg, Onnx__TensorProto *tensor,
                                        const char *name, struct qdq_error *err);

/* In the order of the file's messages, initializers of a graph before its nodes; ends at
   the first that fails. */
enum qdq_code qdqi_each_tensor(const Onnx__ModelProto *model, qdqi_tensor_fn tell,
                               void *arg, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
