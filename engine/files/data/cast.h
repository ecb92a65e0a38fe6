/* SPDX-License-Identifier: Apache-2.0 */
/* Casts the elements of a dataset to the type of a model's input. The casts are the
   rows of tbl/casts.h. */
#ifndef QDQI_FILES_DATA_CAST_H
#define QDQI_FILES_DATA_CAST_H

#include "ground/base/dtype.h"

/* Casts n elements. The two arrays must not overlap. */
typedef void (*qdqi_cast_fn)(void *to, const void *from, size_t n);

struct qdqi_cast {
    qdqi_cast_fn fn; /* NULL: there is no such cast */
    bool lossy;      /* the user is warned that precision is lost */
};

/* Returns the cast. Equal types are copied, but elements of bool become 0 or 1. */
struct qdqi_cast qdqi_cast_find(enum qdqi_dtype from, enum qdqi_dtype to);

#endif
