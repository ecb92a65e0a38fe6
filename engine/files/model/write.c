/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/model/write.h"

#include "files/model/file_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LARGE = 1 << 22 };

/* --- to a file ------------------------------------------------------------ */

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

/* Goes on at the beginning of a file, which becomes empty. A device has no length that
   could be cut. */
static enum qdq_code
begin(struct qdqi_file_sink *f, int fd, struct qdq_error *err)
{
    enum qdq_code code = qdqi_file_sink_seek(f, (struct qdqi_place){fd, 0}, err);
    if (code)
        return code;
    return ftruncate(fd, 0) < 0 && errno != EINVAL ? qdqi_file_failed("truncating", err)
                                                   : QDQ_OK;
}

/* Has ext4 give a large file its room at once, which costs less than block by block; other
   file systems were not measured, and one in memory would write zeros. A failure is left to
   the writes. */
static void
reserve(int fd, uint64_t size)
{
    struct statfs system;
    if (size >= LARGE && fstatfs(fd, &system) == 0 && system.f_type == EXT4_SUPER_MAGIC)
        (void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size);
}

/* Writes the bulks that were placed outside; the gaps between them are holes in the
   file. */
static enum qdq_code
write_data(struct qdqi_file_sink *f, const struct qdqi_bulks *bulks,
           const struct qdqi_layout *layout, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < layout->n && !code; i++) {
        const struct qdqi_place place = {f->fd, layout->offsets[layout->order[i]]};
        if ((code = qdqi_file_sink_seek(f, place, err)))
            break;
        code = qdqi_file_sink_bulk(f, &bulks->rows[layout->order[i]], err);
    }
    return code ? code : qdqi_file_sink_flush(f, err);
}

static enum qdq_code
write_single(struct qdqi_file_sink *f, const struct qdqi_bytes *skeleton,
             const struct qdqi_bulks *bulks, uint64_t *ret_size, struct qdq_error *err)
{
    enum qdq_code code =
        qdqi_skeleton_expand(skeleton, bulks, QDQI_INLINE, NULL, &f->sink, err);
    if (!code)
        code = qdqi_file_sink_flush(f, err);
    if (!code)
        *ret_size = f->offset;
    return code;
}

enum qdq_code
qdqi_model_write(const struct qdq_model *source, const struct qdqi_edited *edited,
                 int fd, uint64_t *ret_size, struct qdq_error *err)
{
    const struct qdqi_tasks alone = {.threads = 1};
    struct qdqi_bytes skeleton = {0};
    struct qdqi_file_sink *f = calloc(1, sizeof *f);
    enum qdq_code code = f ? pack(edited->proto, &skeleton, err) : qdqi_no_memory(err);
    if (code)
        goto out;
    qdqi_file_sink_init(f, source->files, fd, 0);
    if (!(code = begin(f, fd, err)) &&
        !(code = write_single(f, &skeleton, &edited->bulks, ret_size, err)))
        code = qdqi_file_sink_finish(f, &alone, err);
    qdqi_file_sink_fini(f);
out:
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
choose_layout(const struct qdqi_destination *destination, uint64_t single, bool *ret,
              struct qdq_error *err)
{
    *ret = destination->external == QDQ_EXTERNAL_ALWAYS ||
           (destination->external == QDQ_EXTERNAL_AUTO &&
            single > (destination->data < 0 ? MAX_SINGLE : AUTO_SINGLE));
    if (destination->external == QDQ_EXTERNAL_NEVER && single > MAX_SINGLE)
        return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, POINTER,
                             "the result has %llu bytes, one file holds at most %llu, "
                             "and external data was ruled out",
                             (unsigned long long)single,
                             (unsigned long long)MAX_SINGLE);
    if (*ret && destination->data < 0)
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
write_double(struct qdqi_file_sink *f, const struct qdqi_bytes *skeleton,
             const struct qdqi_bulks *bulks, const struct qdqi_destination *destination,
             struct qdqi_written *ret, struct qdq_error *err)
{
    struct qdqi_layout layout = {.location = destination->name,
                                 .offsets = calloc(bulks->n + 1, sizeof(uint64_t)),
                                 .order = calloc(bulks->n + 1, sizeof(size_t))};
    enum qdq_code code = layout.offsets && layout.order
                             ? check_name(destination->name, err)
                             : qdqi_no_memory(err);
    for (size_t i = 0; i < bulks->n && !code; i++)
        layout.offsets[i] = QDQI_NOT_PLACED;
    if (code ||
        (code = qdqi_skeleton_expand(skeleton, bulks, QDQI_EXTERNAL, &layout, &f->sink,
                                     err)) ||
        (code = qdqi_file_sink_flush(f, err)))
        goto out;
    *ret = (struct qdqi_written){f->offset, layout.size};
    if (ret->model > MAX_SINGLE)
        code = qdq_error_set(err, QDQ_UNSUPPORTED, QDQ_AT_NOTHING, NULL,
                             "the result without its external data has %llu bytes: "
                             "tensors in functions, or in a form that is not raw",
                             (unsigned long long)ret->model);
    if (!code && !(code = begin(f, destination->data, err)))
        code = write_data(f, bulks, &layout, err);
out:
    free(layout.offsets);
    free(layout.order);
    return code;
}

/* Marks the value of the metadata that is replaced when all is written. */
static void
mark_pending_id(struct qdqi_file_sink *f, const struct qdqi_bytes *skeleton,
                const struct qdqi_pending_id *pending_id)
{
    size_t size = 0;
    const uint8_t *value =
        pending_id ? qdqi_skeleton_metadata(skeleton, pending_id->key, &size) : NULL;
    f->marked = value && size == strlen(pending_id->placeholder) ? value : NULL;
}

static enum qdq_code
replace_pending_id(const struct qdqi_file_sink *f,
                   const struct qdqi_pending_id *pending_id, struct qdq_error *err)
{
    const char *text = pending_id->wait(pending_id->arg);
    size_t size = strlen(pending_id->placeholder);
    if (!text)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "the id of the model could not be computed");
    if (!f->marked || strlen(text) != size)
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_NOTHING, NULL,
                             "the id of the model has no place in the result");
    if (pwrite(f->mark.fd, text, size, (off_t)f->mark.offset) != (ssize_t)size)
        return qdqi_file_failed("writing", err);
    return QDQ_OK;
}

enum qdq_code
qdqi_model_write_result(const struct qdq_model *source,
                        const struct qdqi_edited *edited,
                        const struct qdqi_destination *destination,
                        struct qdqi_written *ret, struct qdq_error *err)
{
    struct qdqi_bytes skeleton = {0};
    struct qdqi_file_sink *f = calloc(1, sizeof *f);
    uint64_t single = 0;
    bool split = false;
    enum qdq_code code = f ? pack(edited->proto, &skeleton, err) : qdqi_no_memory(err);
    if (f) {
        qdqi_file_sink_init(f, source->files, destination->fd, 0);
        f->early = true;
    }
    if (!code)
        code = qdqi_skeleton_measure(&skeleton, &edited->bulks, &single, err);
    if (code || (code = choose_layout(destination, single, &split, err)) ||
        (code = begin(f, destination->fd, err)))
        goto out;
    if (!split)
        reserve(destination->fd, single);
    *ret = (struct qdqi_written){0};
    mark_pending_id(f, &skeleton, destination->pending_id);
    code = split ? write_double(f, &skeleton, &edited->bulks, destination, ret, err)
                 : write_single(f, &skeleton, &edited->bulks, &ret->model, err);
    if (!code)
        code = qdqi_file_sink_finish(f, destination->tasks, err);
    if (!code && destination->pending_id)
        code = replace_pending_id(f, destination->pending_id, err);
out:
    if (f)
        qdqi_file_sink_fini(f);
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
    struct qdqi_layout named = {.locations = model->locations};
    struct qdqi_bytes skeleton = {0};
    enum qdq_code code = pack(model->proto, &skeleton, err);
    if (!code)
        code = qdqi_skeleton_expand(&skeleton, &model->bulks, QDQI_MAPPED, &named,
                                    &m.sink, err);
    free(skeleton.data);
    if (code)
        free(m.bytes.data);
    else
        *ret = m.bytes;
    return code;
}
