/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages of one column of a Parquet file. A page is read and unpacked as a whole; no
 * more than a page and a dictionary is in memory.
 */
#ifndef QDQI_FILES_DATA_PARQUET_PAGES_H
#define QDQI_FILES_DATA_PARQUET_PAGES_H

#include "files/data/parquet/footer.h"

enum {
    QDQI_PARQUET_MAX_PAGE = 256 << 20, /* bytes, packed or not */
    QDQI_PARQUET_MAX_HEAD = 4 << 20, /* bytes of a page's head, which has statistics */
};

enum qdqi_page_kind {
    QDQI_PAGE_DATA,
    QDQI_PAGE_INDEX,
    QDQI_PAGE_DICTIONARY,
    QDQI_PAGE_DATA_2,
};

struct qdqi_page_head {
    int64_t kind, size, packed; /* bytes when unpacked, and in the file */
    int64_t values;             /* with nulls */
    int64_t encoding, def_encoding, rep_encoding;
    int64_t def_bytes, rep_bytes; /* of a page of version 2 */
    bool is_packed;
    bool has_crc;
    uint32_t crc;
    uint64_t at, data_at; /* bytes of the file: of the head, and of what follows it */
};

/* Memory that is kept from page to page. All zero at first. */
struct qdqi_page_bytes {
    unsigned char *data;
    size_t size, capacity;
};

/* Reads the head of the page at a byte of the chunk. */
enum qdq_code qdqi_page_head(const struct qdqi_parquet *file,
                             const struct qdqi_parquet_column *column,
                             const struct qdqi_parquet_chunk *chunk, uint64_t at,
                             struct qdqi_page_head *ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;
/* Reads and unpacks the page; the levels of version 2 stay in front of its values. */
enum qdq_code qdqi_page_load(const struct qdqi_parquet *file,
                             const struct qdqi_parquet_column *column,
                             const struct qdqi_parquet_chunk *chunk,
                             const struct qdqi_page_head *head,
                             struct qdqi_page_bytes *packed,
                             struct qdqi_page_bytes *page,
                             struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_page_free(struct qdqi_page_bytes *bytes);

/* Sets INVALID_DATASET: "column 'NAME' at byte N of the Parquet file: …". */
enum qdq_code qdqi_column_invalid(const struct qdqi_parquet_column *column, uint64_t at,
                                  struct qdq_error *err, const char *fmt, ...)
    QDQ_PRINTF(4, 5);

#endif
