/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "data/reader.h"
#include "data/dataset.h"
#include "data/npy.h"

#include <stdlib.h>
#include <string.h>

struct qdqi_reader {
    struct qdqi_stream stream;
    const struct qdq_array *array;
    const struct qdqi_item *item;
    uint64_t at;          /* bytes given out */
    unsigned char *whole; /* all elements in C order, where the file is Fortran's */
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

/* The next bytes of the stream in the host's byte order; at the end, its check. */
static enum qdq_code
read_elements(struct qdqi_reader *reader, void *to, size_t size, bool last,
              struct qdq_error *err)
{
    enum qdq_code code = qdqi_stream_read(&reader->stream, to, size, err);
    if (code == QDQ_OK && reader->item->big_endian)
        swap_bytes(to, size, qdqi_dtype_size(reader->item->dtype));
    if (code == QDQ_OK && last)
        code = qdqi_stream_end(&reader->stream, err);
    return code;
}

/* Copies elements that lie in Fortran order into C order. */
static void
reorder(const struct qdq_array *array, size_t element, const unsigned char *from,
        unsigned char *to, size_t size)
{
    size_t rank = array->rank;
    size_t index[QDQI_NPY_MAX_RANK] = {0}, stride[QDQI_NPY_MAX_RANK];
    size_t at = 0;
    stride[0] = element;
    for (size_t i = 1; i < rank; i++)
        stride[i] = stride[i - 1] * (size_t)array->shape[i - 1];
    for (size_t done = 0; done < size; done += element) {
        memcpy(to + done, from + at, element);
        for (size_t i = rank; i-- > 0;) { /* the next index, last axis first */
            at += stride[i];
            if (++index[i] < (size_t)array->shape[i])
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
        reorder(reader->array, qdqi_dtype_size(reader->item->dtype), fortran,
                reader->whole, size);
out:
    free(fortran);
    return code;
}

enum qdq_code
qdqi_reader_open(struct qdq_dataset *dataset, size_t array, struct qdqi_reader **ret,
                 struct qdq_error *err)
{
    struct qdqi_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return qdqi_no_memory(err);
    reader->array = &dataset->arrays[array];
    reader->item = &dataset->items[array];
    enum qdq_code code =
        qdqi_stream_open(dataset->fd, dataset->npz, reader->item->member,
                         reader->array->name, &reader->stream, err);
    if (code == QDQ_OK)
        code = qdqi_stream_skip(&reader->stream, reader->item->offset, err);
    if (code == QDQ_OK && reader->item->fortran)
        code = load_whole(reader, err);
    if (code != QDQ_OK) {
        qdqi_reader_close(&reader);
        return code;
    }
    *ret = reader;
    return QDQ_OK;
}

/* Moves on by `size` bytes: INVALID_DATASET when there are fewer. */
static enum qdq_code
advance(struct qdqi_reader *reader, uint64_t size, struct qdq_error *err)
{
    if (size > reader->item->size - reader->at)
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
    if (code != QDQ_OK || reader->whole)
        return code;
    return qdqi_stream_skip(&reader->stream, size, err);
}

void
qdqi_reader_close(struct qdqi_reader **reader)
{
    if (!reader || !*reader)
        return;
    qdqi_stream_close(&(*reader)->stream);
    free((*reader)->whole);
    free(*reader);
    *reader = NULL;
}
