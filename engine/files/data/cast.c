/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/cast.h"

#include "numbers/arithmetic/both.h"

#include <string.h>

/* The C type that holds an element in memory. */
typedef uint8_t type_BOOL, type_UINT8;
typedef uint16_t type_UINT16, type_FLOAT16, type_BFLOAT16;
typedef uint32_t type_UINT32;
typedef uint64_t type_UINT64;
typedef int8_t type_INT8;
typedef int16_t type_INT16;
typedef int32_t type_INT32;
typedef int64_t type_INT64;
typedef float type_FLOAT32;
typedef double type_FLOAT64;

/* A bfloat16 is the upper half of a float32. */
static float
widened(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

#define load_BOOL(x) ((x) != 0)
#define load_UINT8(x) (x)
#define load_INT8(x) (x)
#define load_UINT16(x) (x)
#define load_INT16(x) (x)
#define load_UINT32(x) (x)
#define load_INT32(x) (x)
#define load_FLOAT16(x) qdqi_half_widened(x)
#define load_BFLOAT16(x) widened(x)
#define load_FLOAT32(x) (x)
#define load_FLOAT64(x) (x)

#define store_UINT8(x) (type_UINT8)(x)
#define store_INT8(x) (type_INT8)(x)
#define store_UINT16(x) (type_UINT16)(x)
#define store_INT16(x) (type_INT16)(x)
#define store_UINT32(x) (type_UINT32)(x)
#define store_INT32(x) (type_INT32)(x)
#define store_UINT64(x) (type_UINT64)(x)
#define store_INT64(x) (type_INT64)(x)
#define store_FLOAT16(x) qdqi_half_narrowed((float)(x))
#define store_FLOAT32(x) (type_FLOAT32)(x)
#define store_FLOAT64(x) (type_FLOAT64)(x)

#define CAST(from_type, to_type)                                                   \
    static void cast_##from_type##_##to_type(void *to, const void *from, size_t n) \
    {                                                                              \
        const type_##from_type *f = from;                                          \
        type_##to_type *t = to;                                                    \
        for (size_t i = 0; i < n; i++)                                             \
            t[i] = store_##to_type(load_##from_type(f[i]));                        \
    }
#define LOSSY CAST
#include "ground/tbl/casts.h"
#undef LOSSY
#undef CAST

static void
copy_bool(void *to, const void *from, size_t n)
{
    const uint8_t *f = from;
    uint8_t *t = to;
    for (size_t i = 0; i < n; i++)
        t[i] = f[i] != 0;
}

#define COPY(bytes)                                                \
    static void copy_##bytes(void *to, const void *from, size_t n) \
    {                                                              \
        memcpy(to, from, n *bytes);                                \
    }
COPY(1)
COPY(2)
COPY(4)
COPY(8)
#undef COPY

static const struct qdqi_cast casts[QDQI_N_DTYPES][QDQI_N_DTYPES] = {
#define CAST(from, to) [QDQI_##from][QDQI_##to] = {cast_##from##_##to, false},
#define LOSSY(from, to) [QDQI_##from][QDQI_##to] = {cast_##from##_##to, true},
#include "ground/tbl/casts.h"
#undef LOSSY
#undef CAST
};

static const qdqi_cast_fn copies[] = {
    [1] = copy_1, [2] = copy_2, [4] = copy_4, [8] = copy_8};

struct qdqi_cast
qdqi_cast_find(enum qdqi_dtype from, enum qdqi_dtype to)
{
    size_t size = qdqi_dtype_size(from);
    if (from == QDQI_BOOL && to == from)
        return (struct qdqi_cast){copy_bool, false};
    if (from == to)
        return (struct qdqi_cast){
            size < sizeof copies / sizeof *copies ? copies[size] : NULL, false};
    return casts[from][to];
}
