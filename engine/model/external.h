/* SPDX-License-Identifier: Apache-2.0 */
/*
 * External data on its way in: which file a tensor's location is, and where in it the
 * tensor lies.
 *
 * Locations, offsets and lengths come from strangers; a location is only ever compared
 * with the names of the files that were sent, never opened. Format: onnx.proto,
 * TensorProto.external_data, and the ONNX document "External Data".
 */
#ifndef QDQI_MODEL_EXTERNAL_H
#define QDQI_MODEL_EXTERNAL_H

#include "model/model.h"

/*
 * Gives each tensor of the parsed model that keeps its data outside a bulk of the file
 * that it lies in, or the data itself where it is small: afterwards none is external.
 * Files that a tensor names are mapped: file i of those sent is model->files[1 + i].
 */
enum qdq_code qdqi_external_resolve(struct qdq_model *model,
                                    const struct qdq_external *sent, size_t n,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* qdq_model_locations() of a parsed model, whose arena becomes the list's. */
enum qdq_code qdqi_external_list(struct qdq_model *model, struct qdq_locations **ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
