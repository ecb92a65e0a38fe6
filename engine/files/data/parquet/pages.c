/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/parquet/pages.h"
#include "files/data/file.h"
#include "files/data/parquet/codec.h"
#include "files/data/parquet/thrift.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_TRY = 1024 }; /* bytes that hold the heads of most pages */

enum qdq_code
qdqi_column_invalid(const struct qdqi_parquet_column *column, uint64_t at,
                    struct qdq_error *err, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_INPUT, column->name,
                         "column '%s' at byte %" PRIu64 " of the Parquet file: %s",
                         column->name, at, text);
}

/* --- heads ---------------------------------------------------------------- */

static void
read_data_head(struct qdqi_thrift *t, struct qdqi_page_head *head)
{
    struct qdqi_thrift_field field = {0};
    while (qdqi_thrift_next(t, &field))
        if (field.id == 1)
            head->values = qdqi_thrift_integer(t, &field);
        else if (field.id == 2)
            head->encoding = qdqi_thrift_integer(t, &field);
        else if (field.id == 3)
            head->def_encoding = qdqi_thrift_integer(t, &field);
        else if (field.id == 4)
            head->rep_encoding = qdqi_thrift_integer(t, &field);
        else
            qdqi_thrift_skip(t, &field);
}

static void
read_dictionary_head(struct qdqi_thrift *t, struct qdqi_page_head *head)
{
    struct qdqi_thrift_field field = {0};
    while (qdqi_thrift_next(t, &field))
        if (field.id == 1)
            head->values = qdqi_thrift_integer(t, &field);
        else if (field.id == 2)
            head->encoding = qdqi_thrift_integer(t, &field);
        else
            qdqi_thrift_skip(t, &field);
}

static void
read_data_2_head(struct qdqi_thrift *t, struct qdqi_page_head *head)
{
    struct qdqi_thrift_field field = {0};
    while (qdqi_thrift_next(t, &field))
        switch (field.id) {
        case 1:
            head->values = qdqi_thrift_integer(t, &field);
            break;
        case 4:
            head->encoding = qdqi_thrift_integer(t, &field);
            break;
        case 5:
            head->def_bytes = qdqi_thrift_integer(t, &field);
            break;
        case 6:
            head->rep_bytes = qdqi_thrift_integer(t, &field);
            break;
        case 7:
            head->is_packed = qdqi_thrift_bool(t, &field);
            break;
        default:
            qdqi_thrift_skip(t, &field);
        }
}

static void
read_head(struct qdqi_thrift *t, struct qdqi_page_head *head)
{
    struct qdqi_thrift_field field = {0};
    *head = (struct qdqi_page_head){.kind = -1,
                                    .size = -1,
                                    .packed = -1,
                                    .values = -1,
                                    .encoding = -1,
                                    .def_encoding = QDQI_PARQUET_RLE,
                                    .rep_encoding = QDQI_PARQUET_RLE,
                                    .is_packed = true};
    while (qdqi_thrift_next(t, &field)) {
        const bool is_struct =
            field.id >= 5 && field.id <= 8 && qdqi_thrift_enter(t, &field);
        switch (field.id) {
        case 1:
            head->kind = qdqi_thrift_integer(t, &field);
            break;
        case 2:
            head->size = qdqi_thrift_integer(t, &field);
            break;
        case 3:
            head->packed = qdqi_thrift_integer(t, &field);
            break;
        case 4:
            head->crc = (uint32_t)qdqi_thrift_integer(t, &field);
            head->has_crc = true;
            break;
        case 5:
            if (is_struct)
                read_data_head(t, head);
            break;
        case 7:
            if (is_struct)
                read_dictionary_head(t, head);
            break;
        case 8:
            if (is_struct)
                read_data_2_head(t, head);
            break;
        default:
            qdqi_thrift_skip(t, &field);
        }
    }
}

static enum qdq_code
check_head(const struct qdqi_parquet_column *column,
           const struct qdqi_parquet_chunk *chunk, const struct qdqi_page_head *head,
           struct qdq_error *err)
{
    const bool has_values = head->kind != QDQI_PAGE_INDEX;
    if (head->kind < QDQI_PAGE_DATA || head->kind > QDQI_PAGE_DATA_2)
        return qdqi_column_invalid(column, head->at, err, "a page of an unknown kind");
    if (head->size < 0 || head->packed < 0 || (has_values && head->values < 0) ||
        head->values > INT32_MAX)
        return qdqi_column_invalid(column, head->at, err,
                                   "a page without a size or a number of values");
    if ((uint64_t)head->packed > chunk->end - head->data_at)
        return qdqi_column_invalid(column, head->at, err,
                                   "a page that goes on behind the column's end");
    if (head->size > QDQI_PARQUET_MAX_PAGE || head->packed > QDQI_PARQUET_MAX_PAGE)
        return qdq_error_set(
            err, QDQ_LIMIT_EXCEEDED, QDQ_AT_INPUT, column->name,
            "column '%s' at byte %" PRIu64 " of the Parquet file: a page of %" PRId64
            " bytes, and at most %d are read; write smaller pages, for example by "
            "data_page_size and write_batch_size of pyarrow.parquet.write_table",
            column->name, head->at,
            head->size > head->packed ? head->size : head->packed,
            QDQI_PARQUET_MAX_PAGE);
    if (head->kind == QDQI_PAGE_DATA_2 &&
        (head->def_bytes < 0 || head->rep_bytes < 0 || head->def_bytes > head->size ||
         head->rep_bytes > head->size - head->def_bytes ||
         head->def_bytes > head->packed ||
         head->rep_bytes > head->packed - head->def_bytes))
        return qdqi_column_invalid(column, head->at, err,
                                   "a page whose levels are larger than it");
    return QDQ_OK;
}

/* Reads and parses `size` bytes. */
static enum qdq_code
try_head(const struct qdqi_parquet *file, uint64_t at, size_t size,
         struct qdqi_thrift *ret_thrift, struct qdqi_page_head *ret,
         struct qdq_error *err)
{
    size_t got = 0;
    unsigned char *bytes = malloc(size);
    if (!bytes)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_data_read(file->fd, at, bytes, size, &got, err);
    if (!code) {
        *ret_thrift = (struct qdqi_thrift){.bytes = bytes, .size = got};
        read_head(ret_thrift, ret);
        ret_thrift->bytes = NULL;
    }
    free(bytes);
    return code;
}

enum qdq_code
qdqi_page_head(const struct qdqi_parquet *file,
               const struct qdqi_parquet_column *column,
               const struct qdqi_parquet_chunk *chunk, uint64_t at,
               struct qdqi_page_head *ret, struct qdq_error *err)
{
    const uint64_t left = chunk->end - at;
    const size_t tries[] = {FIRST_TRY, QDQI_PARQUET_MAX_HEAD};
    struct qdqi_thrift t = {.failed = true};
    if (left == 0)
        return qdqi_column_invalid(column, at, err,
                                   "the pages end before the last value");
    for (size_t i = 0; i < sizeof tries / sizeof *tries && t.failed; i++) {
        const size_t size = left < tries[i] ? (size_t)left : tries[i];
        enum qdq_code code = try_head(file, at, size, &t, ret, err);
        if (code)
            return code;
        if (left <= tries[i])
            break;
    }
    if (t.failed)
        return qdqi_column_invalid(column, at + t.at, err,
                                   "the head of a page is damaged: %s", t.why);
    ret->at = at;
    ret->data_at = at + t.at;
    return check_head(column, chunk, ret, err);
}

/* --- pages ---------------------------------------------------------------- */

static enum qdq_code
make_room(struct qdqi_page_bytes *bytes, size_t size, struct qdq_error *err)
{
    if (bytes->capacity < size || !bytes->data) {
        free(bytes->data);
        bytes->data = malloc(size ? size : 1);
        bytes->capacity = bytes->data ? size : 0;
    }
    bytes->size = size;
    return bytes->data ? QDQ_OK : qdqi_no_memory(err);
}

static enum qdq_code
read_bytes(const struct qdqi_parquet *file, const struct qdqi_page_head *head,
           struct qdqi_page_bytes *to, struct qdq_error *err)
{
    size_t got = 0;
    enum qdq_code code = make_room(to, (size_t)head->packed, err);
    if (!code)
        code = qdqi_data_read(file->fd, head->data_at, to->data, to->size, &got, err);
    return code || got == to->size
               ? code
               : qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                               "the dataset changes while it is read");
}

enum qdq_code
qdqi_page_load(const struct qdqi_parquet *file,
               const struct qdqi_parquet_column *column,
               const struct qdqi_parquet_chunk *chunk,
               const struct qdqi_page_head *head, struct qdqi_page_bytes *packed,
               struct qdqi_page_bytes *page, struct qdq_error *err)
{
    const bool is_2 = head->kind == QDQI_PAGE_DATA_2;
    const bool unpacks = chunk->codec != QDQI_CODEC_NONE && (!is_2 || head->is_packed);
    const size_t levels = is_2 ? (size_t)(head->def_bytes + head->rep_bytes) : 0;
    struct qdqi_page_bytes *to = unpacks ? packed : page;
    enum qdq_code code = read_bytes(file, head, to, err);
    if (code)
        return code;
    if (head->has_crc && qdqi_codec_crc(to->data, to->size) != head->crc)
        return qdqi_column_invalid(column, head->at, err,
                                   "a page is damaged: its checksum is wrong");
    if (!unpacks)
        return head->packed == head->size
                   ? QDQ_OK
                   : qdqi_column_invalid(column, head->at, err,
                                         "a page of two different sizes");
    code = make_room(page, (size_t)head->size, err);
    if (code)
        return code;
    memcpy(page->data, packed->data, levels);
    const char *why =
        qdqi_codec_unpack(chunk->codec, packed->data + levels, packed->size - levels,
                          page->data + levels, page->size - levels);
    return why ? qdqi_column_invalid(column, head->at, err, "a page is damaged: %s",
                                     why)
               : QDQ_OK;
}

void
qdqi_page_free(struct qdqi_page_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct qdqi_page_bytes){0};
}
