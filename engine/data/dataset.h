/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a dataset, for dataset.c and reader.c. */
#ifndef QDQI_DATASET_H
#define QDQI_DATASET_H

#include "base/arena.h"
#include "base/dtype.h"
#include "data/npz.h"
#include "qdq/dataset.h"

/* What is needed to read an array beyond what struct qdq_array says. */
struct qdqi_item {
    enum qdqi_dtype dtype;
    bool big_endian, fortran;
    size_t member;   /* of the npz */
    uint64_t offset; /* of the first element in the stream */
    uint64_t size;   /* bytes of all elements; > 0 */
};

struct qdq_dataset {
    struct qdqi_arena *arena;
    int fd;               /* our own */
    struct qdqi_npz *npz; /* NULL: an .npy file */
    struct qdq_dataset_info info;
    struct qdq_array *arrays; /* those of info */
    struct qdqi_item *items;  /* one for each array */
};

#endif
