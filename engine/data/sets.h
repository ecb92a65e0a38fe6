/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX's test data as a dataset: files test_data_set_N/input_M.pb in a zip archive,
 * each a TensorProto. A set is a sample, and is fed as it is; the shapes of different
 * sets may differ. Sets are taken in the order of N; what their outputs were, and what
 * else lies in the archive, is left alone.
 */
#ifndef QDQI_SETS_H
#define QDQI_SETS_H

#include "data/dataset.h"

/*
 * Fills the dataset in where its archive holds such files; else ds->parts stays NULL.
 * Reads every tensor once. INVALID_DATASET where sets differ in their inputs.
 */
enum qdq_code qdqi_sets_read(struct qdq_dataset *ds,
                             struct qdq_error *err) QDQ_MUST_CHECK;

#endif
