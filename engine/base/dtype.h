/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, by the rows of tbl/dtypes.h. */
#ifndef QDQI_BASE_DTYPE_H
#define QDQI_BASE_DTYPE_H

#include "qdq/error.h"

/* The values are ONNX's own; 0 is "unknown". */
enum qdqi_dtype {
    QDQI_UNKNOWN = 0,
#define DTYPE(name, onnx, text, bits, npy) QDQI_##name = onnx,
#include "tbl/dtypes.h"
#undef DTYPE
    QDQI_N_DTYPES
};

const char *qdqi_dtype_name(int dtype);              /* "" when unknown */
size_t qdqi_dtype_size(int dtype);                   /* 0 when not whole bytes */
size_t qdqi_dtype_bits(int dtype);                   /* 0 when not fixed */
enum qdqi_dtype qdqi_dtype_of_npy(const char *kind); /* "f4"; 0 when there is none */

#endif
