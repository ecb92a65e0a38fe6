/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ground/base/dtype.h"

#include <string.h>

/* A number without a row has NULL for its texts. */
static const struct {
    const char *name;
    size_t bits;
    const char *npy;
} dtypes[QDQI_N_DTYPES] = {
    [QDQI_UNKNOWN] = {"", 0, ""},
#define DTYPE(name, onnx, text, bits, npy) [onnx] = {text, bits, npy},
#include "ground/tbl/dtypes.h"
#undef DTYPE
};

const char *
qdqi_dtype_name(int dtype)
{
    const char *name = dtype > 0 && dtype < QDQI_N_DTYPES ? dtypes[dtype].name : NULL;
    return name ? name : "";
}

size_t
qdqi_dtype_bits(int dtype)
{
    return dtype > 0 && dtype < QDQI_N_DTYPES ? dtypes[dtype].bits : 0;
}

size_t
qdqi_dtype_size(int dtype)
{
    return qdqi_dtype_bits(dtype) / 8;
}

enum qdqi_dtype
qdqi_dtype_of_npy(const char *kind)
{
    for (int i = 1; i < QDQI_N_DTYPES; i++)
        if (dtypes[i].npy && *dtypes[i].npy && strcmp(dtypes[i].npy, kind) == 0)
            return (enum qdqi_dtype)i;
    return QDQI_UNKNOWN;
}
