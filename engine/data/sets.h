/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX's test data as a dataset: files test_data_set_N/input_M.pb in a zip or a tar
 * archive, each a TensorProto. A set is a sample, and is fed as it is; the shapes of different
 * sets may differ. Sets are taken in the order of N; what their outputs were, and what
 * else lies in the archive, is left alone.
 */
#ifndef QDQI_DATA_SETS_H
#define QDQI_DATA_SETS_H

#include "data/dataset.h"
#include "data/stream.h"

/*
 * Fills the dataset in where its archive holds such files; else ds->parts stays NULL.
 * Reads every tensor once. INVALID_DATASET where sets differ in their inputs.
 */
enum qdq_code qdqi_sets_read(struct qdq_dataset *ds,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* Whether a member of an archive is such a file, by its name. */
bool qdqi_sets_is_input(const char *name);

/* The bytes of a file: of the archive's member `member`. */
enum qdq_code qdqi_sets_open(struct qdq_dataset *ds, size_t member, const char *name,
                             struct qdqi_stream *ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;

#endif
