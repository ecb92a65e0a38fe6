/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of the rows of a column: lists are read once, from the first row to the last. */
#include "config.h"
#include "files/data/feed.h"
#include "files/data/forms/table_inner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A small file may say that it has more values than anybody could read. */
static const int64_t VALUES_MIN = 1 << 24, VALUES_PER_BYTE = 4096;

struct scan {
    struct qdq_dataset *ds;
    const struct qdqi_parquet *file;
    const struct qdqi_parquet_column *column;
    struct qdqi_item *item;
    size_t depth; /* lists in each other */
    int64_t row;  /* the row that is read; -1 before the first */
    int64_t elements;
    /* of the row, for each depth: elements of the list that is read, and of those before it,
       which have one length; 0 where there is none */
    int64_t counts[QDQI_PARQUET_MAX_LISTS], sizes[QDQI_PARQUET_MAX_LISTS];
    int64_t
        *shape; /* the number of rows, and the sizes; QDQ_DIFFERS where rows differ */
    int64_t first[QDQI_PARQUET_MAX_LISTS]; /* the sizes of row 0 */
    size_t group;
    int64_t group_end; /* the row behind the row group */
    uint64_t at;       /* byte of the page */
    struct qdq_error *err;
};

static enum qdq_code
invalid(const struct scan *s, const char *what)
{
    return qdqi_column_invalid(s->column, s->at, s->err, "row %" PRId64 " %s",
                               s->row < 0 ? 0 : s->row, what);
}

/* --- the rows ------------------------------------------------------------------- */

/* Takes memory for the shapes of all rows when a row is the first that differs. */
static enum qdq_code
start_parts(struct scan *s)
{
    const size_t rows = (size_t)s->file->rows;
    if (s->item->differs)
        return QDQ_OK;
    if (s->file->rows > QDQI_TABLE_MOST_ROWS)
        return qdq_error_set(s->err, QDQ_LIMIT_EXCEEDED, QDQ_AT_INPUT, s->column->name,
                             "column '%s': %" PRId64
                             " rows of different lengths, and at most %d are read",
                             s->column->name, s->file->rows, QDQI_TABLE_MOST_ROWS);
    s->item->parts = qdqi_arena_array(s->ds->arena, rows, sizeof *s->item->parts);
    const int64_t *shape =
        qdqi_arena_copy(s->ds->arena, s->first, s->depth, sizeof *shape);
    if (!s->item->parts || !shape)
        return qdqi_no_memory(s->err);
    for (int64_t i = 0; i < s->row; i++) {
        s->item->parts[i].n = 1;
        s->item->parts[i].shape = shape;
        for (size_t k = 0; k < s->depth; k++)
            s->item->parts[i].n *= (uint64_t)shape[k];
    }
    s->item->differs = true;
    return QDQ_OK;
}

static enum qdq_code
add_row(struct scan *s)
{
    const bool differs = memcmp(s->sizes, s->first, s->depth * sizeof *s->sizes) != 0;
    enum qdq_code code = differs ? start_parts(s) : QDQ_OK;
    if (code || !s->item->differs)
        return code;
    int64_t *shape = qdqi_arena_copy(s->ds->arena, s->sizes, s->depth, sizeof *shape);
    if (!shape)
        return qdqi_no_memory(s->err);
    s->item->parts[s->row].n = (uint64_t)s->elements;
    s->item->parts[s->row].shape = shape;
    for (size_t k = 0; k < s->depth; k++)
        if (shape[k] != s->first[k])
            s->shape[k + 1] = QDQ_DIFFERS;
    return QDQ_OK;
}

/* Ends the lists that are deeper than `depth`. False where one has another length. */
static bool
end_lists(struct scan *s, size_t depth)
{
    for (size_t k = s->depth; k-- > depth;) {
        if (s->sizes[k] != 0 && s->sizes[k] != s->counts[k])
            return false;
        s->sizes[k] = s->counts[k];
        s->counts[k] = 1;
    }
    return true;
}

static enum qdq_code
end_row(struct scan *s)
{
    if (s->row < 0)
        return QDQ_OK;
    if (!end_lists(s, 0))
        return invalid(s, "holds lists of different lengths in one list, which is no "
                          "tensor");
    if (s->row == 0) {
        memcpy(s->first, s->sizes, sizeof s->first);
        memcpy(s->shape + 1, s->sizes, s->depth * sizeof *s->shape);
    }
    s->item->size += (uint64_t)s->elements * qdqi_dtype_size((int)s->item->dtype);
    return add_row(s);
}

static enum qdq_code
begin_row(struct scan *s)
{
    enum qdq_code code = end_row(s);
    if (code)
        return code;
    if (s->row + 1 >= s->group_end)
        return invalid(s, "is followed by more rows than the row group has");
    s->row++;
    s->elements = 1;
    memset(s->sizes, 0, sizeof s->sizes);
    for (size_t k = 0; k < s->depth; k++)
        s->counts[k] = 1;
    return QDQ_OK;
}

static enum qdq_code
add_level(struct scan *s, uint32_t rep, uint32_t def)
{
    enum qdq_code code = QDQ_OK;
    if (rep == 0)
        code = begin_row(s);
    else if (s->row < 0)
        code = invalid(s, "is missing: the column begins in the middle of a list");
    else if (!end_lists(s, rep))
        code = invalid(s, "holds lists of different lengths in one list, which is no "
                          "tensor");
    if (code)
        return code;
    if (rep > 0) {
        s->counts[rep - 1]++;
        s->elements++;
    }
    if (def < s->column->max_def)
        return invalid(s,
                       "holds a null or an empty list; fill it, or leave the row out");
    return s->elements > QDQI_FEED_MAX_INPUT
               ? invalid(s, "has more elements than a run may have")
               : QDQ_OK;
}

/* Notes that the column goes on in another row group. */
static enum qdq_code
enter_group(struct scan *s, size_t group)
{
    if (s->row + 1 != s->group_end)
        return invalid(s, "is the last one of a row group that has more rows");
    for (; s->group <= group; s->group++)
        s->group_end += s->file->groups[s->group].rows;
    return QDQ_OK;
}

static enum qdq_code
scan_lists(struct scan *s, size_t i, struct qdqi_batch *batch)
{
    struct qdqi_cursor *cursor = NULL;
    enum qdq_code code = qdqi_cursor_open(s->file, i, &cursor, s->err);
    while (!code && !(code = qdqi_cursor_next(cursor, batch, s->err)) && batch->n > 0) {
        s->at = qdqi_cursor_at(cursor);
        if (qdqi_cursor_group(cursor) >= s->group)
            code = enter_group(s, qdqi_cursor_group(cursor));
        for (size_t k = 0; !code && k < batch->n; k++)
            code = add_level(s, batch->rep[k], batch->def[k]);
    }
    qdqi_cursor_close(&cursor);
    if (!code)
        code = end_row(s);
    if (!code && s->row + 1 != s->file->rows)
        code = invalid(s, "is the last one, and the file has more");
    return code;
}

/* --- columns -------------------------------------------------------------------- */

/* Checks that the footer does not say more values of a column than can be there. */
static enum qdq_code
check_values(const struct scan *s, size_t i)
{
    int64_t sum = 0;
    const int64_t bytes =
        s->file->size < (uint64_t)1 << 48 ? (int64_t)s->file->size : (int64_t)1 << 48;
    for (size_t g = 0; g < s->file->n_groups; g++) {
        const struct qdqi_parquet_group *group = &s->file->groups[g];
        if (s->depth == 0 && group->chunks[i].values != group->rows)
            return qdqi_column_invalid(s->column, group->chunks[i].start, s->err,
                                       "row group %zu has %" PRId64
                                       " rows, and the column %" PRId64 " values",
                                       g, group->rows, group->chunks[i].values);
        if (__builtin_add_overflow(sum, group->chunks[i].values, &sum))
            sum = INT64_MAX;
    }
    return s->depth == 0 || sum <= VALUES_MIN + VALUES_PER_BYTE * bytes
               ? QDQ_OK
               : qdq_error_set(s->err, QDQ_LIMIT_EXCEEDED, QDQ_AT_INPUT,
                               s->column->name,
                               "column '%s': %" PRId64
                               " values are more than a file of this size may hold",
                               s->column->name, sum);
}

enum qdq_code
qdqi_table_shapes(struct qdq_dataset *ds, size_t i, struct qdqi_item *item,
                  int64_t **ret_shape, struct qdq_error *err)
{
    struct scan s = {.ds = ds,
                     .file = ds->table->file,
                     .column = &ds->table->file->columns[i],
                     .item = item,
                     .depth = ds->table->file->columns[i].max_rep,
                     .row = -1,
                     .err = err};
    s.shape = qdqi_arena_array(ds->arena, s.depth + 1, sizeof *s.shape);
    if (!s.shape)
        return qdqi_no_memory(err);
    s.shape[0] = s.file->rows;
    *ret_shape = s.shape;
    enum qdq_code code = check_values(&s, i);
    if (code)
        return code;
    if (s.depth == 0) {
        struct qdqi_cursor *cursor = NULL; /* says whether the pages can be read */
        item->size = (uint64_t)s.file->rows * qdqi_dtype_size((int)item->dtype);
        code = s.file->rows > INT64_MAX / 8
                   ? invalid(&s, "is none of so many rows as the footer says")
                   : qdqi_cursor_open(s.file, i, &cursor, err);
        qdqi_cursor_close(&cursor);
        return code;
    }
    struct qdqi_batch *batch = malloc(sizeof *batch);
    code = batch ? scan_lists(&s, i, batch) : qdqi_no_memory(err);
    free(batch);
    return code;
}
