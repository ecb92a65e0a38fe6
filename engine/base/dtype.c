/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size;
    const char *npy;
} dtypes[QDQI_N_DTYPES] = {
    [QDQI_UNKNOWN] = {"", 0, ""},
#define DTYPE(name, onnx, text, bytes, npy) [onnx] = {text, bytes, npy},
#include "tbl/dtypes.h"
#undef DTYPE
};

const char *
qdqi_dtype_name(int dtype)
{
    return dtype > 0 && dtype < QDQI_N_DTYPES ? dtypes[dtype].name : "";
}

size_t
qdqi_dtype_size(int dtype)
{
    return dtype > 0 && dtype < QDQI_N_DTYPES ? dtypes[dtype].size : 0;
}

enum qdqi_dtype
qdqi_dtype_of_npy(const char *kind)
{
    for (int i = 1; i < QDQI_N_DTYPES; i++)
        if (*dtypes[i].npy && strcmp(dtypes[i].npy, kind) == 0)
            return (enum qdqi_dtype)i;
    return QDQI_UNKNOWN;
}
