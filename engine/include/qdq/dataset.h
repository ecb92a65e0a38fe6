/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibration data: the arrays of an .npz file, the one array of an .npy file (NumPy's
 * format, versions 1 to 3, C or Fortran order), the tensors of a .safetensors file, or the
 * columns of a .parquet file; or, in a zip or tar archive, ONNX's test data: files
 * test_data_set_N/input_M.pb, each a tensor of one sample; or JPEG and PNG files, which are the
 * array `images`, with an array `labels` of the folders that they lie in, or of the files KEY.cls
 * beside them; or, in a tar archive, .npy and .npz files of one sample each. The form is
 * recognized by the first bytes and the members' names. Arrays are streamed and never held as a
 * whole. Pickled arrays are refused.
 *
 * A tar archive may be packed with gzip. Then its samples are unpacked once into a file
 * without a name in TMPDIR or /var/tmp, which is deleted with the dataset. More than 8
 * GiB, or more than limits.archive_bytes, are LIMIT_EXCEEDED.
 *
 * A sample of 256 MiB or more is passed to the model in such a file, too, so that the
 * system can move it out of memory; if the file cannot be made, the sample stays in
 * memory.
 */
#ifndef QDQ_DATASET_H
#define QDQ_DATASET_H

#include "qdq/limits.h"
#include "qdq/model.h"
#include "qdq/spec.h"

struct qdq_dataset;

struct qdq_array {
    const char *
        name; /* of the npz member without ".npy", or of the column; "" for an .npy file */
    const char *dtype; /* "float32", "int64", "bool"… as in qdq/model.h */
    size_t rank;
    const int64_t *shape; /* QDQ_DIFFERS: the size differs between samples */
};

enum { QDQ_DIFFERS = -1 };

struct qdq_dataset_info {
    uint64_t size;   /* bytes of the file */
    int64_t samples; /* size of axis 0, equal in all arrays */
    size_t n_arrays;
    const struct qdq_array *arrays;
    bool has_images; /* the first array is of JPEG and PNG files */
    /* names of the folders that labels of images count; n_classes is 0 where there are none */
    size_t n_classes;
    const char *const *classes;
};

/*
 * Opens the dataset in the regular file `fd`. The caller keeps the descriptor and may
 * close it afterwards. Reads the headers and checks that sizes and shapes agree.
 * INVALID_DATASET (naming the array), LIMIT_EXCEEDED, NO_MEMORY, IO. A dataset may be
 * used by one thread at a time.
 */
QDQ_API enum qdq_code qdq_dataset_open(int fd, struct qdq_dataset **ret,
                                       struct qdq_error *err) QDQ_MUST_CHECK;
/* Does the same with limits. */
QDQ_API enum qdq_code qdq_dataset_open_within(int fd, const struct qdq_limits *limits,
                                              struct qdq_dataset **ret,
                                              struct qdq_error *err) QDQ_MUST_CHECK;
QDQ_API void qdq_dataset_free(struct qdq_dataset **dataset);

QDQ_API const struct qdq_dataset_info *
qdq_dataset_info(const struct qdq_dataset *dataset);

/* Describes all samples of an array, or of an input as a model gets it. */
struct qdq_array_facts {
    struct qdq_array array; /* axis 0 is 1 where it is the batch */
    double low, high, mean; /* of the finite values */
    int64_t finite, not_finite;
};

/* Gets the values of all samples, in pieces. */
struct qdq_visitor {
    /* `input` is the place of the input among the facts; false ends the visit */
    bool (*values)(void *arg, size_t input, const double *values, size_t n);
    void *arg;
};

/*
 * Reads all samples as the model gets them, prepared as the spec says; with a `model` of NULL, the
 * arrays as they are, without images. The spec and the visitor may be NULL. *ret_n facts belong to the
 * dataset. CALIBRATION_MISMATCH where the data does not fit, INVALID_DATASET, NO_MEMORY, IO,
 * CANCELLED where the visitor ended it.
 */
QDQ_API enum qdq_code
qdq_dataset_visit(struct qdq_dataset *dataset, const struct qdq_model_info *model,
                  const struct qdq_spec *spec, const struct qdq_visitor *visitor,
                  const struct qdq_array_facts **ret, size_t *ret_n,
                  struct qdq_error *err) QDQ_MUST_CHECK;

#endif
