/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a dataset, for the files that open one and reader.c. */
#ifndef QDQI_DATA_DATASET_H
#define QDQI_DATA_DATASET_H

#include "base/arena.h"
#include "base/dtype.h"
#include "data/npz.h"
#include "data/random.h"
#include "data/tar.h"
#include "qdq/dataset.h"

/* What is needed to read an array beyond what struct qdq_array says. */
struct qdqi_item {
    enum qdqi_dtype dtype;
    bool big_endian, fortran;
    size_t member;   /* of the npz */
    uint64_t offset; /* of the first element in the stream */
    uint64_t size;   /* bytes of all elements; > 0 */
    int input;       /* of the model, where its name is made up; else QDQI_NAMED */
};

enum {
    QDQI_NAMED = -1,
    QDQI_MAX_ARRAYS = 4096, /* of one dataset, or of one set */
};

/* LIMIT_EXCEEDED for a dataset of so many arrays. */
enum qdq_code qdqi_dataset_check_arrays(size_t n, struct qdq_error *err) QDQ_MUST_CHECK;

/* One sample of an array, where each is a file of its own and has its own shape. */
struct qdqi_sample_file {
    size_t member;        /* of the archive */
    uint64_t file_size;   /* of the member */
    unsigned field;       /* of the TensorProto that holds the elements */
    uint64_t n;           /* elements */
    const int64_t *shape; /* of rank - 1 axes: axis 0 of the array counts parts */
};

struct qdq_dataset {
    struct qdqi_arena *arena;
    int fd;               /* our own; -1: none */
    struct qdqi_npz *npz; /* NULL: an .npy file, a tar, or none */
    struct qdqi_tar *tar; /* else NULL */
    struct qdq_dataset_info info;
    struct qdq_array *arrays; /* those of info */
    struct qdqi_item *items;  /* one for each array */
    struct qdqi_draw *draws;  /* likewise, of random samples; else NULL */
    uint64_t most_unpacked;   /* bytes of a packed archive */
    /* Of ONNX's test data: [sample * n_arrays + array]. */
    struct qdqi_sample_file *parts;
};

#endif
