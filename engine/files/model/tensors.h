/* SPDX-License-Identifier: Apache-2.0 */
/* Visits every TensorProto of a parsed model, wherever it stands. */
#ifndef QDQI_FILES_MODEL_TENSORS_H
#define QDQI_FILES_MODEL_TENSORS_H

#include "onnx.pb-c.h"
#include "qdq/error.h"

/* Called for a tensor. `name`, never NULL, is for errors: the tensor's name, or the
   first output of the node that has the tensor as an attribute. */
typedef enum qdq_code (*qdqi_tensor_visit_fn)(void *arg, Onnx__TensorProto *tensor,
                                              const char *name, struct qdq_error *err);

/* Visits the tensors in the order of the file's messages, the initializers of a
   graph before its nodes. Stops at the first call that fails. */
enum qdq_code qdqi_each_tensor(const Onnx__ModelProto *model,
                               qdqi_tensor_visit_fn visit, void *arg,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
