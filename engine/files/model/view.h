/* SPDX-License-Identifier: Apache-2.0 */
/* Views of tensors behind operators that move or relabel the elements of a fixed
   tensor. */
#ifndef QDQI_FILES_MODEL_VIEW_H
#define QDQI_FILES_MODEL_VIEW_H

#include "files/model/model.h"

/*
 * Sets view and element type of a node's first output. All inputs of the node must be
 * fixed. Leaves the output without a view where the operator is unknown or breaks its
 * schema. Neither time nor memory depends on the size of a tensor. NO_MEMORY.
 */
enum qdq_code qdqi_view_infer(struct qdq_model *model, const struct qdqi_node *node,
                              struct qdq_error *err) QDQ_MUST_CHECK;

#endif
