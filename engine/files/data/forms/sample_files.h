/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that are files of a tar archive, as WebDataset has them: the files of one sample have
 * one KEY, which is the path up to the first dot behind its last slash.
 *
 *   KEY.npy          the array of a model of one input
 *   KEY.NAME.npy     the array NAME
 *   KEY.npz          an array for each of its members
 *   KEY.cls          a whole number, in the array `labels`
 *
 * Other files are passed over. Samples are sorted by KEY. Each may have its own shape, but not
 * its own type or number of axes; where all have one shape, the array is like that of an .npz
 * file, with the samples along axis 0.
 */
#ifndef QDQI_FILES_DATA_FORMS_SAMPLE_FILES_H
#define QDQI_FILES_DATA_FORMS_SAMPLE_FILES_H

#include "files/data/dataset.h"
#include "files/data/stream.h"

enum { QDQI_MAX_PARTS = 1 << 20 }; /* samples of all arrays together */

/* Returns whether a member of an archive holds arrays, by its name. */
bool qdqi_sample_files_wants(const char *name);

/* Fills the arrays of the dataset from its tar archive, whose heads are all read.
   INVALID_DATASET names the member; LIMIT_EXCEEDED. */
enum qdq_code qdqi_sample_files_read(struct qdq_dataset *ds,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/* Opens the array of a sample, at its first element, for errors as `name`. An .npz file is
   opened for it, which the caller closes after the stream. */
enum qdq_code qdqi_sample_files_open(struct qdq_dataset *ds,
                                     const struct qdqi_sample_file *part,
                                     const char *name, struct qdqi_stream *ret,
                                     struct qdqi_npz **ret_npz,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

#endif
