/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a dataset, for the files that open one and for reader.c. */
#ifndef QDQI_FILES_DATA_DATASET_H
#define QDQI_FILES_DATA_DATASET_H

#include "ground/base/arena.h"
#include "ground/base/dtype.h"
#include "files/data/npz.h"
#include "files/data/random.h"
#include "files/data/tar.h"
#include "files/data/stream.h"
#include "qdq/dataset.h"
#include "qdq/spec.h"

/* The properties of an array that a reader needs beyond struct qdq_array. */
struct qdqi_item {
    enum qdqi_dtype dtype;
    bool big_endian, fortran;
    size_t member;   /* index of the member in the npz */
    uint64_t offset; /* offset of the first element in the stream */
    uint64_t size;   /* bytes of all elements; > 0 */
    /* index of the model's input when the file does not name the array; else
       QDQI_NAMED */
    int input;
    bool in_file; /* the elements lie in the file at `offset`, without a head */
    bool
        is_alone; /* it feeds an input that no array is named for, where there is one */
    bool differs; /* each sample has a shape of its own */
    size_t column; /* number of the Parquet column, from 1; 0: there is none */
    struct qdqi_sample_file *parts; /* one for each sample that is a file, or differs */
    bool joins; /* it is that of all columns of one number (forms/joined.h) */
};

enum { QDQI_NAMED = -1 };

/* The kinds of files that hold one sample of one array. */
enum qdqi_sample_kind {
    QDQI_SAMPLE_PROTO,  /* a TensorProto */
    QDQI_SAMPLE_NPY,    /* an .npy file */
    QDQI_SAMPLE_IN_NPZ, /* a member of an .npz file */
    QDQI_SAMPLE_LABEL,  /* a number, which `label` has */
};

/* One sample of one array, where each sample has its own shape or is a file of its own. For a
   column of Parquet number and shape alone are set. */
struct qdqi_sample_file {
    size_t member;      /* index of the member in the archive */
    uint64_t file_size; /* bytes of the member */
    unsigned field;     /* number of the TensorProto's field that holds the elements */
    uint64_t n;         /* number of elements */
    const int64_t *shape; /* rank - 1 sizes: axis 0 of the array counts samples */
    enum qdqi_sample_kind kind;
    bool big_endian, fortran;
    uint64_t offset; /* of the first element in the .npy file */
    size_t inner;    /* index of that in the .npz file */
    int64_t label;
};

struct qdq_dataset {
    struct qdqi_arena *arena;
    int fd;               /* a duplicate that the dataset owns; -1: none */
    struct qdqi_npz *npz; /* set for a zip archive, else NULL */
    struct qdqi_tar *tar; /* set for a tar archive, else NULL */
    struct qdq_dataset_info info;
    struct qdq_array *arrays;   /* the array behind info.arrays */
    struct qdqi_item *items;    /* one for each array */
    struct qdqi_images *images; /* set for an archive of images, else NULL */
    struct qdqi_draw *draws;    /* one for each array of random samples, else NULL */
    uint64_t most_unpacked; /* limit of the bytes that a packed archive unpacks to */
    bool is_parquet, is_safetensors;
    bool is_sets; /* ONNX's test data: each sample is fed unchanged, in its own shape */
    struct qdqi_table *table; /* set for Parquet, else NULL */
    const struct qdq_spec
        *prepared_by; /* NULL: no spec has said how to prepare arrays */
    /* Arrays that are columns of one number for each row; where there are some, arrays[info.n_arrays] has
       their elements. */
    const size_t *joined;
    size_t n_joined;
};

#endif
