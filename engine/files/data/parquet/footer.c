/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/parquet/footer.h"
#include "files/data/file.h"
#include "files/data/parquet/thrift.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MARK = 4,
    TAIL = 8
}; /* bytes of the mark; of the file's end: a length and the mark */

/* Repetition of a node of the schema. */
enum { REQUIRED, OPTIONAL, REPEATED };

struct node {
    const char *name;
    size_t name_size;
    int64_t type, width, repetition, children, converted;
    int64_t logical; /* the number of the field in the union LogicalType */
    int64_t bits;    /* of the logical type INTEGER */
    bool is_signed, is_leaf;
};

struct footer {
    struct qdqi_parquet *file;
    struct qdqi_arena *arena;
    struct qdqi_thrift thrift;
    uint64_t start; /* byte of the file at which the footer begins */
    struct node *nodes;
    size_t n_nodes;
    bool encrypted, has_schema;
    struct qdq_error *err;
};

/* --- errors --------------------------------------------------------------- */

enum qdq_code
qdqi_parquet_invalid(uint64_t at, struct qdq_error *err, const char *fmt, ...)
{
    char text[300], where[24];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(where, sizeof where, "%" PRIu64, at);
    return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_OFFSET, where,
                         "the Parquet file at byte %s: %s", where, text);
}

static enum qdq_code
bad(const struct footer *f, const char *what)
{
    return qdqi_parquet_invalid(f->start + f->thrift.at, f->err, "%s", what);
}

/* --- the schema ----------------------------------------------------------- */

static void
read_integer_type(struct qdqi_thrift *t, struct node *node)
{
    struct qdqi_thrift_field field = {0};
    while (qdqi_thrift_next(t, &field))
        if (field.id == 1)
            node->bits = qdqi_thrift_integer(t, &field);
        else if (field.id == 2)
            node->is_signed = qdqi_thrift_bool(t, &field);
        else
            qdqi_thrift_skip(t, &field);
}

enum {
    LOGICAL_STRING = 1,
    LOGICAL_MAP,
    LOGICAL_LIST,
    LOGICAL_ENUM,
    LOGICAL_DECIMAL,
    LOGICAL_DATE,
    LOGICAL_TIME,
    LOGICAL_TIMESTAMP,
    LOGICAL_INTEGER = 10,
    LOGICAL_NULL,
    LOGICAL_JSON,
    LOGICAL_BSON,
    LOGICAL_UUID,
    LOGICAL_FLOAT16,
};

static void
read_logical(struct qdqi_thrift *t, struct node *node)
{
    struct qdqi_thrift_field field = {0};
    while (qdqi_thrift_next(t, &field)) {
        node->logical = field.id;
        if (field.id == LOGICAL_INTEGER && qdqi_thrift_enter(t, &field))
            read_integer_type(t, node);
        else
            qdqi_thrift_skip(t, &field);
    }
}

static void
read_node(struct qdqi_thrift *t, struct node *node)
{
    struct qdqi_thrift_field field = {0};
    *node = (struct node){.name = "", .type = -1, .converted = -1, .is_leaf = true};
    while (qdqi_thrift_next(t, &field))
        switch (field.id) {
        case 1:
            node->type = qdqi_thrift_integer(t, &field);
            break;
        case 2:
            node->width = qdqi_thrift_integer(t, &field);
            break;
        case 3:
            node->repetition = qdqi_thrift_integer(t, &field);
            break;
        case 4:
            node->name = qdqi_thrift_text(t, &field, &node->name_size);
            break;
        case 5:
            node->children = qdqi_thrift_integer(t, &field);
            node->is_leaf = node->children == 0 && node->type >= 0;
            break;
        case 6:
            node->converted = qdqi_thrift_integer(t, &field);
            break;
        case 10:
            if (qdqi_thrift_enter(t, &field))
                read_logical(t, node);
            break;
        default:
            qdqi_thrift_skip(t, &field);
        }
}

static enum qdq_code
read_schema(struct footer *f, const struct qdqi_thrift_field *field)
{
    const size_t n = qdqi_thrift_structs(&f->thrift, field);
    if (n > QDQI_PARQUET_MAX_NODES)
        return qdq_error_set(f->err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                             "the Parquet file has %zu fields in its schema, and at "
                             "most %d are read",
                             n, QDQI_PARQUET_MAX_NODES);
    if (f->has_schema)
        return bad(f, "a second schema");
    f->has_schema = true;
    f->nodes = qdqi_arena_array(f->arena, n, sizeof *f->nodes);
    if (!f->nodes)
        return qdqi_no_memory(f->err);
    f->n_nodes = n;
    for (size_t i = 0; i < n && !f->thrift.failed; i++)
        read_node(&f->thrift, &f->nodes[i]);
    return QDQ_OK;
}

/* Finds the integers that a leaf of 32 or 64 bits holds. */
static enum qdqi_dtype
integers_of(const struct node *node)
{
    /* converted types 11 to 18: unsigned of 8 to 64 bits, then signed */
    static const enum qdqi_dtype converted[] = {QDQI_UINT8,  QDQI_UINT16, QDQI_UINT32,
                                                QDQI_UINT64, QDQI_INT8,   QDQI_INT16,
                                                QDQI_INT32,  QDQI_INT64};
    const bool is_64 = node->type == QDQI_PARQUET_INT64;
    int i = is_64 ? 7 : 6;
    if (node->logical == LOGICAL_INTEGER)
        i = (node->bits == 8    ? 0
             : node->bits == 16 ? 1
             : node->bits == 32 ? 2
                                : 3) +
            (node->is_signed ? 4 : 0);
    else if (node->converted >= 11 && node->converted <= 18)
        i = (int)(node->converted - 11);
    return (i % 4 == 3) == is_64 ? converted[i] : QDQI_UNKNOWN;
}

/* Returns what the logical type holds instead of numbers; NULL where it holds numbers. */
static const char *
no_numbers(const struct node *node)
{
    switch (node->logical) {
    case LOGICAL_STRING:
    case LOGICAL_ENUM:
    case LOGICAL_JSON:
        return "text";
    case LOGICAL_DECIMAL:
        return "decimal numbers; cast them to float32";
    case LOGICAL_DATE:
    case LOGICAL_TIME:
    case LOGICAL_TIMESTAMP:
        return "dates or times";
    case LOGICAL_NULL:
        return "nulls alone";
    case LOGICAL_BSON:
    case LOGICAL_UUID:
        return "documents or ids";
    default:
        break;
    }
    switch (node->converted) {
    case 0:
    case 4:
    case 19:
        return "text";
    case 5:
        return "decimal numbers; cast them to float32";
    case 6:
    case 7:
    case 8:
    case 9:
    case 10:
    case 21:
        return "dates or times";
    case 20:
        return "documents or ids";
    default:
        return NULL;
    }
}

static void
classify(const struct node *node, struct qdqi_parquet_column *column)
{
    column->why = no_numbers(node);
    if (column->why)
        return;
    switch (node->type) {
    case QDQI_PARQUET_BOOLEAN:
        column->dtype = QDQI_BOOL;
        break;
    case QDQI_PARQUET_INT32:
    case QDQI_PARQUET_INT64:
        column->dtype = integers_of(node);
        break;
    case QDQI_PARQUET_FLOAT:
        column->dtype = QDQI_FLOAT32;
        break;
    case QDQI_PARQUET_DOUBLE:
        column->dtype = QDQI_FLOAT64;
        break;
    case QDQI_PARQUET_FIXED:
        if (node->logical == LOGICAL_FLOAT16 && node->width == 2)
            column->dtype = QDQI_FLOAT16;
        break;
    case QDQI_PARQUET_BYTE_ARRAY:
        column->is_bytes = true;
        break;
    default:
        break;
    }
    if (column->dtype == QDQI_UNKNOWN)
        column->why = column->is_bytes ? "bytes that are no PNG or JPEG images"
                      : node->type == QDQI_PARQUET_INT96
                          ? "dates or times"
                          : "values of a type that is no number";
}

/* The way from the root to the next leaf. */
struct level {
    int64_t children_left;
    unsigned def, rep;
    bool is_chain;
};

static const char *
name_of(const struct footer *f, const struct node *node)
{
    return qdqi_arena_strndup(f->arena, node->name, node->name_size);
}

static enum qdq_code
add_column(struct footer *f, const struct node *node, const struct level *level,
           const char *top, bool is_top)
{
    struct qdqi_parquet *file = f->file;
    struct qdqi_parquet_column *column = &file->columns[file->n_columns++];
    if (node->type < 0 || node->type >= QDQI_PARQUET_N_TYPES)
        return bad(f, "a column of an unknown type");
    *column = (struct qdqi_parquet_column){
        .name = top,
        .child = is_top ? NULL : name_of(f, node),
        .type = (enum qdqi_parquet_type)node->type,
        .width = node->width,
        .max_def = level->def,
        .max_rep = level->rep,
        .is_chain = level->is_chain,
    };
    if (!is_top && !column->child)
        return qdqi_no_memory(f->err);
    classify(node, column);
    return QDQ_OK;
}

/* Finds the columns, which are the leaves of the tree that the nodes are in, depth first. */
static enum qdq_code
find_columns(struct footer *f)
{
    struct level levels[QDQI_PARQUET_MAX_DEPTH] = {{0}};
    const char *top = "";
    size_t depth = 1;
    if (f->n_nodes == 0 || f->nodes[0].is_leaf || f->nodes[0].children <= 0)
        return bad(f, "a schema without columns");
    levels[0] = (struct level){f->nodes[0].children, 0, 0, true};
    f->file->columns = qdqi_arena_array(f->arena, f->n_nodes, sizeof *f->file->columns);
    if (!f->file->columns)
        return qdqi_no_memory(f->err);
    for (size_t i = 1; i < f->n_nodes; i++) {
        const struct node *node = &f->nodes[i];
        struct level *parent;
        while (depth > 0 && levels[depth - 1].children_left == 0)
            depth--;
        if (depth == 0 || node->children < 0 || node->repetition < REQUIRED ||
            node->repetition > REPEATED || node->name_size > QDQI_PARQUET_MAX_NAME ||
            memchr(node->name, 0, node->name_size))
            return bad(f, "a schema that is no tree of named columns");
        parent = &levels[depth - 1];
        parent->children_left--;
        struct level own = {node->children,
                            parent->def + (node->repetition != REQUIRED),
                            parent->rep + (node->repetition == REPEATED),
                            parent->is_chain && (node->is_leaf || node->children == 1)};
        if (depth == 1 && !(top = name_of(f, node)))
            return qdqi_no_memory(f->err);
        if (node->is_leaf) {
            enum qdq_code code = add_column(f, node, &own, top, depth == 1);
            if (code)
                return code;
        } else if (depth == QDQI_PARQUET_MAX_DEPTH ||
                   own.rep > QDQI_PARQUET_MAX_LISTS) {
            return bad(f, "a schema whose fields lie too deep in each other");
        } else {
            levels[depth++] = own;
        }
    }
    return QDQ_OK;
}

/* --- row groups ----------------------------------------------------------- */

struct chunk_data {
    int64_t type, codec, values, packed, data_at, dictionary_at;
    bool has_data, encrypted, elsewhere;
};

static void
read_chunk_data(struct qdqi_thrift *t, struct chunk_data *d)
{
    struct qdqi_thrift_field field = {0};
    d->has_data = true;
    while (qdqi_thrift_next(t, &field))
        switch (field.id) {
        case 1:
            d->type = qdqi_thrift_integer(t, &field);
            break;
        case 4:
            d->codec = qdqi_thrift_integer(t, &field);
            break;
        case 5:
            d->values = qdqi_thrift_integer(t, &field);
            break;
        case 7:
            d->packed = qdqi_thrift_integer(t, &field);
            break;
        case 9:
            d->data_at = qdqi_thrift_integer(t, &field);
            break;
        case 11:
            d->dictionary_at = qdqi_thrift_integer(t, &field);
            break;
        default:
            qdqi_thrift_skip(t, &field);
        }
}

static void
read_chunk_head(struct qdqi_thrift *t, struct chunk_data *d)
{
    struct qdqi_thrift_field field = {0};
    *d = (struct chunk_data){.dictionary_at = -1};
    while (qdqi_thrift_next(t, &field))
        switch (field.id) {
        case 1: {
            size_t n;
            qdqi_thrift_text(t, &field, &n);
            d->elsewhere = n > 0;
            break;
        }
        case 3:
            if (qdqi_thrift_enter(t, &field))
                read_chunk_data(t, d);
            break;
        case 8:
        case 9:
            d->encrypted = true;
            qdqi_thrift_skip(t, &field);
            break;
        default:
            qdqi_thrift_skip(t, &field);
        }
}

/* Checks what the footer says of a chunk. A fault of one column is no matter of the others. */
static void
place_chunk(const struct footer *f, const struct qdqi_parquet_column *column,
            const struct chunk_data *d, struct qdqi_parquet_chunk *ret)
{
    const bool has_dictionary = d->dictionary_at > 0 && d->dictionary_at < d->data_at;
    const int64_t start = has_dictionary ? d->dictionary_at : d->data_at;
    *ret = (struct qdqi_parquet_chunk){.values = d->values, .codec = (int)d->codec};
    if (d->encrypted)
        ret->why = "it is encrypted; write it without encryption";
    else if (d->elsewhere)
        ret->why = "its pages are in another file";
    else if (!d->has_data || d->type != (int64_t)column->type || d->values < 0 ||
             d->codec < 0 || d->codec > 1000)
        ret->why = "the footer does not describe its pages";
    else if (d->packed < 0 || start < MARK || (uint64_t)start > f->start ||
             (uint64_t)d->packed > f->start - (uint64_t)start)
        ret->why = "its pages are beyond the file";
    if (ret->why)
        return;
    ret->start = (uint64_t)start;
    ret->end = ret->start + (uint64_t)d->packed;
}

static enum qdq_code
read_chunks(struct footer *f, const struct qdqi_thrift_field *field,
            struct qdqi_parquet_group *group)
{
    const size_t n = qdqi_thrift_structs(&f->thrift, field);
    if (f->thrift.failed)
        return QDQ_OK;
    if (n != f->file->n_columns || group->chunks)
        return bad(f, "a row group with other columns than the schema");
    group->chunks = qdqi_arena_array(f->arena, n, sizeof *group->chunks);
    if (!group->chunks)
        return qdqi_no_memory(f->err);
    for (size_t i = 0; i < n && !f->thrift.failed; i++) {
        struct chunk_data d;
        read_chunk_head(&f->thrift, &d);
        place_chunk(f, &f->file->columns[i], &d, &group->chunks[i]);
    }
    return QDQ_OK;
}

static enum qdq_code
read_group(struct footer *f, struct qdqi_parquet_group *group)
{
    struct qdqi_thrift_field field = {0};
    enum qdq_code code = QDQ_OK;
    while (!code && qdqi_thrift_next(&f->thrift, &field))
        if (field.id == 1)
            code = read_chunks(f, &field, group);
        else if (field.id == 3)
            group->rows = qdqi_thrift_integer(&f->thrift, &field);
        else
            qdqi_thrift_skip(&f->thrift, &field);
    if (!code && !f->thrift.failed && (!group->chunks || group->rows < 0))
        code = bad(f, "a row group without columns or rows");
    return code;
}

static enum qdq_code
read_groups(struct footer *f, const struct qdqi_thrift_field *field)
{
    enum qdq_code code =
        f->has_schema ? find_columns(f) : bad(f, "row groups before the schema");
    const size_t n = code ? 0 : qdqi_thrift_structs(&f->thrift, field);
    if (code)
        return code;
    if (f->file->groups)
        return bad(f, "a second list of row groups");
    f->file->groups = qdqi_arena_array(f->arena, n, sizeof *f->file->groups);
    if (!f->file->groups)
        return qdqi_no_memory(f->err);
    for (size_t i = 0; i < n && !f->thrift.failed && !code; i++) {
        code = read_group(f, &f->file->groups[i]);
        if (!code && __builtin_add_overflow(f->file->rows, f->file->groups[i].rows,
                                            &f->file->rows))
            code = bad(f, "more rows than a number holds");
    }
    f->file->n_groups = n;
    return code;
}

/* --- the file ------------------------------------------------------------- */

static enum qdq_code
read_fields(struct footer *f)
{
    struct qdqi_thrift_field field = {0};
    enum qdq_code code = QDQ_OK;
    while (!code && qdqi_thrift_next(&f->thrift, &field))
        switch (field.id) {
        case 2:
            code = read_schema(f, &field);
            break;
        case 4:
            code = f->thrift.failed ? QDQ_OK : read_groups(f, &field);
            break;
        case 8:
            f->encrypted = true;
            qdqi_thrift_skip(&f->thrift, &field);
            break;
        default:
            qdqi_thrift_skip(&f->thrift, &field);
        }
    if (!code && f->thrift.failed)
        code = qdqi_parquet_invalid(f->start + f->thrift.at, f->err,
                                    "the footer is damaged: %s", f->thrift.why);
    if (!code && f->encrypted)
        code = qdq_error_set(f->err, QDQ_INVALID_DATASET, QDQ_AT_NOTHING, NULL,
                             "the Parquet file is encrypted; write it without "
                             "encryption");
    if (!code && !f->file->groups)
        code = bad(f, "the footer has no schema or no row groups");
    return code;
}

static enum qdq_code
read_footer(struct footer *f, size_t length)
{
    size_t got;
    unsigned char *bytes = malloc(length ? length : 1);
    if (!bytes)
        return qdqi_no_memory(f->err);
    enum qdq_code code =
        qdqi_data_read(f->file->fd, f->start, bytes, length, &got, f->err);
    if (!code && got < length)
        code = qdq_error_set(f->err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "the dataset changes while it is read");
    if (!code) {
        f->thrift = (struct qdqi_thrift){.bytes = bytes, .size = length};
        code = read_fields(f);
    }
    free(bytes);
    return code;
}

bool
qdqi_parquet_starts(const unsigned char *start, size_t got)
{
    return got >= MARK &&
           (memcmp(start, "PAR1", MARK) == 0 || memcmp(start, "PARE", MARK) == 0);
}

enum qdq_code
qdqi_parquet_open(int fd, uint64_t size, struct qdqi_arena *arena,
                  struct qdqi_parquet **ret, struct qdq_error *err)
{
    unsigned char tail[TAIL] = {0};
    size_t got = 0;
    struct footer f = {
        .file = qdqi_arena_alloc(arena, sizeof *f.file), .arena = arena, .err = err};
    if (!f.file)
        return qdqi_no_memory(err);
    *f.file = (struct qdqi_parquet){.fd = fd, .size = size};
    if (size < MARK + TAIL)
        return qdqi_parquet_invalid(size, err, "it is cut short");
    enum qdq_code code = qdqi_data_read(fd, size - TAIL, tail, TAIL, &got, err);
    if (code)
        return code;
    if (memcmp(tail + MARK, "PARE", MARK) == 0)
        return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_NOTHING, NULL,
                             "the Parquet file is encrypted; write it without "
                             "encryption");
    if (got < TAIL || memcmp(tail + MARK, "PAR1", MARK) != 0)
        return qdqi_parquet_invalid(size - MARK, err,
                                    "it does not end in PAR1; it is cut short or still "
                                    "being written");
    const uint32_t length = (uint32_t)tail[0] | (uint32_t)tail[1] << 8 |
                            (uint32_t)tail[2] << 16 | (uint32_t)tail[3] << 24;
    if (length > QDQI_PARQUET_MAX_FOOTER)
        return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                             "the Parquet file has a footer of %" PRIu32
                             " bytes, and at most %d are read: write larger row groups",
                             length, QDQI_PARQUET_MAX_FOOTER);
    if (length > size - MARK - TAIL)
        return qdqi_parquet_invalid(size - TAIL, err,
                                    "a footer of %" PRIu32 " bytes, which is more than "
                                    "the file has",
                                    length);
    f.start = size - TAIL - length;
    code = read_footer(&f, length);
    if (!code)
        *ret = f.file;
    return code;
}
