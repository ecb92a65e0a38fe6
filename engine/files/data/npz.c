/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/data/npz.h"
#include "ground/base/arena.h"
#include "files/data/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

struct qdqi_npz {
    zip_t *zip;
    int fd;
    uint64_t start;        /* byte of the file at which the archive begins */
    uint64_t size, offset; /* within the archive */
    uint64_t budget;  /* bytes that may still be read while the directory is searched */
    bool over_budget; /* the budget was exceeded */
    int error_number; /* errno of the pread() that failed, or 0 */
    zip_error_t error;
};

struct qdqi_member {
    struct qdqi_npz *npz;
    zip_file_t *file;
    char name[QDQI_NPZ_MAX_NAME + 1];
};

/* --- libzip's view of the descriptor -------------------------------------- */

static zip_int64_t
source_read(struct qdqi_npz *npz, void *to, uint64_t size)
{
    if (size > npz->budget) {
        npz->over_budget = true;
        zip_error_set(&npz->error, ZIP_ER_READ, EFBIG);
        return -1;
    }
    size_t got;
    /* the file goes on behind an archive that is a part of it */
    if (size > npz->size - npz->offset)
        size = npz->size - npz->offset;
    int number = qdqi_file_read(npz->fd, npz->start + npz->offset, to, size, &got);
    if (number != 0) {
        npz->error_number = number;
        zip_error_set(&npz->error, ZIP_ER_READ, number);
        return -1;
    }
    npz->offset += got;
    if (npz->budget != UINT64_MAX)
        npz->budget -= got;
    return (zip_int64_t)got;
}

static zip_int64_t
source_seek(struct qdqi_npz *npz, void *data, zip_uint64_t size)
{
    zip_int64_t to =
        zip_source_seek_compute_offset(npz->offset, npz->size, data, size, &npz->error);
    if (to < 0)
        return -1;
    npz->offset = (uint64_t)to;
    return 0;
}

static zip_int64_t
source_stat(struct qdqi_npz *npz, void *data, zip_uint64_t size)
{
    zip_stat_t *stat = ZIP_SOURCE_GET_ARGS(zip_stat_t, data, size, &npz->error);
    if (!stat)
        return -1;
    zip_stat_init(stat);
    stat->size = npz->size;
    stat->valid = ZIP_STAT_SIZE;
    return sizeof *stat;
}

#define BIT(command) ZIP_SOURCE_MAKE_COMMAND_BITMASK(ZIP_SOURCE_##command)

static zip_int64_t
source(void *arg, void *data, zip_uint64_t size, zip_source_cmd_t command)
{
    struct qdqi_npz *npz = arg;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return BIT(OPEN) | BIT(READ) | BIT(CLOSE) | BIT(STAT) | BIT(ERROR) | BIT(FREE) |
               BIT(SEEK) | BIT(TELL);
    case ZIP_SOURCE_OPEN:
        npz->offset = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return source_read(npz, data, size);
    case ZIP_SOURCE_SEEK:
        return source_seek(npz, data, size);
    case ZIP_SOURCE_TELL:
        return (zip_int64_t)npz->offset;
    case ZIP_SOURCE_STAT:
        return source_stat(npz, data, size);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&npz->error, data, size);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    default:
        zip_error_set(&npz->error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
}

/* --- errors --------------------------------------------------------------- */

static enum qdq_code
directory_limit(struct qdq_error *err)
{
    return qdq_error_set(err, QDQ_LIMIT_EXCEEDED, QDQ_AT_NOTHING, NULL,
                         "the zip archive has more than %d members or a directory of "
                         "more than %d bytes",
                         QDQI_NPZ_MAX_MEMBERS, QDQI_NPZ_MAX_DIRECTORY);
}

/* Sets the error that libzip reports for a member, or for the whole archive (name
   NULL). */
static enum qdq_code
zip_failed(const struct qdqi_npz *npz, const char *name, zip_error_t *error,
           struct qdq_error *err)
{
    if (npz->over_budget)
        return directory_limit(err);
    if (npz->error_number)
        return qdqi_data_failed(npz->error_number, err);
    if (zip_error_code_zip(error) == ZIP_ER_MEMORY)
        return qdqi_no_memory(err);
    if (name)
        return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_INPUT, name,
                             "array '%s' is damaged: %s", name,
                             zip_error_strerror(error));
    return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_NOTHING, NULL,
                         "the zip archive is damaged or cut short: %s",
                         zip_error_strerror(error));
}

/* --- the end of the file -------------------------------------------------- */

/* Sizes of the records that end a zip archive (APPNOTE.TXT 4.3.14 to 4.3.16). */
enum { EOCD = 22, LOCATOR = 20, EOCD64 = 56, COMMENT = 65535 };

static uint64_t
little(const unsigned char *p, int n)
{
    uint64_t value = 0;
    while (n-- > 0)
        value = value << 8 | p[n];
    return value;
}

/* Returns the number of entries that the end record at `p` claims, or its zip64
   record where there is one. */
static uint64_t
claimed_entries(const struct qdqi_npz *npz, const unsigned char *p, size_t before)
{
    uint64_t entries = little(p + 10, 2);
    unsigned char end64[EOCD64];
    size_t got;
    if (before < LOCATOR || memcmp(p - LOCATOR, "PK\6\7", 4) != 0)
        return entries;
    const uint64_t at = little(p - LOCATOR + 8, 8);
    if (at > npz->size ||
        qdqi_file_read(npz->fd, npz->start + at, end64, EOCD64, &got) != 0 ||
        got < EOCD64)
        return entries;
    uint64_t entries64 = little(end64 + 32, 8);
    return entries == 0xffff || entries64 > entries ? entries64 : entries;
}

/* Refuses an archive in which any end record claims too many entries: libzip
   allocates memory for as many entries as the record claims before it reads them. */
static enum qdq_code
check_end_records(const struct qdqi_npz *npz, struct qdq_error *err)
{
    const size_t most = LOCATOR + EOCD + COMMENT;
    size_t size = npz->size < most ? (size_t)npz->size : most;
    size_t got = 0;
    unsigned char *tail = malloc(size);
    if (!tail)
        return qdqi_no_memory(err);
    enum qdq_code code =
        qdqi_data_read(npz->fd, npz->start + npz->size - size, tail, size, &got, err);
    for (size_t i = 0; !code && got >= EOCD && i <= got - EOCD; i++)
        if (memcmp(tail + i, "PK\5\6", 4) == 0 &&
            claimed_entries(npz, tail + i, i) > QDQI_NPZ_MAX_MEMBERS)
            code = directory_limit(err);
    free(tail);
    return code;
}

/* --- archive -------------------------------------------------------------- */

static enum qdq_code
open_zip(struct qdqi_npz *npz, struct qdq_error *err)
{
    zip_error_t error;
    enum qdq_code code = QDQ_OK;
    zip_error_init(&error);
    zip_source_t *src = zip_source_function_create(source, npz, &error);
    if (!src && errno == ELIBACC)
        return qdq_error_set(err, QDQ_IO, QDQ_AT_NOTHING, NULL,
                             "libzip cannot be loaded");
    if (src)
        npz->zip = zip_open_from_source(src, ZIP_RDONLY, &error);
    if (!npz->zip) {
        code = zip_failed(npz, NULL, &error, err);
        zip_source_free(src);
    }
    zip_error_fini(&error);
    return code;
}

enum qdq_code
qdqi_npz_open(int fd, uint64_t size, struct qdqi_npz **ret, struct qdq_error *err)
{
    return qdqi_npz_open_within(fd, 0, size, ret, err);
}

enum qdq_code
qdqi_npz_open_within(int fd, uint64_t start, uint64_t size, struct qdqi_npz **ret,
                     struct qdq_error *err)
{
    struct qdqi_npz *npz = calloc(1, sizeof *npz);
    if (!npz)
        return qdqi_no_memory(err);
    npz->fd = fd;
    npz->start = start;
    npz->size = size;
    npz->budget = QDQI_NPZ_MAX_DIRECTORY;
    zip_error_init(&npz->error);
    enum qdq_code code = check_end_records(npz, err);
    if (code == QDQ_OK)
        code = open_zip(npz, err);
    if (code == QDQ_OK && qdqi_npz_count(npz) > QDQI_NPZ_MAX_MEMBERS)
        code = directory_limit(err);
    if (code != QDQ_OK) {
        qdqi_npz_close(&npz);
        return code;
    }
    npz->budget = UINT64_MAX;
    *ret = npz;
    return QDQ_OK;
}

void
qdqi_npz_close(struct qdqi_npz **npz)
{
    if (!npz || !*npz)
        return;
    if ((*npz)->zip)
        zip_discard((*npz)->zip);
    zip_error_fini(&(*npz)->error);
    free(*npz);
    *npz = NULL;
}

size_t
qdqi_npz_count(const struct qdqi_npz *npz)
{
    return (size_t)zip_get_num_entries(npz->zip, 0);
}

/* Makes the array's name: the member's name without ".npy". */
static enum qdq_code
array_name(const char *member, char name[QDQI_NPZ_MAX_NAME + 1], struct qdq_error *err)
{
    static const char suffix[] = ".npy";
    size_t len = strlen(member), n = sizeof suffix - 1;
    if (len >= n && strcmp(member + len - n, suffix) == 0)
        len -= n;
    if (len == 0)
        return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_NOTHING, NULL,
                             "an npz member has no name");
    if (len > QDQI_NPZ_MAX_NAME)
        return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_INPUT, member,
                             "an npz member's name is longer than %d bytes",
                             QDQI_NPZ_MAX_NAME);
    memcpy(name, member, len);
    name[len] = '\0';
    return QDQ_OK;
}

enum qdq_code
qdqi_npz_entry(struct qdqi_npz *npz, size_t i, struct qdqi_npz_entry *ret,
               struct qdq_error *err)
{
    zip_stat_t stat;
    const zip_uint64_t need = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD |
                              ZIP_STAT_ENCRYPTION_METHOD;
    zip_stat_init(&stat);
    if (zip_stat_index(npz->zip, i, 0, &stat) != 0)
        return zip_failed(npz, NULL, zip_get_error(npz->zip), err);
    if ((stat.valid & need) != need)
        return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_NOTHING, NULL,
                             "npz member %zu has no name or no size", i);
    struct qdqi_npz_entry entry = {.size = stat.size};
    enum qdq_code code = array_name(stat.name, entry.name, err);
    if (code != QDQ_OK)
        return code;
    if (stat.encryption_method != ZIP_EM_NONE)
        return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_INPUT, entry.name,
                             "array '%s' is encrypted: store it without a password",
                             entry.name);
    if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
        return qdq_error_set(err, QDQ_INVALID_DATASET, QDQ_AT_INPUT, entry.name,
                             "array '%s' has zip compression method %u; stored and "
                             "deflated members can be read",
                             entry.name, (unsigned)stat.comp_method);
    entry.npy = strlen(entry.name) < strlen(stat.name);
    entry.folder = stat.size == 0 && stat.name[strlen(stat.name) - 1] == '/';
    *ret = entry;
    return QDQ_OK;
}

/* --- members -------------------------------------------------------------- */

enum qdq_code
qdqi_member_open(struct qdqi_npz *npz, size_t i, struct qdqi_member **ret,
                 struct qdq_error *err)
{
    struct qdqi_npz_entry entry;
    enum qdq_code code = qdqi_npz_entry(npz, i, &entry, err);
    if (code != QDQ_OK)
        return code;
    struct qdqi_member *member = calloc(1, sizeof *member);
    if (!member)
        return qdqi_no_memory(err);
    member->npz = npz;
    memcpy(member->name, entry.name, sizeof member->name);
    member->file = zip_fopen_index(npz->zip, i, 0);
    if (!member->file) {
        code = zip_failed(npz, member->name, zip_get_error(npz->zip), err);
        qdqi_member_close(&member);
        return code;
    }
    *ret = member;
    return QDQ_OK;
}

enum qdq_code
qdqi_member_read(struct qdqi_member *member, void *to, size_t size, size_t *ret_got,
                 struct qdq_error *err)
{
    size_t got = 0;
    while (got < size) {
        zip_int64_t n = zip_fread(member->file, (char *)to + got, size - got);
        if (n < 0)
            return zip_failed(member->npz, member->name,
                              zip_file_get_error(member->file), err);
        if (n == 0)
            break;
        got += (size_t)n;
    }
    *ret_got = got;
    return QDQ_OK;
}

void
qdqi_member_close(struct qdqi_member **member)
{
    if (!member || !*member)
        return;
    if ((*member)->file)
        zip_fclose((*member)->file);
    free(*member);
    *member = NULL;
}
