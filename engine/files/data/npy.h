/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the header of NumPy's .npy format, versions 1 to 3 (numpy.lib.format): a magic,
 * the length of the header, and a Python dict literal with descr, fortran_order and
 * shape.
 */
#ifndef QDQI_FILES_DATA_NPY_H
#define QDQI_FILES_DATA_NPY_H

#include "ground/base/dtype.h"
#include "files/data/stream.h"

#define QDQI_NPY_MAGIC "\x93NUMPY"

enum {
    QDQI_NPY_MAGIC_SIZE = 6,
    QDQI_NPY_MAX_HEADER = 65536, /* limit of the dict literal's bytes */
    QDQI_NPY_MAX_RANK = 64,      /* NumPy's own limit */
};

struct qdqi_npy {
    enum qdqi_dtype dtype;
    bool big_endian;
    /* the first axis varies fastest; false where the order makes no difference */
    bool fortran;
    size_t rank;
    int64_t shape[QDQI_NPY_MAX_RANK]; /* each >= 0; the product fits in int64 */
    uint64_t offset;                  /* offset of the first element in the stream */
    uint64_t size;                    /* bytes of all elements */
};

/* Reads the header at the start of the stream. INVALID_DATASET names the fault and
   its byte, or the dtype that cannot be used. */
enum qdq_code qdqi_npy_read(struct qdqi_stream *stream, struct qdqi_npy *ret,
                            struct qdq_error *err) QDQ_MUST_CHECK;

#endif
