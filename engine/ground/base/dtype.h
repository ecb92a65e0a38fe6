/* SPDX-License-Identifier: Apache-2.0 */
/* Element types of tensors. Each is a row of tbl/dtypes.h. */
#ifndef QDQI_GROUND_BASE_DTYPE_H
#define QDQI_GROUND_BASE_DTYPE_H

#include "qdq/error.h"

/* The values are those of ONNX's TensorProto.DataType; 0 is "unknown". */
enum qdqi_dtype {
    QDQI_UNKNOWN = 0,
#define DTYPE(name, onnx, text, bits, npy) QDQI_##name = onnx,
#include "ground/tbl/dtypes.h"
#undef DTYPE
    QDQI_N_DTYPES
};

const char *qdqi_dtype_name(int dtype); /* "" when unknown */
size_t qdqi_dtype_size(int dtype); /* 0 when an element does not fill whole bytes */
size_t qdqi_dtype_bits(int dtype); /* 0 when elements differ in size */
/* by NumPy's kind, such as "f4"; 0 when there is none */
enum qdqi_dtype qdqi_dtype_of_npy(const char *kind);

#endif
