/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/parquet/cursor.h"
#include "files/data/parquet/codec.h"
#include "files/data/parquet/encodings.h"

#include <stdlib.h>
#include <string.h>

/* How the values of a page are found. */
enum way { FIXED, BITS, BIT_RUNS, INDEXES, DELTAS, SPLIT, COUNTED, LENGTHS };

struct qdqi_cursor {
    const struct qdqi_parquet *file;
    const struct qdqi_parquet_column *column;
    size_t index;       /* of the column */
    size_t width;       /* bytes of a value as it is stored; 0: byte arrays */
    size_t element;     /* bytes of an element as it is given */
    size_t group;       /* the row group of the pages */
    bool in_group;      /* its pages are read */
    uint64_t at;        /* byte of the next page */
    int64_t group_left; /* values of the row group behind the page */
    struct qdqi_page_head page_head, dictionary_head;
    struct qdqi_page_bytes packed, page, dictionary;
    size_t n_dictionary;              /* its values; 0: there is none */
    struct qdqi_bytes_place *entries; /* the dictionary's byte arrays */
    int64_t page_left;                /* values of the page that were not given */
    struct qdqi_rle rep, def, runs;
    struct qdqi_deltas deltas;
    enum way way;
    const unsigned char *values, *values_end; /* those that were not given */
    uint64_t bit;                             /* of a page of bits */
    size_t split_at, n_split; /* of a page of split bytes: the next value, and all */
    uint32_t indexes[QDQI_BATCH];
    int64_t numbers[QDQI_BATCH];
};

static enum qdq_code
invalid(const struct qdqi_cursor *c, struct qdq_error *err, const char *what)
{
    return qdqi_column_invalid(c->column, c->page_head.at, err, "%s", what);
}

static size_t
stored_width(const struct qdqi_parquet_column *column)
{
    switch (column->type) {
    case QDQI_PARQUET_BOOLEAN:
        return 1;
    case QDQI_PARQUET_INT32:
    case QDQI_PARQUET_FLOAT:
        return 4;
    case QDQI_PARQUET_INT64:
    case QDQI_PARQUET_DOUBLE:
        return 8;
    case QDQI_PARQUET_FIXED:
        return (size_t)column->width; /* 2: of a float16 alone */
    default:
        return 0;
    }
}

/* --- dictionaries ----------------------------------------------------------- */

/* Reads the length of the byte array at *at, and moves behind it. */
static bool
next_bytes(const unsigned char **at, const unsigned char *end,
           struct qdqi_bytes_place *ret)
{
    if (end - *at < 4)
        return false;
    const unsigned char *p = *at;
    const uint32_t n = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                       (uint32_t)p[3] << 24;
    if (n > (size_t)(end - p) - 4)
        return false;
    ret->bytes = p + 4;
    ret->size = n;
    *at = p + 4 + n;
    return true;
}

static enum qdq_code
list_entries(struct qdqi_cursor *c, size_t n, struct qdq_error *err)
{
    const unsigned char *start = c->dictionary.data, *at = start;
    free(c->entries);
    c->entries = NULL;
    if (n > c->dictionary.size / 4)
        return invalid(c, err, "a dictionary of more values than it has bytes");
    c->entries = calloc(n ? n : 1, sizeof *c->entries);
    if (!c->entries)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        struct qdqi_bytes_place *place = &c->entries[i];
        if (!next_bytes(&at, start + c->dictionary.size, place))
            return invalid(c, err, "a dictionary that is cut short");
        place->page = c->page_head.at;
        place->at = (size_t)(place->bytes - start);
    }
    return QDQ_OK;
}

static enum qdq_code
take_dictionary(struct qdqi_cursor *c, const struct qdqi_parquet_chunk *chunk,
                struct qdq_error *err)
{
    const struct qdqi_page_head *head = &c->page_head;
    const size_t n = (size_t)head->values;
    c->n_dictionary = 0;
    if (head->encoding != QDQI_PARQUET_PLAIN &&
        head->encoding != QDQI_PARQUET_PLAIN_DICTIONARY)
        return invalid(c, err, "a dictionary of an unknown encoding");
    enum qdq_code code = qdqi_page_load(c->file, c->column, chunk, head, &c->packed,
                                        &c->dictionary, err);
    if (!code && c->width == 0)
        code = list_entries(c, n, err);
    else if (!code && n > c->dictionary.size / c->width)
        code = invalid(c, err, "a dictionary of more values than it has bytes");
    if (!code)
        c->n_dictionary = n;
    return code;
}

/* --- the start of a page ---------------------------------------------------- */

static unsigned
bits_of(unsigned most)
{
    unsigned n = 0;
    for (; most > 0; most >>= 1)
        n++;
    return n;
}

/* Starts levels that have their size in front, and moves behind them. */
static enum qdq_code
start_levels(struct qdqi_cursor *c, unsigned most, int64_t encoding,
             struct qdqi_rle *runs, struct qdq_error *err)
{
    struct qdqi_bytes_place levels;
    if (most == 0)
        return QDQ_OK;
    if (encoding != QDQI_PARQUET_RLE)
        return invalid(
            c, err,
            "levels of the old encoding BIT_PACKED, which is not read; write "
            "the file anew with pyarrow");
    if (!next_bytes(&c->values, c->values_end, &levels))
        return invalid(c, err, "levels that go on behind their page");
    qdqi_rle_start(runs, levels.bytes, levels.size, bits_of(most));
    return QDQ_OK;
}

static enum qdq_code
start_all_levels(struct qdqi_cursor *c, struct qdq_error *err)
{
    const struct qdqi_page_head *head = &c->page_head;
    if (head->kind == QDQI_PAGE_DATA_2) {
        qdqi_rle_start(&c->rep, c->values, (size_t)head->rep_bytes,
                       bits_of(c->column->max_rep));
        qdqi_rle_start(&c->def, c->values + head->rep_bytes, (size_t)head->def_bytes,
                       bits_of(c->column->max_def));
        c->values += head->rep_bytes + head->def_bytes;
        return QDQ_OK;
    }
    enum qdq_code code =
        start_levels(c, c->column->max_rep, head->rep_encoding, &c->rep, err);
    return code ? code
                : start_levels(c, c->column->max_def, head->def_encoding, &c->def, err);
}

static enum qdq_code
start_indexes(struct qdqi_cursor *c, struct qdq_error *err)
{
    const size_t n = (size_t)(c->values_end - c->values);
    c->way = INDEXES;
    /* a page of nulls alone may hold nothing */
    const unsigned width = n > 0 ? *c->values : 0;
    if (width > 32)
        return invalid(c, err, "indexes of more than 32 bits");
    qdqi_rle_start(&c->runs, c->values + (n > 0), n - (n > 0), width);
    return QDQ_OK;
}

/* Finds where the bytes begin behind their lengths. */
static enum qdq_code
start_lengths(struct qdqi_cursor *c, struct qdq_error *err)
{
    struct qdqi_deltas all;
    const size_t size = (size_t)(c->values_end - c->values);
    c->way = LENGTHS;
    if (!qdqi_deltas_start(&all, c->values, size) ||
        all.left > (uint64_t)c->page_head.values)
        return invalid(c, err, "damaged lengths");
    c->deltas = all;
    while (all.left > 0)
        if (!qdqi_deltas_take(&all, c->numbers,
                              all.left < QDQI_BATCH ? (size_t)all.left : QDQI_BATCH))
            return invalid(c, err, "damaged lengths");
    c->values = all.at;
    return QDQ_OK;
}

static enum qdq_code
start_deltas(struct qdqi_cursor *c, struct qdq_error *err)
{
    c->way = DELTAS;
    return qdqi_deltas_start(&c->deltas, c->values, (size_t)(c->values_end - c->values))
               ? QDQ_OK
               : invalid(c, err, "damaged differences");
}

static enum qdq_code
start_bit_runs(struct qdqi_cursor *c, struct qdq_error *err)
{
    struct qdqi_bytes_place runs;
    c->way = BIT_RUNS;
    if (!next_bytes(&c->values, c->values_end, &runs))
        return invalid(c, err, "booleans that go on behind their page");
    qdqi_rle_start(&c->runs, runs.bytes, runs.size, 1);
    return QDQ_OK;
}

static enum qdq_code
start_values(struct qdqi_cursor *c, struct qdq_error *err)
{
    const enum qdqi_parquet_type type = c->column->type;
    const bool is_integer = type == QDQI_PARQUET_INT32 || type == QDQI_PARQUET_INT64;
    switch (c->page_head.encoding) {
    case QDQI_PARQUET_PLAIN:
        c->way = type == QDQI_PARQUET_BOOLEAN ? BITS : c->width == 0 ? COUNTED : FIXED;
        c->bit = 0;
        return QDQ_OK;
    case QDQI_PARQUET_PLAIN_DICTIONARY:
    case QDQI_PARQUET_RLE_DICTIONARY:
        return start_indexes(c, err);
    case QDQI_PARQUET_RLE:
        if (type == QDQI_PARQUET_BOOLEAN)
            return start_bit_runs(c, err);
        break;
    case QDQI_PARQUET_DELTA:
        if (is_integer)
            return start_deltas(c, err);
        break;
    case QDQI_PARQUET_DELTA_LENGTHS:
        if (c->width == 0)
            return start_lengths(c, err);
        break;
    case QDQI_PARQUET_SPLIT:
        if (c->width > 0) {
            c->way = SPLIT;
            c->split_at = 0;
            c->n_split = (size_t)(c->values_end - c->values) / c->width;
            return QDQ_OK;
        }
        break;
    default:
        break;
    }
    return qdqi_column_invalid(
        c->column, c->page_head.at, err,
        "encoding %lld, which is not read for this type (PLAIN, dictionaries, RLE of "
        "booleans, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY and BYTE_STREAM_SPLIT "
        "are)",
        (long long)c->page_head.encoding);
}

static enum qdq_code
start_page(struct qdqi_cursor *c, const struct qdqi_parquet_chunk *chunk,
           struct qdq_error *err)
{
    enum qdq_code code = qdqi_page_load(c->file, c->column, chunk, &c->page_head,
                                        &c->packed, &c->page, err);
    if (code)
        return code;
    if (c->page_head.values > c->group_left)
        return invalid(c, err, "more values than the footer says");
    c->values = c->page.data;
    c->values_end = c->page.data + c->page.size;
    code = start_all_levels(c, err);
    if (!code)
        code = start_values(c, err);
    if (code)
        return code;
    c->page_left = c->page_head.values;
    c->group_left -= c->page_left;
    return QDQ_OK;
}

/* Enters the next row group that has values. False: there is none. */
static bool
enter_group(struct qdqi_cursor *c)
{
    if (c->in_group)
        c->group++;
    c->in_group = true;
    c->n_dictionary = 0;
    while (c->group < c->file->n_groups &&
           c->file->groups[c->group].chunks[c->index].values == 0)
        c->group++;
    if (c->group >= c->file->n_groups)
        return false;
    const struct qdqi_parquet_chunk *chunk =
        &c->file->groups[c->group].chunks[c->index];
    c->at = chunk->start;
    c->group_left = chunk->values;
    return true;
}

/* Goes on to a page with values. *ret_more is false at the end of the column. */
static enum qdq_code
next_page(struct qdqi_cursor *c, bool *ret_more, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    *ret_more = true;
    while (!code && c->page_left == 0) {
        if (c->group_left == 0 && !enter_group(c)) {
            *ret_more = false;
            return QDQ_OK;
        }
        const struct qdqi_parquet_chunk *chunk =
            &c->file->groups[c->group].chunks[c->index];
        code = qdqi_page_head(c->file, c->column, chunk, c->at, &c->page_head, err);
        if (code)
            break;
        c->at = c->page_head.data_at + (uint64_t)c->page_head.packed;
        if (c->page_head.kind == QDQI_PAGE_DICTIONARY)
            code = take_dictionary(c, chunk, err);
        else if (c->page_head.kind != QDQI_PAGE_INDEX)
            code = start_page(c, chunk, err);
    }
    return code;
}

/* --- values ------------------------------------------------------------------ */

static bool
take_indexes(struct qdqi_cursor *c, size_t n)
{
    if (!qdqi_rle_take(&c->runs, c->indexes, n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (c->indexes[i] >= c->n_dictionary)
            return false;
    return true;
}

static bool
take_bits(struct qdqi_cursor *c, unsigned char *to, size_t n)
{
    if (c->bit + n > (uint64_t)(c->values_end - c->values) * 8)
        return false;
    for (size_t i = 0; i < n; i++, c->bit++)
        to[i] = c->values[c->bit / 8] >> c->bit % 8 & 1;
    return true;
}

static bool
take_deltas(struct qdqi_cursor *c, unsigned char *to, size_t n)
{
    if (!qdqi_deltas_take(&c->deltas, c->numbers, n))
        return false;
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * c->width, &c->numbers[i], c->width); /* the lower bytes */
    return true;
}

static bool
take_split(struct qdqi_cursor *c, unsigned char *to, size_t n)
{
    if (n > c->n_split - c->split_at)
        return false;
    for (size_t k = 0; k < c->width; k++)
        for (size_t i = 0; i < n; i++)
            to[i * c->width + k] = c->values[k * c->n_split + c->split_at + i];
    c->split_at += n;
    return true;
}

/* Writes the next n numbers as they are stored. */
static bool
take_numbers(struct qdqi_cursor *c, unsigned char *to, size_t n)
{
    const size_t size = n * c->width;
    switch (c->way) {
    case FIXED:
        if ((size_t)(c->values_end - c->values) < size)
            return false;
        memcpy(to, c->values, size);
        c->values += size;
        return true;
    case BITS:
        return take_bits(c, to, n);
    case BIT_RUNS:
        if (!qdqi_rle_take(&c->runs, c->indexes, n))
            return false;
        for (size_t i = 0; i < n; i++)
            to[i] = (unsigned char)c->indexes[i];
        return true;
    case INDEXES:
        if (!take_indexes(c, n))
            return false;
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * c->width, c->dictionary.data + c->indexes[i] * c->width,
                   c->width);
        return true;
    case DELTAS:
        return take_deltas(c, to, n);
    case SPLIT:
        return take_split(c, to, n);
    default:
        return false;
    }
}

/* Integers of 8 and 16 bits are stored as 32. */
static void
narrow(const struct qdqi_cursor *c, unsigned char *elements, size_t n)
{
    for (size_t i = 0; i < n && c->element < c->width; i++)
        memmove(elements + i * c->element, elements + i * c->width, c->element);
}

static bool
take_place(struct qdqi_cursor *c, size_t i, struct qdqi_bytes_place *to)
{
    const unsigned char *start = c->page.data;
    if (c->way == INDEXES) {
        *to = c->entries[c->indexes[i]];
        return true;
    }
    if (c->way == COUNTED) {
        if (!next_bytes(&c->values, c->values_end, to))
            return false;
    } else {
        if (c->numbers[i] < 0 || c->numbers[i] > c->values_end - c->values)
            return false;
        to->bytes = c->values;
        to->size = (size_t)c->numbers[i];
        c->values += to->size;
    }
    to->page = c->page_head.at;
    to->at = (size_t)(to->bytes - start);
    return true;
}

static bool
take_places(struct qdqi_cursor *c, struct qdqi_bytes_place *to, size_t n)
{
    if ((c->way == INDEXES && !take_indexes(c, n)) ||
        (c->way == LENGTHS && !qdqi_deltas_take(&c->deltas, c->numbers, n)))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!take_place(c, i, &to[i]))
            return false;
    return true;
}

/* --- batches ----------------------------------------------------------------- */

/* Reads n levels, of which none is larger than `most`. */
static bool
take_levels(struct qdqi_rle *runs, unsigned most, uint32_t *to, size_t n)
{
    if (most == 0) {
        memset(to, 0, n * sizeof *to);
        return true;
    }
    if (!qdqi_rle_take(runs, to, n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (to[i] > most)
            return false;
    return true;
}

enum qdq_code
qdqi_cursor_next(struct qdqi_cursor *c, struct qdqi_batch *batch, struct qdq_error *err)
{
    bool more;
    batch->n = batch->n_values = 0;
    enum qdq_code code = next_page(c, &more, err);
    if (code || !more)
        return code;
    const size_t n = c->page_left < QDQI_BATCH ? (size_t)c->page_left : QDQI_BATCH;
    if (!take_levels(&c->rep, c->column->max_rep, batch->rep, n) ||
        !take_levels(&c->def, c->column->max_def, batch->def, n))
        return invalid(c, err, "damaged levels");
    size_t there = 0;
    for (size_t i = 0; i < n; i++)
        there += batch->def[i] == c->column->max_def;
    const bool taken = c->width == 0 ? take_places(c, batch->u.places, there)
                                     : take_numbers(c, batch->u.elements, there);
    if (!taken)
        return invalid(c, err,
                       "the page has fewer values than it says, or an index "
                       "beyond its dictionary");
    if (c->width > 0)
        narrow(c, batch->u.elements, there);
    c->page_left -= (int64_t)n;
    batch->n = n;
    batch->n_values = there;
    return QDQ_OK;
}

enum qdq_code
qdqi_cursor_open(const struct qdqi_parquet *file, size_t i, struct qdqi_cursor **ret,
                 struct qdq_error *err)
{
    const struct qdqi_parquet_column *column = &file->columns[i];
    for (size_t g = 0; g < file->n_groups; g++) {
        const struct qdqi_parquet_chunk *chunk = &file->groups[g].chunks[i];
        const char *codec = qdqi_codec_refused(chunk->codec);
        if (chunk->why)
            return qdqi_column_invalid(column, chunk->start, err, "row group %zu: %s",
                                       g, chunk->why);
        if (codec)
            return qdqi_column_invalid(
                column, chunk->start, err,
                "its pages are packed with %s, which is not read; write the file with "
                "compression \"zstd\", \"snappy\", \"gzip\" or \"none\"",
                codec);
    }
    struct qdqi_cursor *c = calloc(1, sizeof *c);
    if (!c)
        return qdqi_no_memory(err);
    c->file = file;
    c->column = column;
    c->index = i;
    c->width = stored_width(column);
    c->element = qdqi_dtype_size((int)column->dtype);
    *ret = c;
    return QDQ_OK;
}

void
qdqi_cursor_seek(struct qdqi_cursor *c, size_t group)
{
    c->group = group;
    c->in_group = false;
    c->group_left = c->page_left = 0;
}

uint64_t
qdqi_cursor_at(const struct qdqi_cursor *c)
{
    return c->page_head.at;
}

size_t
qdqi_cursor_group(const struct qdqi_cursor *c)
{
    return c->group;
}

void
qdqi_cursor_close(struct qdqi_cursor **cursor)
{
    if (!cursor || !*cursor)
        return;
    qdqi_page_free(&(*cursor)->packed);
    qdqi_page_free(&(*cursor)->page);
    qdqi_page_free(&(*cursor)->dictionary);
    free((*cursor)->entries);
    free(*cursor);
    *cursor = NULL;
}
