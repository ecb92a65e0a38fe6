/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of one column, from the first row to the last. */
#include "config.h"
#include "files/data/forms/table_inner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct qdqi_column_reader {
    const struct qdqi_parquet *file;
    const struct qdqi_parquet_column *column;
    struct qdqi_cursor *cursor;
    uint64_t at;       /* bytes that were read or skipped */
    uint64_t row_size; /* bytes of a row; 0 where rows differ */
    size_t batch_at;   /* bytes of the batch that were given */
    int64_t row;       /* rows before the batch */
    struct qdqi_batch batch;
};

enum qdq_code
qdqi_column_reader_open(struct qdq_dataset *ds, size_t array,
                        struct qdqi_column_reader **ret, struct qdq_error *err)
{
    const struct qdqi_item *item = &ds->items[array];
    struct qdqi_column_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return qdqi_no_memory(err);
    reader->file = ds->table->file;
    reader->column = &reader->file->columns[item->column - 1];
    reader->row_size = item->differs ? 0 : item->size / (uint64_t)ds->info.samples;
    enum qdq_code code =
        qdqi_cursor_open(reader->file, item->column - 1, &reader->cursor, err);
    if (code)
        qdqi_column_reader_close(&reader);
    else
        *ret = reader;
    return code;
}

/* Refuses a batch with a null, whose row it names. */
static enum qdq_code
check_batch(const struct qdqi_column_reader *reader, struct qdq_error *err)
{
    const struct qdqi_batch *batch = &reader->batch;
    int64_t row = reader->row - 1;
    if (batch->n_values == batch->n)
        return QDQ_OK;
    for (size_t i = 0; i < batch->n; i++) {
        row += batch->rep[i] == 0;
        if (batch->def[i] < reader->column->max_def)
            break;
    }
    return qdqi_column_invalid(reader->column, qdqi_cursor_at(reader->cursor), err,
                               "row %" PRId64
                               " is null; fill it, or leave the row out (pandas writes "
                               "NaN as null)",
                               row);
}

static enum qdq_code
next_batch(struct qdqi_column_reader *reader, struct qdq_error *err)
{
    for (size_t i = 0; i < reader->batch.n; i++)
        reader->row += reader->batch.rep[i] == 0;
    reader->batch_at = 0;
    enum qdq_code code = qdqi_cursor_next(reader->cursor, &reader->batch, err);
    if (!code && reader->batch.n == 0)
        code = qdqi_column_invalid(reader->column, qdqi_cursor_at(reader->cursor), err,
                                   "its pages end before the last row");
    return code ? code : check_batch(reader, err);
}

/* Reads the next bytes; with `to` NULL they are skipped. */
static enum qdq_code
take(struct qdqi_column_reader *reader, unsigned char *to, uint64_t size,
     struct qdq_error *err)
{
    const size_t element = qdqi_dtype_size((int)reader->column->dtype);
    reader->at += size;
    while (size > 0) {
        const size_t there = reader->batch.n_values * element - reader->batch_at;
        const size_t n = size < there ? (size_t)size : there;
        if (to && n > 0)
            memcpy(to, reader->batch.u.elements + reader->batch_at, n);
        reader->batch_at += n;
        size -= n;
        to = to ? to + n : NULL;
        enum qdq_code code = size > 0 ? next_batch(reader, err) : QDQ_OK;
        if (code)
            return code;
    }
    return QDQ_OK;
}

enum qdq_code
qdqi_column_reader_read(struct qdqi_column_reader *reader, void *to, size_t size,
                        struct qdq_error *err)
{
    return take(reader, to, size, err);
}

enum qdq_code
qdqi_column_reader_skip(struct qdqi_column_reader *reader, uint64_t size,
                        struct qdq_error *err)
{
    const uint64_t end = reader->at + size;
    const uint64_t row = reader->row_size > 0 ? end / reader->row_size : 0;
    uint64_t first = 0; /* row of the group */
    size_t group = 0;
    /* whole row groups are passed over */
    while (row > 0 && group + 1 < reader->file->n_groups &&
           first + (uint64_t)reader->file->groups[group].rows <= row)
        first += (uint64_t)reader->file->groups[group++].rows;
    if (first * reader->row_size <= reader->at)
        return take(reader, NULL, size, err);
    qdqi_cursor_seek(reader->cursor, group);
    reader->batch.n = reader->batch.n_values = reader->batch_at = 0;
    reader->row = (int64_t)first;
    reader->at = first * reader->row_size;
    return take(reader, NULL, end - reader->at, err);
}

void
qdqi_column_reader_close(struct qdqi_column_reader **reader)
{
    if (!reader || !*reader)
        return;
    qdqi_cursor_close(&(*reader)->cursor);
    free(*reader);
    *reader = NULL;
}
