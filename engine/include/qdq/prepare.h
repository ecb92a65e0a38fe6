/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to a model before a plan is made of it. */
#ifndef QDQ_PREPARE_H
#define QDQ_PREPARE_H

#include "qdq/model.h"
#include "qdq/spec.h"

/*
 * Makes the model that the spec's scheme fits: of a later opset, without the Q/DQ pairs
 * that it has. Outputs are the same function of the same inputs, except for what
 * stripped pairs did. *ret is NULL where the model is that already; else it borrows from
 * `source`, which must outlive it, and a plan of it begins with what there is to say of
 * the preparation. Free it with qdq_model_free().
 * INVALID_SPEC (/opset), INVALID_MODEL, EXISTING_QDQ, UNSUPPORTED, NO_MEMORY.
 */
QDQ_API enum qdq_code qdq_model_prepare(const struct qdq_model *source,
                                        const struct qdq_spec *spec,
                                        struct qdq_model **ret,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

#endif
