/* SPDX-License-Identifier: Apache-2.0 */
/* The images of a column: their heads are read once, and each is read again when it is needed. */
#include "config.h"
#include "files/data/forms/table_inner.h"
#include "files/data/images/inner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct scan {
    struct qdq_dataset *ds;
    const struct qdqi_parquet *file;
    const struct qdqi_parquet_column *column;
    struct qdqi_image *rows;
    size_t n;
    bool are_images;
    struct qdq_error *err;
};

static bool
is_picture(const struct qdqi_bytes_place *place)
{
    return (place->size >= 8 && memcmp(place->bytes, "\x89PNG\r\n\x1a\n", 8) == 0) ||
           (place->size >= 3 && memcmp(place->bytes, "\xff\xd8\xff", 3) == 0);
}

static enum qdq_code
add_image(struct scan *s, const struct qdqi_cursor *cursor,
          const struct qdqi_bytes_place *place)
{
    struct qdqi_image *image = &s->rows[s->n];
    bool found = false;
    *image = (struct qdqi_image){
        .name = qdqi_arena_printf(s->ds->arena, "row %zu of column %s", s->n,
                                  s->column->name),
        .member = qdqi_cursor_group(cursor),
        .size = place->size,
        .page = place->page,
        .at = place->at,
        .label = -1,
    };
    if (!image->name)
        return qdqi_no_memory(s->err);
    enum qdq_code code = qdqi_picture_head(image->name, place->bytes, place->size,
                                           place->size, &image->head, &found, s->err);
    if (!code && !found)
        code = qdqi_picture_invalid(image->name, s->err, "it ends before its size");
    s->n++;
    return code;
}

/* Adds the images of a batch. Ends where the first byte array is none. */
static enum qdq_code
add_batch(struct scan *s, const struct qdqi_cursor *cursor,
          const struct qdqi_batch *batch)
{
    const struct qdqi_bytes_place *place = batch->u.places;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; !code && i < batch->n; i++) {
        if (batch->def[i] < s->column->max_def)
            return qdqi_column_invalid(
                s->column, qdqi_cursor_at(cursor), s->err,
                "row %zu has no image (null); leave it out, or write the bytes of the "
                "file instead of its path",
                s->n);
        if (s->n == 0 && !is_picture(place))
            return QDQ_OK;
        s->are_images = true;
        if (s->n == (size_t)s->file->rows)
            return qdqi_column_invalid(s->column, qdqi_cursor_at(cursor), s->err,
                                       "it has more values than the file has rows");
        code = add_image(s, cursor, place++);
    }
    return code;
}

static enum qdq_code
scan_images(struct scan *s, size_t i, struct qdqi_batch *batch)
{
    struct qdqi_cursor *cursor = NULL;
    enum qdq_code code = qdqi_cursor_open(s->file, i, &cursor, s->err);
    while (!code && !(code = qdqi_cursor_next(cursor, batch, s->err)) && batch->n > 0) {
        code = add_batch(s, cursor, batch);
        if (!s->are_images)
            break;
    }
    if (!code && s->are_images && s->n != (size_t)s->file->rows)
        code = qdqi_column_invalid(s->column, qdqi_cursor_at(cursor), s->err,
                                   "it has %zu values, and the file %" PRId64 " rows",
                                   s->n, s->file->rows);
    qdqi_cursor_close(&cursor);
    return code;
}

enum qdq_code
qdqi_table_images(struct qdq_dataset *ds, size_t i, bool *ret_are_images,
                  struct qdq_error *err)
{
    struct scan s = {.ds = ds,
                     .file = ds->table->file,
                     .column = &ds->table->file->columns[i],
                     .err = err};
    struct qdqi_batch *batch = NULL;
    if (s.file->rows > QDQI_TABLE_MOST_ROWS)
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_INPUT, s.column->name,
                             "column '%s': %" PRId64
                             " rows of bytes, and at most %d images are read",
                             s.column->name, s.file->rows, QDQI_TABLE_MOST_ROWS);
    s.rows = qdqi_arena_array(ds->arena, (size_t)s.file->rows, sizeof *s.rows);
    batch = malloc(sizeof *batch);
    enum qdq_code code =
        s.rows && batch ? scan_images(&s, i, batch) : qdqi_no_memory(err);
    free(batch);
    *ret_are_images = !code && s.are_images;
    if (!*ret_are_images)
        return code;
    ds->images = qdqi_arena_alloc(ds->arena, sizeof *ds->images);
    if (!ds->images)
        return qdqi_no_memory(err);
    *ds->images = (struct qdqi_images){.rows = s.rows, .n = s.n};
    ds->table->images = i;
    return qdqi_images_add_arrays(ds, false, err);
}
