/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one column of a Parquet file from its first row to its last, some values at a time. */
#ifndef QDQI_FILES_DATA_PARQUET_CURSOR_H
#define QDQI_FILES_DATA_PARQUET_CURSOR_H

#include "files/data/parquet/footer.h"
#include "files/data/parquet/pages.h"

enum { QDQI_BATCH = 1024 }; /* most values that are read together */

/* A byte array in a page: the page's place in the file, and the place in it. */
struct qdqi_bytes_place {
    uint64_t page;
    size_t at, size;
    const unsigned char *bytes; /* until the next batch is read */
};

/* The next values of the column. One value, null or empty list has a pair of levels. */
struct qdqi_batch {
    size_t n;
    uint32_t rep[QDQI_BATCH]; /* 0: a new row; else the list that goes on */
    uint32_t def[QDQI_BATCH]; /* less than max_def: no value */
    size_t n_values;          /* that are there */
    union {
        /* elements of the column's type, one after another */
        unsigned char elements[QDQI_BATCH * sizeof(int64_t)];
        struct qdqi_bytes_place places[QDQI_BATCH];
        int64_t aligned;
    } u;
};

struct qdqi_cursor;

/* Opens a cursor of column `i`, whose numbers or byte arrays can be read. The file is borrowed.
   INVALID_DATASET for pages that are not there. */
enum qdq_code qdqi_cursor_open(const struct qdqi_parquet *file, size_t i,
                               struct qdqi_cursor **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Goes to the first row of a row group. */
void qdqi_cursor_seek(struct qdqi_cursor *cursor, size_t group);
/* Reads the next values; batch->n is 0 at the end of the column. */
enum qdq_code qdqi_cursor_next(struct qdqi_cursor *cursor, struct qdqi_batch *batch,
                               struct qdq_error *err) QDQ_MUST_CHECK;
/* Returns the byte of the file at which the last page begins, and its row group. */
uint64_t qdqi_cursor_at(const struct qdqi_cursor *cursor);
size_t qdqi_cursor_group(const struct qdqi_cursor *cursor);
void qdqi_cursor_close(struct qdqi_cursor **cursor);

#endif
