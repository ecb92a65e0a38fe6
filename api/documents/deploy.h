/* SPDX-License-Identifier: Apache-2.0 */
/* How a result is run on its target: programs to copy, with the model's own names and shapes. */
#ifndef API_DOCUMENTS_DEPLOY_H
#define API_DOCUMENTS_DEPLOY_H

#include <jansson.h>

#include "qdq.h"

/*
 * Returns an array of {"target", "language", "text"}, which the caller owns; it is empty where an
 * input or an output has a type or a shape that these programs do not know, and for hundreds of
 * them. They call the model
 * model.onnx, feed zeros, and take 1 for sizes that are not known. NULL when out of memory.
 */
json_t *api_deploy_rows(const struct qdq_report *report);

#endif
