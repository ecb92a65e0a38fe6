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
    const struct qdqi_mapped *files; /* indexed by qdqi_bulk.file */
    int fd;
    uint64_t offset; /* file offset that the buffer will be written to */
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

/* Writes a generated bulk. The lengths around it are written already, so it must
   have exactly the size that was announced. */
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

/* Copies a bulk from file to file within the kernel; from the mapping where the file
   systems cannot. */
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

/* Starts to write a file from its beginning. */
static enum qdq_code
begin(struct file_sink *f, const struct qdq_model *source, int fd,
      struct qdq_error *err)
{
    f->sink = (struct qdqi_sink){file_bytes, file_bulk};
    f->files = source->files;
    f->fd = fd;
    f->offset = 0;
    return ftruncate(fd, 0) < 0 ? failed("truncating", err) : QDQ_OK;
}

/* Writes the bulks that were placed outside; the gaps between them are holes in the
   file. */
static enum qdq_code
write_data(struct file_sink *f, const struct qdqi_bulks *bulks,
           const struct qdqi_layout *layout, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < layout->n && !code; i++) {
        if ((code = flush(f, err)))
            break;
        f->offset = layout->offsets[layout->order[i]];
        code = file_bulk(&f->sink, &bulks->rows[layout->order[i]], err);
    }
    return code ? code : flush(f, err);
}

static enum qdq_code
write_single(struct file_sink *f, const struct qdqi_bytes *skeleton,
             const struct qdqi_bulks *bulks, uint64_t *ret_size, struct qdq_error *err)
{
    enum qdq_code code =
        qdqi_skeleton_expand(skeleton, bulks, QDQI_INLINE, NULL, &f->sink, err);
    if (!code)
        code = flush(f, err);
    if (!code)
        *ret_size = f->offset;
    return code;
}

enum qdq_code
qdqi_model_write(const struct qdq_model *source, const struct qdqi_edited *edited,
                 int fd, uint64_t *ret_size, struct qdq_error *err)
{
    struct qdqi_bytes skeleton = {0};
    struct file_sink *f = calloc(1, sizeof *f);
    enum qdq_code code = f ? pack(edited->proto, &skeleton, err) : qdqi_no_memory(err);
    if (!code)
        code = begin(f, source, fd, err);
    if (!code)
        code = write_single(f, &skeleton, &edited->bulks, ret_size, err);
    free(skeleton.data);
    free(f);
    return code;
}

/* --- writing a result ---------------------------------------------------- */

#define MAX_SINGLE UINT64_C(2147483647) /* the largest protobuf message, in bytes */
#define AUTO_SINGLE UINT64_C(1500000000)
#define POINTER "/output/external_data"

/* Decides whether data goes to a second file. */
static enum qdq_code
choose_layout(const struct qdqi_target *target, uint64_t single, bool *ret,
              struct qdq_error *err)
{
    *ret = target->external == QDQ_EXTERNAL_ALWAYS ||
           (target->external == QDQ_EXTERNAL_AUTO &&
            single > (target->data < 0 ? MAX_SINGLE : AUTO_SINGLE));
    if (target->external == QDQ_EXTERNAL_NEVER && single > MAX_SINGLE)
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, POINTER,
                             "the result has %llu bytes, one file holds at most %llu, "
                             "and external data was ruled out",
                             (unsigned long long)single,
                             (unsigned long long)MAX_SINGLE);
    if (*ret && target->data < 0)
        return qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_POINTER, POINTER,
                             "a result of %llu bytes with external data cannot be "
                             "handed out here: it has one file",
                             (unsigned long long)single);
    return QDQ_OK;
}

static enum qdq_code
check_name(const char *name, struct qdq_error *err)
{
    if (name && *name && !strpbrk(name, "/\\") && strcmp(name, ".") != 0 &&
        strcmp(name, "..") != 0 && strlen(name) <= QDQI_MAX_LOCATION)
        return QDQ_OK;
    return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                         "'%s' cannot be the name of a data file", name ? name : "");
}

static enum qdq_code
write_double(struct file_sink *f, const struct qdq_model *source,
             const struct qdqi_bytes *skeleton, const struct qdqi_bulks *bulks,
             const struct qdqi_target *target, struct qdqi_written *ret,
             struct qdq_error *err)
{
    struct qdqi_layout layout = {.location = target->name,
                                 .offsets = calloc(bulks->n + 1, sizeof(uint64_t)),
                                 .order = calloc(bulks->n + 1, sizeof(size_t))};
    enum qdq_code code = layout.offsets && layout.order ? check_name(target->name, err)
                                                        : qdqi_no_memory(err);
    for (size_t i = 0; i < bulks->n && !code; i++)
        layout.offsets[i] = QDQI_NOT_PLACED;
    if (code ||
        (code = qdqi_skeleton_expand(skeleton, bulks, QDQI_EXTERNAL, &layout, &f->sink,
                                     err)) ||
        (code = flush(f, err)))
        goto out;
    *ret = (struct qdqi_written){f->offset, layout.size};
    if (ret->model > MAX_SINGLE)
        code = qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_NOTHING, NULL,
                             "the result without its external data has %llu bytes: "
                             "tensors in functions, or in a form that is not raw",
                             (unsigned long long)ret->model);
    if (!code && !(code = begin(f, source, target->data, err)))
        code = write_data(f, bulks, &layout, err);
out:
    free(layout.offsets);
    free(layout.order);
    return code;
}

enum qdq_code
qdqi_model_write_result(const struct qdq_model *source,
                        const struct qdqi_edited *edited,
                        const struct qdqi_target *target, struct qdqi_written *ret,
                        struct qdq_error *err)
{
    struct qdqi_bytes skeleton = {0};
    struct file_sink *f = calloc(1, sizeof *f);
    uint64_t single = 0;
    bool split = false;
    enum qdq_code code = f ? pack(edited->proto, &skeleton, err) : qdqi_no_memory(err);
    if (!code)
        code = qdqi_skeleton_measure(&skeleton, &edited->bulks, &single, err);
    if (code || (code = choose_layout(target, single, &split, err)) ||
        (code = begin(f, source, target->fd, err)))
        goto out;
    *ret = (struct qdqi_written){0};
    code = split ? write_double(f, source, &skeleton, &edited->bulks, target, ret, err)
                 : write_single(f, &skeleton, &edited->bulks, &ret->model, err);
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
    uint8_t *bytes = qdqi_grow(m->bytes.data, &m->cap, m->bytes.size + size, 1);
    if (!bytes)
        return qdqi_no_memory(err);
    m->bytes.data = bytes;
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
        code = qdqi_skeleton_expand(&skeleton, &model->bulks, QDQI_MAPPED, NULL,
                                    &m.sink, err);
    free(skeleton.data);
    if (code)
        free(m.bytes.data);
    else
        *ret = m.bytes;
    return code;
}
