/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/stream.h"
#include "files/data/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum qdq_code
qdqi_array_invalid(const char *name, struct qdq_error *err, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (!*name)
        return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_NOTHING, NULL,
                             "the array: %s", text);
    return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_INPUT, name, "array '%s': %s",
                         name, text);
}

enum qdq_code
qdqi_stream_open(int fd, struct qdqi_npz *npz, size_t i, const char *name,
                 struct qdqi_stream *ret, struct qdq_error *err)
{
    struct qdqi_member *member = NULL;
    enum qdq_code code = npz ? qdqi_member_open(npz, i, &member, err) : QDQ_OK;
    if (code == QDQ_OK)
        *ret = (struct qdqi_stream){
            .name = name, .member = member, .fd = fd, .end = UINT64_MAX};
    return code;
}

void
qdqi_stream_span(int fd, uint64_t start, uint64_t size, const char *name,
                 struct qdqi_stream *ret)
{
    *ret = (struct qdqi_stream){.name = name, .fd = fd, .start = start, .end = size};
}

/* Reads up to `size` bytes; fewer only at the end. */
static enum qdq_code
read_some(struct qdqi_stream *stream, void *to, size_t size, size_t *ret_got,
          struct qdq_error *err)
{
    if (stream->member)
        return qdqi_member_read(stream->member, to, size, ret_got, err);
    if (size > stream->end - stream->offset)
        size = (size_t)(stream->end - stream->offset);
    return qdqi_data_read(stream->fd, stream->start + stream->offset, to, size, ret_got,
                          err);
}

enum qdq_code
qdqi_stream_read(struct qdqi_stream *stream, void *to, size_t size,
                 struct qdq_error *err)
{
    size_t got;
    if (size == 0)
        return QDQ_OK;
    enum qdq_code code = read_some(stream, to, size, &got, err);
    if (code != QDQ_OK)
        return code;
    if (got < size)
        return qdqi_array_invalid(
            stream->name, err, "truncated: it ends at byte %" PRIu64 ", %zu too early",
            stream->offset + got, size - got);
    stream->offset += size;
    return QDQ_OK;
}

enum qdq_code
qdqi_stream_skip(struct qdqi_stream *stream, uint64_t size, struct qdq_error *err)
{
    if (!stream->member && size <= stream->end - stream->offset) {
        stream->offset += size; /* the file is known to be long enough */
        return QDQ_OK;
    }
    char skipped[16384];
    while (size > 0) {
        size_t n = size < sizeof skipped ? (size_t)size : sizeof skipped;
        enum qdq_code code = qdqi_stream_read(stream, skipped, n, err);
        if (code != QDQ_OK)
            return code;
        size -= n;
    }
    return QDQ_OK;
}

enum qdq_code
qdqi_stream_end(struct qdqi_stream *stream, struct qdq_error *err)
{
    char byte;
    size_t got;
    enum qdq_code code = read_some(stream, &byte, 1, &got, err);
    if (code == QDQ_OK && got > 0)
        code = qdqi_array_invalid(stream->name, err,
                                  "it goes on after its last element, at byte %" PRIu64,
                                  stream->offset);
    return code;
}

void
qdqi_stream_close(struct qdqi_stream *stream)
{
    qdqi_member_close(&stream->member);
}

enum qdq_code
qdqi_dataset_check_arrays(size_t n, struct qdq_error *err)
{
    if (n <= QDQI_MAX_ARRAYS)
        return QDQ_OK;
    return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                         "the dataset has more than %d arrays", QDQI_MAX_ARRAYS);
}
