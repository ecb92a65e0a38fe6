/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "model/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- to a file ------------------------------------------------------------ */

enum { BUFFER = 64 * 1024 };

struct file_sink {
    struct qdqi_sink sink;
    const struct qdqi_mapped *files; /* by qdqi_bulk.file */
    int fd;
    uint64_t offset; /* where the buffer will go */
    size_t used;
    uint8_t buffer[BUFFER];
};

static enum qdq_code
failed(const char *what, struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL, "%s the model: %s", what,
                         strerror(errno));
}

static enum qdq_code
write_at(struct file_sink *f, const uint8_t *data, size_t size, struct qdq_error *err)
{
    while (size > 0) {
        ssize_t n = pwrite(f->fd, data, size, (off_t)f->offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failed("writing", err);
        f->offset += (size_t)n;
        data += n;
        size -= (size_t)n;
    }
    return QDQ_OK;
}

static enum qdq_code
flush(struct file_sink *f, struct qdq_error *err)
{
    size_t used = f->used;
    f->used = 0;
    return write_at(f, f->buffer, used, err);
}

static enum qdq_code
file_bytes(struct qdqi_sink *sink, const void *data, size_t size, struct qdq_error *err)
{
    struct file_sink *f = (struct file_sink *)sink;
    enum qdq_code code = QDQ_OK;
    if (size > BUFFER - f->used && (code = flush(f, err)))
        return code;
    if (size > BUFFER)
        return write_at(f, data, size, err);
    memcpy(f->buffer + f->used, data, size);
    f->used += size;
    return QDQ_OK;
}

/* Lengths were written before: what is made is to have the size that it was said to. */
static enum qdq_code
made_bulk(struct file_sink *f, const struct qdqi_bulk *bulk, struct qdq_error *err)
{
    uint64_t end = f->offset + f->used + bulk->size;
    enum qdq_code code = bulk->made->write(bulk->made, &f->sink, err);
    if (!code && f->offset + f->used != end)
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_NOTHING, NULL,
                             "a tensor's data did not come out as long as they are");
    return code;
}

/* File to file inside the kernel; from the mapping where the file systems cannot. */
static enum qdq_code
file_bulk(struct qdqi_sink *sink, const struct qdqi_bulk *bulk, struct qdq_error *err)
{
    struct file_sink *f = (struct file_sink *)sink;
    if (bulk->made)
        return made_bulk(f, bulk, err);
    const uint8_t *data = f->files[bulk->file].map + bulk->offset;
    if (bulk->size < BUFFER)
        return file_bytes(sink, data, bulk->size, err);
    enum qdq_code code = flush(f, err);
    loff_t from = (loff_t)bulk->offset;
    uint64_t left = bulk->size;
    while (!code && left > 0) {
        loff_t to = (loff_t)f->offset;
        ssize_t n =
            copy_file_range(f->files[bulk->file].fd, &from, f->fd, &to, left, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return write_at(f, data + (bulk->size - left), left, err);
        f->offset += (uint64_t)n;
        left -= (uint64_t)n;
    }
    return code;
}

static enum qdq_code
pack(const Onnx__ModelProto *proto, struct qdqi_bytes *ret, struct qdq_error *err)
{
    size_t size = onnx__model_proto__get_packed_size(proto);
    uint8_t *data = malloc(size ? size : 1);
    if (!data)
        return qdqi_no_memory(err);
    *ret = (struct qdqi_bytes){data, onnx__model_proto__pack(proto, data)};
    return QDQ_OK;
}

enum qdq_code
qdqi_model_write(const struct qdq_model *source, const struct qdqi_edited *edited,
                 int fd, uint64_t *ret_size, struct qdq_error *err)
{
    struct qdqi_bytes skeleton = {0};
    struct file_sink *f = calloc(1, sizeof *f);
    enum qdq_code code = f ? pack(edited->proto, &skeleton, err) : qdqi_no_memory(err);
    if (code)
        goto out;
    f->sink = (struct qdqi_sink){file_bytes, file_bulk};
    f->files = source->files;
    f->fd = fd;
    if (ftruncate(fd, 0) < 0) {
        code = failed("truncating", err);
        goto out;
    }
    code = qdqi_skeleton_expand(&skeleton, &edited->bulks, QDQI_INLINE, &f->sink, err);
    if (!code)
        code = flush(f, err);
    if (!code)
        *ret_size = f->offset;
out:
    free(skeleton.data);
    free(f);
    return code;
}

/* --- to memory ------------------------------------------------------------ */

struct memory_sink {
    struct qdqi_sink sink;
    const struct qdqi_runnable *model;
    struct qdqi_bytes bytes;
    size_t cap;
};

static enum qdq_code
memory_bytes(struct qdqi_sink *sink, const void *data, size_t size,
             struct qdq_error *err)
{
    struct memory_sink *m = (struct memory_sink *)sink;
    if (size > m->cap - m->bytes.size) {
        size_t cap = (m->bytes.size + size) * 2;
        uint8_t *grown = realloc(m->bytes.data, cap);
        if (!grown)
            return qdqi_no_memory(err);
        m->bytes.data = grown;
        m->cap = cap;
    }
    memcpy(m->bytes.data + m->bytes.size, data, size);
    m->bytes.size += size;
    return QDQ_OK;
}

static enum qdq_code
memory_bulk(struct qdqi_sink *sink, const struct qdqi_bulk *bulk, struct qdq_error *err)
{
    struct memory_sink *m = (struct memory_sink *)sink;
    const uint8_t *file = m->model->files[bulk->file].map;
    return memory_bytes(sink, file + bulk->offset, bulk->size, err);
}

enum qdq_code
qdqi_model_to_memory(const struct qdqi_runnable *model, struct qdqi_bytes *ret,
                     struct qdq_error *err)
{
    struct memory_sink m = {.sink = {memory_bytes, memory_bulk}, .model = model};
    struct qdqi_bytes skeleton = {0};
    enum qdq_code code = pack(model->proto, &skeleton, err);
    if (!code)
        code =
            qdqi_skeleton_expand(&skeleton, &model->bulks, QDQI_EXTERNAL, &m.sink, err);
    free(skeleton.data);
    if (code)
        free(m.bytes.data);
    else
        *ret = m.bytes;
    return code;
}
