/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Thrift's compact protocol (thrift-compact-protocol.md) from memory: what the footer and
 * the page heads of a Parquet file are written in. Structs are walked field by field, and fields
 * that nobody wants are skipped, to a bounded depth.
 *
 * A fault sets `failed`, after which every function returns zeros and the walks end; callers
 * look at it once, at their end.
 */
#ifndef QDQI_FILES_DATA_PARQUET_THRIFT_H
#define QDQI_FILES_DATA_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum qdqi_thrift_type {
    QDQI_THRIFT_TRUE = 1,
    QDQI_THRIFT_FALSE,
    QDQI_THRIFT_I8,
    QDQI_THRIFT_I16,
    QDQI_THRIFT_I32,
    QDQI_THRIFT_I64,
    QDQI_THRIFT_DOUBLE,
    QDQI_THRIFT_BINARY,
    QDQI_THRIFT_LIST,
    QDQI_THRIFT_SET,
    QDQI_THRIFT_MAP,
    QDQI_THRIFT_STRUCT,
    QDQI_THRIFT_UUID,
};

struct qdqi_thrift {
    const unsigned char *bytes; /* borrowed */
    size_t size, at;
    bool failed;
    const char *why; /* what failed, at byte `at` */
};

/* One field of a struct. All zero before the first. */
struct qdqi_thrift_field {
    int64_t id;
    unsigned type;
};

/* Moves to the next field of the struct. False at its end, or after a fault. The caller reads
   or skips the value of each field. */
bool qdqi_thrift_next(struct qdqi_thrift *t, struct qdqi_thrift_field *field);
void qdqi_thrift_skip(struct qdqi_thrift *t, const struct qdqi_thrift_field *field);

/* Read the value of a field, whose type must be one that holds it. */
int64_t qdqi_thrift_integer(struct qdqi_thrift *t,
                            const struct qdqi_thrift_field *field);
bool qdqi_thrift_bool(struct qdqi_thrift *t, const struct qdqi_thrift_field *field);
/* Returns bytes within the memory that is read. */
const char *qdqi_thrift_text(struct qdqi_thrift *t,
                             const struct qdqi_thrift_field *field, size_t *ret_size);
/* Enters a list of structs and returns their number, which the bytes that are left can hold.
   The caller walks each as a struct. */
size_t qdqi_thrift_structs(struct qdqi_thrift *t,
                           const struct qdqi_thrift_field *field);
/* Enters a struct: false, after a fault, for a field of another type. */
bool qdqi_thrift_enter(struct qdqi_thrift *t, const struct qdqi_thrift_field *field);

#endif
