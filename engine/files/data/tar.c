/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/tar.h"
#include "files/data/file.h"
#include "files/data/gunzip.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 64 * 1024, BLOCK = 512 };

struct qdqi_tar {
    int fd, scratch; /* the archive; the file with the unpacked members, or -1 */
    struct qdqi_tar_file *files;
    size_t n, capacity;
};

/* The state of one pass through the archive. */
struct reading {
    struct qdqi_tar *tar;
    const struct qdqi_tar_options *options;
    struct qdqi_arena *arena;
    struct archive *archive;
    struct qdqi_gunzip *gunzip; /* NULL: the archive is not packed */
    uint64_t size, offset;      /* bytes of the unpacked archive; bytes read so far */
    uint64_t unpacked;          /* bytes in the scratch file */
    enum qdq_code code;         /* the error that stopped libarchive's reads */
    struct qdq_error *err;
    unsigned char piece[PIECE];
};

/* --- libarchive's view of the archive ------------------------------------- */

static enum qdq_code
read_piece(struct reading *r, size_t *ret_got)
{
    if (r->gunzip)
        return qdqi_gunzip_read(r->gunzip, r->piece, PIECE, ret_got, r->err);
    return qdqi_data_read(r->tar->fd, r->offset, r->piece, PIECE, ret_got, r->err);
}

static la_ssize_t
next_piece(struct archive *archive, void *arg, const void **ret)
{
    struct reading *r = arg;
    size_t got = 0;
    r->code = read_piece(r, &got);
    if (r->code != QDQ_OK) {
        archive_set_error(archive, EIO, "no more bytes");
        return -1;
    }
    r->offset += got;
    *ret = r->piece;
    return (la_ssize_t)got;
}

/* Skips bytes of an archive that is not packed. Never skips beyond its end, so that
   libarchive notices an archive that was cut short. */
static la_int64_t
skip(struct archive *archive, void *arg, la_int64_t request)
{
    struct reading *r = arg;
    (void)archive;
    if (r->gunzip || request <= 0)
        return 0;
    uint64_t left = r->size - r->offset;
    uint64_t n = (uint64_t)request < left ? (uint64_t)request : left;
    r->offset += n;
    return (la_int64_t)n;
}

/* --- errors --------------------------------------------------------------- */

/* Sets an error for a member, or for the space between members (name NULL). */
static enum qdq_code
tar_failed(const struct reading *r, const char *name)
{
    const char *why = archive_error_string(r->archive);
    int64_t at = archive_read_header_position(r->archive);
    char where[24];
    if (r->code != QDQ_OK)
        return r->code;
    if (archive_errno(r->archive) == ENOMEM)
        return qdqi_no_memory(r->err);
    if (name)
        return qdq_error_set(r->err, QDQ_INVALID_DATASET, QDQ_AT_INPUT, name,
                             "member '%.200s' of the tar archive is damaged or cut "
                             "short: %s",
                             name, why ? why : "it has no data");
    snprintf(where, sizeof where, "%" PRId64, at > 0 ? at : 0);
    return qdq_error_set(r->err, QDQ_INVALID_DATASET, QDQ_AT_OFFSET, where,
                         "the tar archive is damaged or cut short at byte %s%s: %s",
                         where, r->gunzip ? " (unpacked)" : "",
                         why ? why : "no header");
}

static enum qdq_code
refuse(const struct reading *r, const char *name, const char *what)
{
    return qdq_error_set(r->err, QDQ_INVALID_DATASET, QDQ_AT_INPUT, name,
                         "member '%.200s' of the tar archive %s", name, what);
}

/* --- members -------------------------------------------------------------- */

static enum qdq_code
write_all(struct reading *r, const void *from, size_t size)
{
    int number = qdqi_file_write(r->tar->scratch, r->unpacked, from, size);
    if (number != 0)
        return qdq_error_set(r->err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "unpacking the dataset failed: %s", strerror(number));
    r->unpacked += size;
    return QDQ_OK;
}

/* Copies the open member, whose first bytes were read already, to the scratch file. */
static enum qdq_code
unpack(struct reading *r, struct qdqi_tar_file *file, const void *piece, size_t n)
{
    int rc = ARCHIVE_OK;
    file->offset = r->unpacked;
    while (rc == ARCHIVE_OK) {
        la_int64_t at;
        enum qdq_code code = write_all(r, piece, n);
        if (code != QDQ_OK)
            return code;
        rc = archive_read_data_block(r->archive, &piece, &n, &at);
    }
    if (rc != ARCHIVE_EOF || r->unpacked - file->offset != file->size)
        return tar_failed(r, file->name);
    return QDQ_OK;
}

/* Finds the offset of the open member, and compares the bytes at that place. */
static enum qdq_code
locate(struct reading *r, struct qdqi_tar_file *file, const void *piece, size_t n)
{
    unsigned char there[BLOCK];
    size_t got, look = n < BLOCK ? n : BLOCK;
    uint64_t at = (uint64_t)archive_filter_bytes(r->archive, 0);
    if (at > r->size || r->size - at < file->size)
        return refuse(r, file->name, "is cut short: the archive ends before it");
    int number = qdqi_file_read(r->tar->fd, at, there, look, &got);
    if (number != 0 || got < look || memcmp(there, piece, look) != 0)
        return qdq_error_set(r->err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "the dataset changes while it is read");
    file->offset = at;
    return QDQ_OK;
}

static enum qdq_code
read_data(struct reading *r, struct qdqi_tar_file *file)
{
    const void *piece = "";
    size_t n = 0;
    la_int64_t at = 0;
    if (file->size == 0)
        return QDQ_OK;
    if (r->gunzip && file->size > r->options->most)
        /* refuse before unpacking */
        return qdqi_gunzip_limit(r->options->most, r->err);
    int rc = archive_read_data_block(r->archive, &piece, &n, &at);
    if (rc != ARCHIVE_OK)
        return tar_failed(r, file->name);
    return r->gunzip ? unpack(r, file, piece, n) : locate(r, file, piece, n);
}

static enum qdq_code
add_file(struct reading *r, const struct qdqi_tar_file *file)
{
    struct qdqi_tar *tar = r->tar;
    struct qdqi_tar_file *files =
        qdqi_grow(tar->files, &tar->capacity, tar->n + 1, sizeof *files);
    if (!files)
        return qdqi_no_memory(r->err);
    tar->files = files;
    tar->files[tar->n++] = *file;
    return QDQ_OK;
}

static enum qdq_code
add_member(struct reading *r, struct archive_entry *entry, const char *name)
{
    struct qdqi_tar_file file = {.size = (uint64_t)archive_entry_size(entry)};
    if (strlen(name) > QDQI_TAR_MAX_NAME)
        return refuse(r, name, "has a name that is too long");
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
        return refuse(r, name, "is a link, or no file at all");
    if (archive_entry_sparse_count(entry) > 0)
        return refuse(r, name, "is a sparse file: its holes are not in the archive");
    if (archive_entry_size(entry) < 0)
        return refuse(r, name, "has a negative size");
    file.name = qdqi_arena_strdup(r->arena, name);
    if (!file.name)
        return qdqi_no_memory(r->err);
    enum qdq_code code = read_data(r, &file);
    return code == QDQ_OK ? add_file(r, &file) : code;
}

/* --- the archive ---------------------------------------------------------- */

/* Returns the member's name; in UTF-8 when the C locale cannot represent it. */
static const char *
name_of(struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    return name ? name : archive_entry_pathname_utf8(entry);
}

static enum qdq_code
add_members(struct reading *r)
{
    struct archive_entry *entry;
    int rc;
    for (size_t i = 0;
         (rc = archive_read_next_header(r->archive, &entry)) != ARCHIVE_EOF; i++) {
        if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
            return tar_failed(r, NULL);
        if (i == QDQI_TAR_MAX_MEMBERS)
            return qdq_error_set(r->err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                                 "the tar archive has more than %d members",
                                 QDQI_TAR_MAX_MEMBERS);
        const char *name = name_of(entry);
        enum qdq_code code =
            name && r->options->wants(name) ? add_member(r, entry, name) : QDQ_OK;
        if (code != QDQ_OK)
            return code;
    }
    return QDQ_OK;
}

/* Checks the end of the archive: a block of zeros, without which it was cut between
   two members. A packed archive is read to its end, where its checksum is. */
static enum qdq_code
check_end(struct reading *r)
{
    uint64_t end = (uint64_t)archive_read_header_position(r->archive);
    char where[24];
    for (size_t got = 1; r->gunzip && got > 0; r->offset += got) {
        enum qdq_code code = qdqi_gunzip_read(r->gunzip, r->piece, PIECE, &got, r->err);
        if (code != QDQ_OK)
            return code;
    }
    uint64_t size = r->gunzip ? r->offset : r->size;
    if (size >= BLOCK && size - BLOCK >= end)
        return QDQ_OK;
    snprintf(where, sizeof where, "%" PRIu64, size);
    return qdq_error_set(r->err, QDQ_INVALID_DATASET, QDQ_AT_OFFSET, where,
                         "the tar archive is cut short: it ends at byte %s%s without "
                         "the mark of its end",
                         where, r->gunzip ? " (unpacked)" : "");
}

static enum qdq_code
open_archive(struct reading *r)
{
    enum qdq_code code = QDQ_OK;
    r->archive = archive_read_new();
    if (!r->archive && errno == ELIBACC)
        return qdq_error_set(r->err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "libarchive cannot be loaded");
    if (!r->archive || archive_read_support_format_tar(r->archive) != ARCHIVE_OK ||
        archive_read_set_read_callback(r->archive, next_piece) != ARCHIVE_OK ||
        archive_read_set_skip_callback(r->archive, skip) != ARCHIVE_OK ||
        archive_read_set_callback_data(r->archive, r) != ARCHIVE_OK)
        return qdqi_no_memory(r->err);
    if (r->options->gzip) {
        code = qdqi_gunzip_open(r->tar->fd, r->options->most, &r->gunzip, r->err);
        r->tar->scratch = code == QDQ_OK ? qdqi_file_open_temporary() : -1;
        if (code == QDQ_OK && r->tar->scratch < 0)
            code = qdq_error_set(r->err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                                 "no file to unpack the dataset into: %s",
                                 strerror(errno));
    }
    if (code == QDQ_OK && archive_read_open1(r->archive) != ARCHIVE_OK)
        code = tar_failed(r, NULL);
    return code;
}

static enum qdq_code
read_archive(struct reading *r)
{
    enum qdq_code code = open_archive(r);
    if (code == QDQ_OK)
        code = add_members(r);
    if (code == QDQ_OK)
        code = check_end(r);
    if (r->archive)
        archive_read_free(r->archive);
    qdqi_gunzip_close(&r->gunzip);
    return code;
}

enum qdq_code
qdqi_tar_open(int fd, uint64_t size, const struct qdqi_tar_options *options,
              struct qdqi_arena *arena, struct qdqi_tar **ret, struct qdq_error *err)
{
    struct qdqi_tar *tar = calloc(1, sizeof *tar);
    struct reading *r = calloc(1, sizeof *r);
    enum qdq_code code = tar && r ? QDQ_OK : qdqi_no_memory(err);
    if (code == QDQ_OK) {
        tar->fd = fd;
        tar->scratch = -1;
        r->tar = tar;
        r->options = options;
        r->arena = arena;
        r->size = size;
        r->err = err;
        code = read_archive(r);
    }
    free(r);
    if (code == QDQ_OK)
        *ret = tar;
    else
        qdqi_tar_close(&tar);
    return code;
}

void
qdqi_tar_close(struct qdqi_tar **tar)
{
    if (!tar || !*tar)
        return;
    if ((*tar)->scratch >= 0)
        close((*tar)->scratch);
    free((*tar)->files);
    free(*tar);
    *tar = NULL;
}

size_t
qdqi_tar_count(const struct qdqi_tar *tar)
{
    return tar->n;
}

const struct qdqi_tar_file *
qdqi_tar_file(const struct qdqi_tar *tar, size_t i)
{
    return &tar->files[i];
}

int
qdqi_tar_fd(const struct qdqi_tar *tar)
{
    return tar->scratch >= 0 ? tar->scratch : tar->fd;
}
