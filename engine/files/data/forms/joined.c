/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/forms/joined.h"
#include "files/data/cast.h"
#include "files/data/forms/table.h"

#include <stdlib.h>
#include <string.h>

/* --- which columns ----------------------------------------------------------------- */

static bool
is_joined(const struct qdq_dataset *ds, size_t i)
{
    return ds->items[i].column > 0 && ds->arrays[i].rank == 1 &&
           strcmp(ds->arrays[i].name, "labels") != 0;
}

static bool
is_float(enum qdqi_dtype dtype)
{
    return dtype == QDQI_FLOAT16 || dtype == QDQI_FLOAT32 || dtype == QDQI_FLOAT64;
}

/* Returns the type that holds the elements of all columns, as NumPy has it: float64 where one is of
   floating point, else int64. */
static enum qdqi_dtype
common_type(const struct qdq_dataset *ds)
{
    enum qdqi_dtype first = ds->items[ds->joined[0]].dtype;
    bool differs = false, floats = false;
    for (size_t i = 0; i < ds->n_joined; i++) {
        enum qdqi_dtype dtype = ds->items[ds->joined[i]].dtype;
        differs |= dtype != first;
        floats |= is_float(dtype) || dtype == QDQI_UINT64;
    }
    return !differs ? first : floats ? QDQI_FLOAT64 : QDQI_INT64;
}

enum qdq_code
qdqi_join(struct qdq_dataset *ds, struct qdq_error *err)
{
    const size_t n = ds->info.n_arrays;
    size_t *joined = qdqi_arena_array(ds->arena, n, sizeof *joined);
    int64_t *shape = qdqi_arena_array(ds->arena, 2, sizeof *shape);
    if (!joined || !shape)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        if (is_joined(ds, i))
            joined[ds->n_joined++] = i;
    ds->joined = joined;
    if (ds->n_joined < 2 || ds->n_joined > QDQI_MOST_JOINED) {
        ds->n_joined = 0;
        return QDQ_OK;
    }
    const enum qdqi_dtype dtype = common_type(ds);
    shape[0] = ds->info.samples;
    shape[1] = (int64_t)ds->n_joined;
    ds->arrays[n] = (struct qdq_array){"", qdqi_dtype_name((int)dtype), 2, shape};
    ds->items[n] = (struct qdqi_item){
        .dtype = dtype,
        .size = (uint64_t)shape[0] * ds->n_joined * qdqi_dtype_size((int)dtype),
        .input = QDQI_NAMED,
        .joins = true,
    };
    return QDQ_OK;
}

/* A dataset for a model has no such casts: nobody wants these integers in an input. */
static void
int64_to_double(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((double *)to)[i] = (double)((const int64_t *)from)[i];
}

static void
uint64_to_double(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((double *)to)[i] = (double)((const uint64_t *)from)[i];
}

static qdqi_cast_fn
find_cast(enum qdqi_dtype from, enum qdqi_dtype to)
{
    if (to == QDQI_FLOAT64 && from == QDQI_INT64)
        return int64_to_double;
    if (to == QDQI_FLOAT64 && from == QDQI_UINT64)
        return uint64_to_double;
    return qdqi_cast_find(from, to).fn;
}

/* --- reading ----------------------------------------------------------------------- */

struct column {
    struct qdqi_column_reader *reader;
    qdqi_cast_fn cast; /* there is one from each type of a column to the common one */
    size_t size;       /* of an element */
};

struct qdqi_joined {
    size_t n, at; /* at: the column of the next element */
    size_t size;  /* of an element */
    struct column *columns;
};

enum qdq_code
qdqi_joined_open(struct qdq_dataset *ds, struct qdqi_joined **ret,
                 struct qdq_error *err)
{
    const enum qdqi_dtype dtype = ds->items[ds->info.n_arrays].dtype;
    struct qdqi_joined *joined = calloc(1, sizeof *joined);
    if (joined)
        joined->columns = calloc(ds->n_joined, sizeof *joined->columns);
    if (!joined || !joined->columns) {
        free(joined);
        return qdqi_no_memory(err);
    }
    enum qdq_code code = QDQ_OK;
    joined->n = ds->n_joined;
    joined->size = qdqi_dtype_size((int)dtype);
    for (size_t i = 0; i < joined->n && !code; i++) {
        struct column *column = &joined->columns[i];
        const enum qdqi_dtype from = ds->items[ds->joined[i]].dtype;
        column->cast = find_cast(from, dtype);
        column->size = qdqi_dtype_size((int)from);
        code = qdqi_column_reader_open(ds, ds->joined[i], &column->reader, err);
    }
    if (code)
        qdqi_joined_close(&joined);
    else
        *ret = joined;
    return code;
}

/* Skips whole rows, of which a column passes over many at once. */
static enum qdq_code
skip_rows(struct qdqi_joined *joined, uint64_t rows, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < joined->n && !code; i++)
        code = qdqi_column_reader_skip(joined->columns[i].reader,
                                       rows * joined->columns[i].size, err);
    return code;
}

enum qdq_code
qdqi_joined_read(struct qdqi_joined *joined, unsigned char *to, uint64_t size,
                 struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    uint64_t n = size / joined->size;
    if (!to && joined->at == 0) {
        code = skip_rows(joined, n / joined->n, err);
        n %= joined->n;
    }
    for (; n > 0 && !code; n--) {
        union {
            uint64_t aligned;
            unsigned char bytes[8];
        } from, into;
        const struct column *column = &joined->columns[joined->at];
        code = qdqi_column_reader_read(column->reader, from.bytes, column->size, err);
        joined->at = (joined->at + 1) % joined->n;
        if (code || !to)
            continue;
        column->cast(into.bytes, from.bytes, 1);
        memcpy(to, into.bytes, joined->size);
        to += joined->size;
    }
    return code;
}

void
qdqi_joined_close(struct qdqi_joined **joined)
{
    if (!joined || !*joined)
        return;
    for (size_t i = 0; i < (*joined)->n; i++)
        qdqi_column_reader_close(&(*joined)->columns[i].reader);
    free((*joined)->columns);
    free(*joined);
    *joined = NULL;
}
