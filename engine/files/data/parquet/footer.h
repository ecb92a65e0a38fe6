/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The footer of a Parquet file (parquet-format 2.12, parquet.thrift): its columns, and where the
 * row groups hold them. Nothing of a footer is believed: numbers are checked against the file.
 *
 * A column is a leaf of the schema. One whose groups each have a single child is a chain: a
 * number, or a list of numbers, or lists of such lists, in each row.
 */
#ifndef QDQI_FILES_DATA_PARQUET_FOOTER_H
#define QDQI_FILES_DATA_PARQUET_FOOTER_H

#include "ground/base/arena.h"
#include "ground/base/dtype.h"

#include <stdint.h>

enum {
    QDQI_PARQUET_MAX_FOOTER = 32 << 20, /* bytes */
    QDQI_PARQUET_MAX_NODES = 20000,     /* of the schema */
    QDQI_PARQUET_MAX_DEPTH = 40,        /* of the schema */
    QDQI_PARQUET_MAX_LISTS = 16,        /* in each other */
    QDQI_PARQUET_MAX_NAME = 255,        /* bytes */
};

enum qdqi_parquet_type {
    QDQI_PARQUET_BOOLEAN,
    QDQI_PARQUET_INT32,
    QDQI_PARQUET_INT64,
    QDQI_PARQUET_INT96,
    QDQI_PARQUET_FLOAT,
    QDQI_PARQUET_DOUBLE,
    QDQI_PARQUET_BYTE_ARRAY,
    QDQI_PARQUET_FIXED,
    QDQI_PARQUET_N_TYPES,
};

enum qdqi_parquet_encoding {
    QDQI_PARQUET_PLAIN = 0,
    QDQI_PARQUET_PLAIN_DICTIONARY = 2,
    QDQI_PARQUET_RLE = 3,
    QDQI_PARQUET_DELTA = 5,         /* DELTA_BINARY_PACKED */
    QDQI_PARQUET_DELTA_LENGTHS = 6, /* DELTA_LENGTH_BYTE_ARRAY */
    QDQI_PARQUET_RLE_DICTIONARY = 8,
    QDQI_PARQUET_SPLIT = 9, /* BYTE_STREAM_SPLIT */
};

struct qdqi_parquet_column {
    const char *name;  /* of the field of a row that it is in */
    const char *child; /* the leaf's own name; NULL where the field is the leaf */
    enum qdqi_parquet_type type;
    int64_t width;    /* bytes of a value of FIXED */
    unsigned max_def; /* definition level of a value that is there */
    unsigned max_rep; /* lists that a value lies in */
    bool is_chain;    /* groups on its way have no other child */
    /* The numbers that it holds; 0 where it holds none, and then `why` says what it holds. */
    enum qdqi_dtype dtype;
    const char *why;
    bool is_bytes; /* byte arrays that are not declared to be text */
};

/* The pages of one column in one row group. */
struct qdqi_parquet_chunk {
    uint64_t start, end; /* bytes of the file */
    int64_t values;      /* with nulls and the marks of empty lists */
    int codec;
    const char *why; /* it cannot be read: why; else NULL */
};

struct qdqi_parquet_group {
    int64_t rows;
    struct qdqi_parquet_chunk *chunks; /* one for each column */
};

struct qdqi_parquet {
    int fd; /* borrowed */
    uint64_t size;
    int64_t rows;
    size_t n_columns, n_groups;
    struct qdqi_parquet_column *columns;
    struct qdqi_parquet_group *groups;
};

/* Returns whether a file begins like one, of which `got` bytes are there; encrypted ones do. */
bool qdqi_parquet_starts(const unsigned char *start, size_t got);

/* Reads the footer; everything lies in the arena. INVALID_DATASET, naming the byte;
   LIMIT_EXCEEDED; NO_MEMORY; IO. */
enum qdq_code qdqi_parquet_open(int fd, uint64_t size, struct qdqi_arena *arena,
                                struct qdqi_parquet **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Sets INVALID_DATASET: "the Parquet file at byte N: …". */
enum qdq_code qdqi_parquet_invalid(uint64_t at, struct qdq_error *err, const char *fmt,
                                   ...) QDQ_PRINTF(3, 4);

#endif
