/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/reader.h"
#include "files/data/dataset.h"
#include "files/data/forms/sample_files.h"
#include "files/data/forms/table.h"
#include "files/data/images/images.h"
#include "files/data/forms/joined.h"
#include "files/data/npy.h"
#include "files/data/proto.h"
#include "files/data/sets.h"

#include <stdlib.h>
#include <string.h>

enum { AHEAD = 16 * 1024 };

struct qdqi_reader {
    struct qdq_dataset *dataset;
    size_t index; /* index of the array */
    struct qdqi_stream stream;
    const struct qdq_array *array;
    const struct qdqi_item *item;
    uint64_t size;        /* bytes of all elements */
    uint64_t at;          /* bytes returned to the caller so far */
    uint64_t taken;       /* bytes read from the stream so far */
    unsigned char *whole; /* all elements in C order, when the file has Fortran order */
    struct qdqi_column_reader *column; /* of Parquet, else NULL */
    struct qdqi_joined *joined;        /* of columns that are joined, else NULL */
    /* Used where each sample is a file of its own: */
    const struct qdqi_sample_file *part; /* the open file */
    struct qdqi_npz *npz;                /* the file that it is a member of, or NULL */
    struct qdqi_proto *proto;
    uint64_t part_left;                 /* bytes of elements left in the open file */
    size_t next_part;                   /* next sample */
    const struct qdqi_image_view *view; /* of images, else NULL */
    unsigned char *decoded;             /* the image that was decoded last */
    size_t n_decoded;                   /* its index + 1; 0: there is none */
    /* A read-ahead buffer, so that small samples do not need a system call each. */
    size_t ahead_at, ahead_n;
    unsigned char ahead[AHEAD];
};

static void
swap_bytes(unsigned char *p, size_t size, size_t element)
{
    for (size_t i = 0; i < size; i += element)
        for (size_t a = 0, b = element - 1; a < b; a++, b--) {
            unsigned char byte = p[i + a];
            p[i + a] = p[i + b];
            p[i + b] = byte;
        }
}

static enum qdq_code
take_ahead(struct qdqi_reader *reader, struct qdq_error *err)
{
    uint64_t left = reader->item->size - reader->taken;
    size_t n = left < AHEAD ? (size_t)left : AHEAD;
    enum qdq_code code = qdqi_stream_read(&reader->stream, reader->ahead, n, err);
    if (code != QDQ_OK)
        return code;
    reader->ahead_at = 0;
    reader->ahead_n = n;
    reader->taken += n;
    return QDQ_OK;
}

/* Reads the next bytes of the stream, which are known to exist; with `to` NULL they
   are skipped. */
static enum qdq_code
consume(struct qdqi_reader *reader, unsigned char *to, uint64_t size,
        struct qdq_error *err)
{
    while (size > 0) {
        enum qdq_code code = QDQ_OK;
        uint64_t n = reader->ahead_n - reader->ahead_at;
        if (n > size)
            n = size;
        if (n > 0 && to)
            memcpy(to, reader->ahead + reader->ahead_at, (size_t)n);
        reader->ahead_at += (size_t)n;
        size -= n;
        to = to ? to + n : NULL;
        if (size >= AHEAD) {
            code = to ? qdqi_stream_read(&reader->stream, to, (size_t)size, err)
                      : qdqi_stream_skip(&reader->stream, size, err);
            reader->taken += size;
            size = 0;
        } else if (size > 0) {
            code = take_ahead(reader, err);
        }
        if (code != QDQ_OK)
            return code;
    }
    return QDQ_OK;
}

/* Reads the next elements in the host's byte order; at the end it verifies the
   stream's end. */
static enum qdq_code
read_elements(struct qdqi_reader *reader, void *to, size_t size, bool last,
              struct qdq_error *err)
{
    enum qdq_code code = consume(reader, to, size, err);
    if (code == QDQ_OK && reader->item->big_endian)
        swap_bytes(to, size, qdqi_dtype_size(reader->item->dtype));
    if (code == QDQ_OK && last)
        code = qdqi_stream_end(&reader->stream, err);
    return code;
}

/* Copies elements from Fortran order into C order. */
static void
reorder(const int64_t *shape, size_t rank, size_t element, const unsigned char *from,
        unsigned char *to, size_t size)
{
    size_t index[QDQI_NPY_MAX_RANK] = {0}, stride[QDQI_NPY_MAX_RANK];
    size_t at = 0;
    stride[0] = element;
    for (size_t i = 1; i < rank; i++)
        stride[i] = stride[i - 1] * (size_t)shape[i - 1];
    for (size_t done = 0; done < size; done += element) {
        memcpy(to + done, from + at, element);
        for (size_t i = rank; i-- > 0;) { /* advance the index, last axis first */
            at += stride[i];
            if (++index[i] < (size_t)shape[i])
                break;
            at -= stride[i] * index[i];
            index[i] = 0;
        }
    }
}

static enum qdq_code
load_whole(struct qdqi_reader *reader, struct qdq_error *err)
{
    size_t size = (size_t)reader->item->size; /* at most QDQI_FORTRAN_MAX */
    enum qdq_code code = QDQ_OK;
    unsigned char *fortran = malloc(size);
    reader->whole = malloc(size);
    if (!fortran || !reader->whole) {
        code = qdqi_no_memory(err);
        goto out;
    }
    code = read_elements(reader, fortran, size, true, err);
    if (code == QDQ_OK)
        reorder(reader->array->shape, reader->array->rank,
                qdqi_dtype_size(reader->item->dtype), fortran, reader->whole, size);
out:
    free(fortran);
    return code;
}

/* --- samples that are files ----------------------------------------------- */

static void
close_part(struct qdqi_reader *reader)
{
    qdqi_stream_close(&reader->stream);
    qdqi_npz_close(&reader->npz);
    free(reader->whole);
    reader->whole = NULL;
    reader->part = NULL;
}

static enum qdq_code
open_proto(struct qdqi_reader *reader, struct qdq_error *err)
{
    const struct qdqi_sample_file *part = reader->part;
    const struct qdqi_proto_head head = {.dtype = reader->item->dtype,
                                         .field = part->field};
    enum qdq_code code = qdqi_sets_open(reader->dataset, part->member,
                                        reader->array->name, &reader->stream, err);
    if (!code && !reader->proto && !(reader->proto = calloc(1, sizeof *reader->proto)))
        code = qdqi_no_memory(err);
    if (!code)
        qdqi_proto_start(reader->proto, &reader->stream, part->file_size, &head);
    return code;
}

/* Reads all elements of a sample in Fortran order. */
static enum qdq_code
load_part(struct qdqi_reader *reader, struct qdq_error *err)
{
    const size_t size = (size_t)reader->part_left; /* at most QDQI_FORTRAN_MAX */
    const size_t element = qdqi_dtype_size(reader->item->dtype);
    unsigned char *fortran = malloc(size);
    reader->whole = malloc(size);
    enum qdq_code code = fortran && reader->whole
                             ? qdqi_stream_read(&reader->stream, fortran, size, err)
                             : qdqi_no_memory(err);
    if (!code)
        reorder(reader->part->shape, reader->array->rank - 1, element, fortran,
                reader->whole, size);
    free(fortran);
    return code;
}

static enum qdq_code
open_part(struct qdqi_reader *reader, struct qdq_error *err)
{
    const struct qdqi_sample_file *part = &reader->item->parts[reader->next_part++];
    enum qdq_code code = QDQ_OK;
    reader->part = part;
    reader->part_left = part->n * qdqi_dtype_size(reader->item->dtype);
    if (part->kind == QDQI_SAMPLE_PROTO)
        return open_proto(reader, err);
    if (part->kind != QDQI_SAMPLE_LABEL)
        code = qdqi_sample_files_open(reader->dataset, part, reader->array->name,
                                      &reader->stream, &reader->npz, err);
    return !code && part->fortran ? load_part(reader, err) : code;
}

static enum qdq_code
part_elements(struct qdqi_reader *reader, unsigned char *to, size_t n,
              struct qdq_error *err)
{
    const struct qdqi_sample_file *part = reader->part;
    const size_t element = qdqi_dtype_size(reader->item->dtype);
    enum qdq_code code = QDQ_OK;
    if (part->kind == QDQI_SAMPLE_PROTO)
        return qdqi_proto_elements(reader->proto, to, n, err);
    if (part->kind == QDQI_SAMPLE_LABEL)
        memcpy(to, &part->label, n);
    else if (reader->whole)
        memcpy(to, reader->whole + (part->n * element - reader->part_left), n);
    else
        code = qdqi_stream_read(&reader->stream, to, n, err);
    if (!code && part->big_endian)
        swap_bytes(to, n, element);
    return code;
}

static enum qdq_code
end_part(struct qdqi_reader *reader, struct qdq_error *err)
{
    const enum qdqi_sample_kind kind = reader->part->kind;
    enum qdq_code code = kind == QDQI_SAMPLE_PROTO ? qdqi_proto_end(reader->proto, err)
                         : kind == QDQI_SAMPLE_LABEL
                             ? QDQ_OK
                             : qdqi_stream_end(&reader->stream, err);
    close_part(reader);
    return code;
}

/* Reads the next elements, from one file after another; with `to` NULL they are
   skipped. */
static enum qdq_code
read_parts(struct qdqi_reader *reader, unsigned char *to, uint64_t size,
           struct qdq_error *err)
{
    unsigned char skipped[4096];
    while (size > 0) {
        enum qdq_code code = QDQ_OK;
        if (reader->part_left == 0)
            code = open_part(reader, err);
        uint64_t n = size < reader->part_left ? size : reader->part_left;
        if (!to && n > sizeof skipped)
            n = sizeof skipped;
        if (code == QDQ_OK)
            code = part_elements(reader, to ? to : skipped, (size_t)n, err);
        if (code != QDQ_OK)
            return code;
        reader->part_left -= n;
        if (reader->part_left == 0)
            code = end_part(reader, err);
        if (code != QDQ_OK)
            return code;
        size -= n;
        to = to ? to + n : NULL;
    }
    return QDQ_OK;
}

/* --- samples that are images ---------------------------------------------- */

static void
read_labels(struct qdqi_reader *reader, uint64_t at, unsigned char *to, size_t size)
{
    for (size_t done = 0; done < size; done += sizeof(int64_t)) {
        const int64_t label =
            qdqi_images_label(reader->dataset, (size_t)(at + done) / sizeof(int64_t));
        memcpy(to + done, &label, sizeof label);
    }
}

static enum qdq_code
read_images(struct qdqi_reader *reader, uint64_t at, unsigned char *to, size_t size,
            struct qdq_error *err)
{
    const struct qdqi_image_view *view = reader->view;
    if (!view) {
        read_labels(reader, at, to, size);
        return QDQ_OK;
    }
    while (size > 0) {
        const size_t i = (size_t)(at / view->size), from = (size_t)(at % view->size);
        const size_t n = size < view->size - from ? size : view->size - from;
        enum qdq_code code = QDQ_OK;
        if (reader->n_decoded != i + 1) {
            reader->n_decoded = 0;
            code = qdqi_images_sample(reader->dataset, view, i, reader->decoded, err);
        }
        if (code != QDQ_OK)
            return code;
        reader->n_decoded = i + 1;
        memcpy(to, reader->decoded + from, n);
        to += n;
        at += n;
        size -= n;
    }
    return QDQ_OK;
}

/* --- reading -------------------------------------------------------------- */

static enum qdq_code
open_array(struct qdqi_reader *reader, struct qdq_error *err)
{
    struct qdq_dataset *ds = reader->dataset;
    if (reader->item->joins)
        return qdqi_joined_open(ds, &reader->joined, err);
    if (reader->item->column > 0)
        return qdqi_column_reader_open(ds, reader->index, &reader->column, err);
    if (ds->draws || ds->images || reader->item->parts)
        return QDQ_OK;
    if (reader->item->in_file) {
        qdqi_stream_span(ds->fd, reader->item->offset, reader->item->size,
                         reader->array->name, &reader->stream);
        return QDQ_OK;
    }
    enum qdq_code code = qdqi_stream_open(ds->fd, ds->npz, reader->item->member,
                                          reader->array->name, &reader->stream, err);
    if (code == QDQ_OK)
        code = qdqi_stream_skip(&reader->stream, reader->item->offset, err);
    bool reorders = reader->item->fortran && reader->item->size > 0;
    return code == QDQ_OK && reorders ? load_whole(reader, err) : code;
}

enum qdq_code
qdqi_reader_open(struct qdq_dataset *dataset, size_t array, struct qdqi_reader **ret,
                 struct qdq_error *err)
{
    struct qdqi_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return qdqi_no_memory(err);
    reader->dataset = dataset;
    reader->index = array;
    reader->array = &dataset->arrays[array];
    reader->item = &dataset->items[array];
    reader->size = reader->item->size;
    enum qdq_code code = open_array(reader, err);
    if (code != QDQ_OK) {
        qdqi_reader_close(&reader);
        return code;
    }
    *ret = reader;
    return QDQ_OK;
}

enum qdq_code
qdqi_reader_open_images(struct qdq_dataset *dataset, const struct qdqi_image_view *view,
                        struct qdqi_reader **ret, struct qdq_error *err)
{
    struct qdqi_reader *reader;
    enum qdq_code code = qdqi_reader_open(dataset, 0, &reader, err);
    if (code != QDQ_OK)
        return code;
    reader->view = view;
    reader->decoded = malloc(view->size);
    if (!reader->decoded || __builtin_mul_overflow((uint64_t)dataset->info.samples,
                                                   view->size, &reader->size)) {
        qdqi_reader_close(&reader);
        return qdqi_no_memory(err);
    }
    *ret = reader;
    return QDQ_OK;
}

/* Moves the position by `size` bytes. INVALID_DATASET when fewer are left. */
static enum qdq_code
advance(struct qdqi_reader *reader, uint64_t size, struct qdq_error *err)
{
    if (size > reader->size - reader->at)
        return qdqi_array_invalid(reader->array->name, err,
                                  "it was read beyond its last element");
    reader->at += size;
    return QDQ_OK;
}

enum qdq_code
qdqi_reader_read(struct qdqi_reader *reader, void *to, size_t size,
                 struct qdq_error *err)
{
    uint64_t at = reader->at;
    enum qdq_code code = advance(reader, size, err);
    if (code != QDQ_OK || size == 0)
        return code;
    if (reader->dataset->draws) {
        size_t element = qdqi_dtype_size(reader->item->dtype);
        qdqi_draw(&reader->dataset->draws[reader->index], at / element, to,
                  size / element);
        return QDQ_OK;
    }
    if (reader->joined)
        return qdqi_joined_read(reader->joined, to, size, err);
    if (reader->column)
        return qdqi_column_reader_read(reader->column, to, size, err);
    if (reader->dataset->images)
        return read_images(reader, at, to, size, err);
    if (reader->item->parts)
        return read_parts(reader, to, size, err);
    if (reader->whole) {
        memcpy(to, reader->whole + at, size);
        return QDQ_OK;
    }
    return read_elements(reader, to, size, reader->at == reader->item->size, err);
}

enum qdq_code
qdqi_reader_skip(struct qdqi_reader *reader, uint64_t size, struct qdq_error *err)
{
    enum qdq_code code = advance(reader, size, err);
    if (code == QDQ_OK && reader->joined)
        return qdqi_joined_read(reader->joined, NULL, size, err);
    if (code == QDQ_OK && reader->column)
        return qdqi_column_reader_skip(reader->column, size, err);
    if (code == QDQ_OK && reader->item->parts)
        return read_parts(reader, NULL, size, err);
    if (code != QDQ_OK || reader->whole || reader->dataset->draws ||
        reader->dataset->images)
        return code;
    return consume(reader, NULL, size, err);
}

void
qdqi_reader_close(struct qdqi_reader **reader)
{
    if (!reader || !*reader)
        return;
    qdqi_joined_close(&(*reader)->joined);
    qdqi_column_reader_close(&(*reader)->column);
    qdqi_stream_close(&(*reader)->stream);
    qdqi_npz_close(&(*reader)->npz);
    free((*reader)->proto);
    free((*reader)->whole);
    free((*reader)->decoded);
    free(*reader);
    *reader = NULL;
}
