/* SPDX-License-Identifier: Apache-2.0 */
/* Casts of a dataset's elements to a model input's type, by tbl/casts.h. */
#ifndef QDQI_DATA_CAST_H
#define QDQI_DATA_CAST_H

#include "base/dtype.h"

/* Casts n elements; the two do not overlap. */
typedef void (*qdqi_cast_fn)(void *to, const void *from, size_t n);

struct qdqi_cast {
    qdqi_cast_fn fn; /* NULL: the cast is not made */
    bool lossy;      /* to be warned of */
};

/* Equal types are copied, where bool's elements become 0 or 1. */
struct qdqi_cast qdqi_cast_find(enum qdqi_dtype from, enum qdqi_dtype to);

#endif
