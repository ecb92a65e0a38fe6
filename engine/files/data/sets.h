/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads ONNX's test data as a dataset: files test_data_set_N/input_M.pb in a zip or tar
 * archive, each a TensorProto. A set is one sample and is fed unchanged; the shapes of
 * different sets may differ. Sets are used in the order of N; output files and all
 * other members are ignored.
 */
#ifndef QDQI_FILES_DATA_SETS_H
#define QDQI_FILES_DATA_SETS_H

#include "files/data/dataset.h"
#include "files/data/stream.h"

/*
 * Fills the dataset when its archive holds such files; otherwise ds->is_sets stays false.
 * Reads every tensor once. INVALID_DATASET where the inputs of two sets differ.
 */
enum qdq_code qdqi_sets_read(struct qdq_dataset *ds,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether a member of an archive is such a file, by its name. */
bool qdqi_sets_is_input(const char *name);

/* Opens the bytes of a file: of the archive's member `member`. */
enum qdq_code qdqi_sets_open(struct qdq_dataset *ds, size_t member, const char *name,
                             struct qdqi_stream *ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;

#endif
