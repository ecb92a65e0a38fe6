/* SPDX-License-Identifier: Apache-2.0 */
/* A model that is made of another one by an edit, and is read like any other. */
#ifndef QDQI_MODEL_DERIVE_H
#define QDQI_MODEL_DERIVE_H

#include "model/write.h"

/*
 * Makes a model of an edited copy of `source`. Its bulks lie where the source's do, so
 * no weight is copied, and the source must outlive it. Data that the edit adds stand in
 * the messages as raw_data: none of its bulks is made.
 *
 * *arena is that of the edit's messages; the model takes it, and sets it to NULL, unless
 * this fails. INVALID_MODEL, NO_MEMORY.
 */
enum qdq_code qdqi_model_derive(const struct qdq_model *source,
                                const struct qdqi_edited *edited,
                                struct qdqi_arena **arena, struct qdq_model **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
