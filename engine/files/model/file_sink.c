/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/model/file_sink.h"

#include "ground/base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = QDQI_FILE_BUFFER, PIECE = 4 << 20, ALIGN = 1 << 16, BLOCK = 4096 };

enum qdq_code
qdqi_file_failed(const char *what, struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL, "%s the model: %s", what,
                         strerror(errno));
}

/* Has the disk begin with what is written, whenever that is a large piece. The end is left
   out, because it shares a page with bytes that come. A device or pipe has no such thing. */
static void
begin_early(struct qdqi_file_sink *f)
{
    uint64_t end = f->offset / ALIGN * ALIGN;
    if (!f->early || end < f->begun + PIECE)
        return;
    (void)sync_file_range(f->fd, (off_t)f->begun, (off_t)(end - f->begun),
                          SYNC_FILE_RANGE_WRITE);
    f->begun = end;
}

static enum qdq_code
write_at(struct qdqi_file_sink *f, const uint8_t *data, size_t size,
         struct qdq_error *err)
{
    while (size > 0) {
        ssize_t n = pwrite(f->fd, data, size < PIECE ? size : PIECE, (off_t)f->offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return qdqi_file_failed("writing", err);
        f->offset += (size_t)n;
        data += n;
        size -= (size_t)n;
        begin_early(f);
    }
    return QDQ_OK;
}

enum qdq_code
qdqi_file_sink_flush(struct qdqi_file_sink *f, struct qdq_error *err)
{
    size_t used = f->used;
    f->used = 0;
    return write_at(f, f->buffer, used, err);
}

enum qdq_code
qdqi_file_sink_seek(struct qdqi_file_sink *f, struct qdqi_place place,
                    struct qdq_error *err)
{
    enum qdq_code code = qdqi_file_sink_flush(f, err);
    f->fd = place.fd;
    f->offset = f->begun = place.offset;
    return code;
}

static enum qdq_code
put_bytes(struct qdqi_sink *sink, const void *data, size_t size, struct qdq_error *err)
{
    struct qdqi_file_sink *f = (struct qdqi_file_sink *)sink;
    const uint8_t *bytes = data;
    enum qdq_code code = QDQ_OK;
    if (f->marked && f->marked >= bytes && f->marked < bytes + size)
        f->mark = (struct qdqi_place){f->fd, f->offset + f->used +
                                                 (uint64_t)(f->marked - bytes)};
    if (size > BUFFER - f->used && (code = qdqi_file_sink_flush(f, err)))
        return code;
    if (size > BUFFER)
        return write_at(f, data, size, err);
    memcpy(f->buffer + f->used, data, size);
    f->used += size;
    return QDQ_OK;
}

/* Leaves the place of a generated bulk free. */
static enum qdq_code
leave_out(struct qdqi_file_sink *f, const struct qdqi_bulk *bulk, struct qdq_error *err)
{
    struct qdqi_later *later =
        qdqi_grow(f->later, &f->cap_later, f->n_later + 1, sizeof *later);
    if (!later)
        return qdqi_no_memory(err);
    f->later = later;
    enum qdq_code code = qdqi_file_sink_flush(f, err);
    f->later[f->n_later++] =
        (struct qdqi_later){bulk->made, {f->fd, f->offset}, bulk->size};
    f->offset += bulk->size;
    return code;
}

/* Copies from file to file where both places lie alike in their blocks, which file systems
   may then share; else the mapped bytes are written, which is faster. */
static enum qdq_code
copy_bulk(struct qdqi_file_sink *f, const struct qdqi_bulk *bulk, const uint8_t *data,
          struct qdq_error *err)
{
    loff_t from = (loff_t)bulk->offset;
    uint64_t left = bulk->size;
    bool alike = bulk->offset % BLOCK == f->offset % BLOCK;
    while (alike && left > 0) {
        loff_t to = (loff_t)f->offset;
        ssize_t n =
            copy_file_range(f->files[bulk->file].fd, &from, f->fd, &to, left, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        f->offset += (uint64_t)n;
        left -= (uint64_t)n;
        begin_early(f);
    }
    return write_at(f, data + (bulk->size - left), left, err);
}

enum qdq_code
qdqi_file_sink_bulk(struct qdqi_file_sink *f, const struct qdqi_bulk *bulk,
                    struct qdq_error *err)
{
    if (bulk->made)
        return leave_out(f, bulk, err);
    const uint8_t *data = f->files[bulk->file].map + bulk->offset;
    if (bulk->size < BUFFER)
        return put_bytes(&f->sink, data, bulk->size, err);
    enum qdq_code code = qdqi_file_sink_flush(f, err);
    return code ? code : copy_bulk(f, bulk, data, err);
}

static enum qdq_code
put_bulk(struct qdqi_sink *sink, const struct qdqi_bulk *bulk, struct qdq_error *err)
{
    return qdqi_file_sink_bulk((struct qdqi_file_sink *)sink, bulk, err);
}

void
qdqi_file_sink_init(struct qdqi_file_sink *f, const struct qdqi_mapped *files, int fd,
                    uint64_t offset)
{
    f->sink = (struct qdqi_sink){put_bytes, put_bulk};
    f->files = files;
    f->fd = fd;
    f->offset = offset;
    f->used = f->n_later = f->cap_later = 0;
    f->early = false;
    f->begun = offset;
    f->later = NULL;
    f->marked = NULL;
}

void
qdqi_file_sink_fini(struct qdqi_file_sink *f)
{
    free(f->later);
    f->later = NULL;
}

/* --- generated bulks ------------------------------------------------------- */

/* The pieces of all generated bulks, in the order of the bulks. */
struct pieces {
    const struct qdqi_later *later;
    struct {
        size_t later, piece;
    } * rows;
    size_t n;
};

/* Writes a bulk that is generated in one go, by a sink at its place. The lengths around it
   are written already, so it must have exactly the size that was announced. */
static enum qdq_code
write_whole(const struct qdqi_later *later, struct qdqi_file_sink *f,
            struct qdq_error *err)
{
    enum qdq_code code = later->made->write(later->made, &f->sink, err);
    if (!code)
        code = qdqi_file_sink_flush(f, err);
    if (!code && f->offset != later->place.offset + later->size)
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_NOTHING, NULL,
                             "a tensor's data did not come out as long as they are");
    return code;
}

static enum qdq_code
write_piece(void *arg, size_t i, struct qdq_error *err)
{
    const struct pieces *p = arg;
    const struct qdqi_later *later = &p->later[p->rows[i].later];
    struct qdqi_pieces *parts = later->made->pieces;
    struct qdqi_file_sink *f = malloc(sizeof *f);
    if (!f)
        return qdqi_no_memory(err);
    qdqi_file_sink_init(f, NULL, later->place.fd, later->place.offset);
    enum qdq_code code = parts ? parts->write(parts, p->rows[i].piece, f, err)
                               : write_whole(later, f, err);
    qdqi_file_sink_fini(f);
    free(f);
    return code;
}

/* Tells each generator the places of its members, and lists the pieces. Those of several
   members are listed with the first one. */
static bool
list_pieces(struct qdqi_file_sink *f, struct pieces *p)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n_later; i++) {
        const struct qdqi_made *made = f->later[i].made;
        if (made->pieces)
            made->pieces->places[made->member] = f->later[i].place;
        n += !made->pieces ? 1 : made->member == 0 ? made->pieces->n : 0;
    }
    p->rows = calloc(n + 1, sizeof *p->rows);
    for (size_t i = 0; p->rows && i < f->n_later; i++) {
        const struct qdqi_made *made = f->later[i].made;
        size_t count = !made->pieces ? 1 : made->member == 0 ? made->pieces->n : 0;
        for (size_t k = 0; k < count; k++, p->n++) {
            p->rows[p->n].later = i;
            p->rows[p->n].piece = k;
        }
    }
    return p->rows;
}

enum qdq_code
qdqi_file_sink_finish(struct qdqi_file_sink *f, const struct qdqi_tasks *tasks,
                      struct qdq_error *err)
{
    struct pieces p = {.later = f->later};
    enum qdq_code code = list_pieces(f, &p) ? QDQ_OK : qdqi_no_memory(err);
    if (!code)
        code = qdqi_tasks_run(tasks, p.n, write_piece, &p, err);
    for (size_t i = 0; i < f->n_later && !code; i++) {
        struct qdqi_pieces *parts = f->later[i].made->pieces;
        if (parts && f->later[i].made->member == 0)
            code = parts->finish(parts, err);
    }
    free(p.rows);
    return code;
}
