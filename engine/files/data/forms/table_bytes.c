/* SPDX-License-Identifier: Apache-2.0 */
/* The page that holds the bytes of an image of a column. */
#include "config.h"
#include "files/data/forms/table_inner.h"

#include <string.h>

/* Reads the page of the images that begins at a byte of the file, unless it was read last. */
static enum qdq_code
load_page(struct qdq_dataset *ds, size_t group, uint64_t at, struct qdq_error *err)
{
    struct qdqi_table *t = ds->table;
    const struct qdqi_parquet_column *column = &t->file->columns[t->images];
    const struct qdqi_parquet_chunk *chunk = &t->file->groups[group].chunks[t->images];
    struct qdqi_page_head head;
    if (t->page_at == at)
        return QDQ_OK;
    t->page_at = 0;
    enum qdq_code code = qdqi_page_head(t->file, column, chunk, at, &head, err);
    if (!code)
        code = qdqi_page_load(t->file, column, chunk, &head, &t->packed, &t->page, err);
    if (!code)
        t->page_at = at;
    return code;
}

enum qdq_code
qdqi_table_bytes(struct qdq_dataset *ds, size_t group, uint64_t page, size_t at,
                 void *to, size_t size, struct qdq_error *err)
{
    enum qdq_code code = load_page(ds, group, page, err);
    if (code)
        return code;
    if (at > ds->table->page.size || size > ds->table->page.size - at)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "the dataset changes while it is read");
    memcpy(to, ds->table->page.data + at, size);
    return QDQ_OK;
}
