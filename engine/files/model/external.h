/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves external data when a model is opened: which file a tensor's location names,
 * and where in that file the tensor lies.
 *
 * Locations, offsets and lengths are untrusted. A location is only compared with the
 * names of the files that were sent and is never opened. Format: onnx.proto,
 * TensorProto.external_data, and the ONNX document "External Data".
 */
#ifndef QDQI_FILES_MODEL_EXTERNAL_H
#define QDQI_FILES_MODEL_EXTERNAL_H

#include "files/model/model.h"

/*
 * Replaces the external data of each tensor in the parsed model by a bulk of the file
 * that holds it, or by the bytes themselves where they are few. Afterwards no tensor is
 * external. Each file that a tensor names is mapped: file i of those sent is
 * model->files[1 + i].
 */
enum qdq_code qdqi_external_resolve(struct qdq_model *model,
                                    const struct qdq_external *sent, size_t n,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Implements qdq_model_locations() for a parsed model, whose arena becomes the
   list's. */
enum qdq_code qdqi_external_list(struct qdq_model *model, struct qdq_locations **ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
