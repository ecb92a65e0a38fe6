/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibration data: the arrays of an .npz file, or the one array of an .npy file
 * (NumPy's format, versions 1 to 3, C or Fortran order), or ONNX's test data in a zip or
 * a tar archive: files test_data_set_N/input_M.pb, each a tensor of one sample. Which of
 * them it is, is told by the first bytes and the members' names. Arrays are streamed,
 * never held as a whole. Pickled arrays are refused.
 *
 * A tar may be packed with gzip. Then its samples are unpacked, once, into a file without
 * a name in TMPDIR or /var/tmp that is gone with the dataset; more than 8 GiB, or than
 * limits.archive_bytes, are LIMIT_EXCEEDED.
 *
 * A sample of 256 MiB or more is handed to the model in such a file, too, so that the
 * system can move it out of memory; where there is no room for one, in memory.
 */
#ifndef QDQ_DATASET_H
#define QDQ_DATASET_H

#include "qdq/limits.h"

struct qdq_dataset;

struct qdq_array {
    const char *name;  /* the npz member without ".npy"; "" for an .npy file */
    const char *dtype; /* "float32", "int64", "bool"… as in qdq/model.h */
    size_t rank;
    const int64_t *shape; /* QDQ_DIFFERS: not the same in all samples */
};

enum { QDQ_DIFFERS = -1 };

struct qdq_dataset_info {
    uint64_t size;   /* bytes of the file */
    int64_t samples; /* axis 0, the same in all arrays */
    size_t n_arrays;
    const struct qdq_array *arrays;
};

/*
 * Opens the dataset in the regular file `fd`; the descriptor stays the caller's and may
 * be closed afterwards. Reads the headers and checks that sizes and shapes agree.
 * INVALID_DATASET (naming the array), LIMIT_EXCEEDED, NO_MEMORY, IO.
 * A dataset may be used by one thread at a time.
 */
QDQ_API enum qdq_code qdq_dataset_open(int fd, struct qdq_dataset **ret,
                                       struct qdq_error *err) QDQ_MUST_CHECK;
/* The same with limits. */
QDQ_API enum qdq_code qdq_dataset_open_within(int fd, const struct qdq_limits *limits,
                                              struct qdq_dataset **ret,
                                              struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_dataset_free(struct qdq_dataset **dataset);

QDQ_API const struct qdq_dataset_info *
qdq_dataset_info(const struct qdq_dataset *dataset);

#endif
