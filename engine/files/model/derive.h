/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a model from another model by an edit. The result is read like any other
   model. */
#ifndef QDQI_FILES_MODEL_DERIVE_H
#define QDQI_FILES_MODEL_DERIVE_H

#include "files/model/write.h"

/*
 * Makes a model of an edited copy of `source`. Its bulks lie in the source's files, so
 * no weight is copied and the source must outlive the model. Data that the edit adds is
 * raw_data within the messages; none of its bulks may be generated (struct qdqi_made).
 *
 * *arena holds the messages of the edit. On success the model owns it and *arena is set to NULL. INVALID_MODEL, NO_MEMORY.
 */
enum qdq_code qdqi_model_derive(const struct qdq_model *source,
                                const struct qdqi_edited *edited,
                                struct qdqi_arena **arena, struct qdq_model **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
