/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/forms/table.h"
#include "files/data/forms/table_inner.h"
#include "files/data/forms/joined.h"
#include "ground/base/map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    struct qdq_dataset *ds;
    struct qdqi_table *table;
    size_t capacity;        /* of the dataset's arrays */
    struct qdqi_map *names; /* of arrays */
    size_t n_data, data;    /* arrays of numbers that are no labels; the last one */
    struct qdq_error *err;
};

/* --- columns that are no arrays ------------------------------------------------ */

static enum qdq_code
leave(struct reading *r, const char *name, const char *why)
{
    struct qdqi_table *t = r->table;
    t->unused = qdqi_arena_grow(r->ds->arena, t->unused, t->n_unused,
                                &t->unused_capacity, sizeof *t->unused);
    why = qdqi_arena_strdup(r->ds->arena, why);
    if (!t->unused || !why)
        return qdqi_no_memory(r->err);
    t->unused[t->n_unused++] = (struct qdqi_unused_column){name, why};
    return QDQ_OK;
}

/* Leaves a column whose data cannot be used. Other errors are those of the dataset. */
static enum qdq_code
leave_damaged(struct reading *r, const char *name, enum qdq_code code,
              struct qdq_error *why)
{
    if (code == QDQ_INVALID_DATASET || code == QDQ_LIMIT_EXCEEDED)
        return leave(r, name, why->text);
    if (r->err)
        *r->err = *why;
    return code;
}

const char *
qdqi_table_why_not(const struct qdq_dataset *ds, const char *name)
{
    for (size_t i = 0; ds->table && i < ds->table->n_unused; i++)
        if (strcmp(ds->table->unused[i].name, name) == 0)
            return ds->table->unused[i].why;
    return NULL;
}

/* --- arrays --------------------------------------------------------------------- */

/* Makes room for an array behind the others. */
static enum qdq_code
make_room(struct reading *r)
{
    struct qdq_dataset *ds = r->ds;
    const size_t n = ds->info.n_arrays;
    size_t same = r->capacity;
    ds->arrays =
        qdqi_arena_grow(ds->arena, ds->arrays, n, &r->capacity, sizeof *ds->arrays);
    ds->items = qdqi_arena_grow(ds->arena, ds->items, n, &same, sizeof *ds->items);
    if (!ds->arrays || !ds->items)
        return qdqi_no_memory(r->err);
    ds->info.arrays = ds->arrays;
    return QDQ_OK;
}

static enum qdq_code
add_array(struct reading *r, const char *name, const int64_t *shape, size_t rank,
          const struct qdqi_item *item)
{
    struct qdq_dataset *ds = r->ds;
    const size_t n = ds->info.n_arrays;
    enum qdq_code code = qdqi_dataset_check_arrays(n + 1, r->err);
    if (!code)
        code = make_room(r);
    if (code)
        return code;
    if (!qdqi_map_put(r->names, name, ds))
        return qdqi_no_memory(r->err);
    ds->arrays[n] =
        (struct qdq_array){name, qdqi_dtype_name((int)item->dtype), rank, shape};
    ds->items[n] = *item;
    ds->info.n_arrays++;
    return QDQ_OK;
}

static bool
is_label(const struct qdqi_parquet_column *column)
{
    return column->max_rep == 0 && column->dtype != QDQI_FLOAT32 &&
           column->dtype != QDQI_FLOAT64 && column->dtype != QDQI_FLOAT16 &&
           (strcmp(column->name, "label") == 0 || strcmp(column->name, "labels") == 0);
}

/* Returns whether an earlier column of labels has the very name of column i. */
static bool
has_namesake(const struct qdqi_parquet *file, size_t i)
{
    bool any = false;
    for (size_t k = 0; k < i && !any; k++)
        any = is_label(&file->columns[k]) &&
              strcmp(file->columns[k].name, file->columns[i].name) == 0;
    return any;
}

/* A model that reads a name cannot tell which of two columns is meant. */
static enum qdq_code
twice(const struct reading *r, const char *name)
{
    return qdq_error_set(r->err, QDQ_INVALID_DATASET, QDQ_AT_NOTHING, NULL,
                         "the Parquet file has two columns with the name '%.200s': "
                         "give them names of their "
                         "own, or leave one out (docs/reference/data.md)",
                         name);
}

static enum qdq_code
add_numbers(struct reading *r, size_t i)
{
    const struct qdqi_parquet_column *column = &r->table->file->columns[i];
    const char *name = is_label(column) ? "labels" : column->name;
    struct qdqi_item item = {
        .dtype = column->dtype, .input = QDQI_NAMED, .column = i + 1};
    struct qdq_error why = {0};
    int64_t *shape = NULL;
    if (qdqi_map_get(r->names, name))
        return !is_label(column) || has_namesake(r->table->file, i)
                   ? twice(r, column->name)
                   : leave(r, column->name, "another column has this name");
    enum qdq_code code = qdqi_table_shapes(r->ds, i, &item, &shape, &why);
    if (code)
        return leave_damaged(r, column->name, code, &why);
    if (strcmp(name, "labels") != 0) {
        r->n_data++;
        r->data = r->ds->info.n_arrays;
    }
    return add_array(r, name, shape, column->max_rep + 1, &item);
}

static enum qdq_code
add_images(struct reading *r, size_t i)
{
    const struct qdqi_parquet_column *column = &r->table->file->columns[i];
    struct qdq_error why = {0};
    bool are_images = false;
    enum qdq_code code = qdqi_table_images(r->ds, i, &are_images, &why);
    if (code)
        return leave_damaged(r, column->name, code, &why);
    return are_images ? QDQ_OK : leave(r, column->name, column->why);
}

/* Returns the column of byte arrays among those of a field of a row: the field itself, or the
   field `bytes` of its struct; its end where there is none. */
static size_t
bytes_of(const struct qdqi_parquet *file, size_t from, size_t to)
{
    size_t i = from;
    while (i < to &&
           !(file->columns[i].is_bytes && file->columns[i].max_rep == 0 &&
             (!file->columns[i].child || strcmp(file->columns[i].child, "bytes") == 0)))
        i++;
    return i;
}

/* Adds the images, which come first, or the numbers of one field of a row: its columns are
   `from` to to - 1. */
static enum qdq_code
add_field(struct reading *r, size_t from, size_t to, bool images)
{
    const struct qdqi_parquet *file = r->table->file;
    const struct qdqi_parquet_column *first = &file->columns[from];
    const size_t bytes = bytes_of(file, from, to);
    if (images)
        return bytes < to && !r->ds->images ? add_images(r, bytes) : QDQ_OK;
    if (r->ds->images && r->table->images >= from && r->table->images < to)
        return QDQ_OK;
    if (strncmp(first->name, "__index_level_", strlen("__index_level_")) == 0)
        return leave(r, first->name, "it is the index that pandas wrote");
    if (bytes < to)
        return r->ds->images
                   ? leave(r, first->name, "another column of bytes holds the images")
                   : QDQ_OK; /* left before */
    if (to - from > 1 || !first->is_chain)
        return leave(r, first->name, "it is a struct or a map of several fields");
    if (first->dtype == QDQI_UNKNOWN)
        return leave(r, first->name, first->why);
    return add_numbers(r, from);
}

static enum qdq_code
add_fields(struct reading *r, bool images)
{
    const struct qdqi_parquet *file = r->table->file;
    enum qdq_code code = QDQ_OK;
    for (size_t from = 0, to; !code && from < file->n_columns; from = to) {
        for (to = from + 1; to < file->n_columns &&
                            file->columns[to].name == file->columns[from].name;)
            to++; /* columns of one field share the text */
        code = add_field(r, from, to, images);
    }
    return code;
}

static enum qdq_code
no_column(const struct reading *r)
{
    const struct qdqi_table *t = r->table;
    const char *why = t->n_unused > 0 ? t->unused[0].why : "";
    const bool is_named = strncmp(why, "column '", strlen("column '")) == 0;
    return qdq_error_set(
        r->err, QDQ_INVALID_DATASET, QDQ_AT_NOTHING, NULL,
        "no column of the Parquet file holds numbers, lists of numbers "
        "or images%s%s%s%s%s (docs/reference/data.md)",
        *why ? ": " : "", *why && !is_named ? "column '" : "",
        *why && !is_named ? t->unused[0].name : "", *why && !is_named ? "': " : "",
        why);
}

enum qdq_code
qdqi_table_read(struct qdq_dataset *ds, struct qdq_error *err)
{
    struct reading r = {.ds = ds, .err = err};
    ds->table = r.table = calloc(1, sizeof *r.table);
    r.names = qdqi_map_new(ds->arena);
    if (!r.table || !r.names)
        return qdqi_no_memory(err);
    enum qdq_code code =
        qdqi_parquet_open(ds->fd, ds->info.size, ds->arena, &r.table->file, err);
    if (!code && r.table->file->rows == 0)
        code = qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_NOTHING, NULL,
                             "the Parquet file has no rows");
    if (code)
        return code;
    ds->info.samples = r.table->file->rows;
    code = add_fields(&r, true);
    r.capacity = ds->info.n_arrays; /* that of images lies in memory of its own */
    if (!code && ds->images && !qdqi_map_put(r.names, "images", ds))
        code = qdqi_no_memory(err);
    if (!code)
        code = add_fields(&r, false);
    if (!code && ds->info.n_arrays == 0)
        code = no_column(&r);
    if (!code && r.n_data == 1 && !ds->images)
        ds->items[r.data].is_alone = true;
    if (!code && r.n_data > 1 && !ds->images)
        code = make_room(&r);
    return code || r.n_data < 2 || ds->images ? code : qdqi_join(ds, err);
}

void
qdqi_table_free(struct qdqi_table **table)
{
    if (!table || !*table)
        return;
    qdqi_page_free(&(*table)->packed);
    qdqi_page_free(&(*table)->page);
    free(*table);
    *table = NULL;
}

/* --- the shape of an input ------------------------------------------------------ */

enum qdq_code
qdqi_table_lay_out(const struct qdq_dataset *ds, size_t i,
                   const struct qdq_value *input, struct qdqi_arena *arena,
                   const struct qdq_array **ret, struct qdq_error *err)
{
    const struct qdq_array *array = &ds->arrays[i];
    int64_t there = 1, product = 1;
    size_t open = 0;
    if (!ds->table || ds->items[i].differs || !input->has_shape ||
        array->rank >= input->rank)
        return QDQ_OK;
    for (size_t k = 1; k < array->rank; k++)
        there *= array->shape[k];
    for (size_t k = 1; k < input->rank; k++)
        if (input->dims[k].value <= 0)
            open++;
        else if (__builtin_mul_overflow(product, input->dims[k].value, &product))
            return QDQ_OK;
    if (open > 1 || (open == 0 ? product != there : there % product != 0))
        return QDQ_OK;
    int64_t *shape = qdqi_arena_array(arena, input->rank, sizeof *shape);
    struct qdq_array *laid = qdqi_arena_alloc(arena, sizeof *laid);
    if (!shape || !laid)
        return qdqi_no_memory(err);
    shape[0] = array->shape[0];
    for (size_t k = 1; k < input->rank; k++)
        shape[k] = input->dims[k].value > 0 ? input->dims[k].value : there / product;
    *laid = (struct qdq_array){array->name, array->dtype, input->rank, shape};
    *ret = laid;
    return QDQ_OK;
}
