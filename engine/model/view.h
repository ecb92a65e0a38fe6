/* SPDX-License-Identifier: Apache-2.0 */
/* What operators that only pass elements on make of a fixed tensor. */
#ifndef QDQI_MODEL_VIEW_H
#define QDQI_MODEL_VIEW_H

#include "model/model.h"

/*
 * Gives the first output of a node, all of whose inputs are fixed, its view and element
 * type, where the operator is known and does what its schema says; else leaves it
 * unread. Nothing is computed or allocated by the size of a tensor. NO_MEMORY.
 */
enum qdq_code qdqi_view_through(struct qdq_model *model, const struct qdqi_node *node,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
