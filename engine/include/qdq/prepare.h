/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares a model for a plan. */
#ifndef QDQ_PREPARE_H
#define QDQ_PREPARE_H

#include "qdq/model.h"
#include "qdq/spec.h"

/*
 * Derives the model that the plan is made for: with the opset that the spec's formats
 * need, without existing Q/DQ pairs if the spec removes them, and with local functions
 * inlined. The outputs are the same function of the same inputs, except for the effect
 * of removed pairs. *ret is NULL when the model needs no change; otherwise it borrows
 * from `source`, which must outlive it, and a plan of it begins with the warnings of
 * the preparation. Free it with qdq_model_free(). INVALID_SPEC (/opset), INVALID_MODEL,
 * EXISTING_QDQ, UNSUPPORTED, NO_MEMORY.
 */
QDQ_API enum qdq_code qdq_model_prepare(const struct qdq_model *source,
                                        const struct qdq_spec *spec,
                                        struct qdq_model **ret,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

#endif
