/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "backup.h"

#include "api/digest.h"
#include "library/folder/state_folder.h"
#include "store/backup.h"
#include "tenants/tenants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATABASE "qdqd.sqlite3"
#define TENANTS "tenants"
#define TOKENS "tokens"
/* attempts to copy, while the daemon removes blobs that the copy needs */
#define ROUNDS 10
#define CHUNK (1u << 18)
#define NAME_SIZE 96 /* length of "blobs/ab/" and 64 digits */

/* One backup or restore under way. */
struct copy {
    const char *from_path, *to_path;
    int from, to;     /* descriptors of the folders */
    bool link;        /* blobs may be hard links */
    bool only_record; /* the blobs are elsewhere */
    /* a blob may be missing, because the next copy of the database does not name it */
    bool again;
    uint64_t gone; /* the amount copied in this round */
    char *chunk;
    struct backup_done done;
};

static bool
fail(struct api_problem *p, const char *path, const char *what)
{
    bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    return api_problem_set(p, full ? API_DISK_FULL : API_IO, QDQ_AT_NOTHING, NULL,
                           "%s: %s: %s", path, what, strerror(errno));
}

/* --- one blob ------------------------------------------------------------- */

/* Reads a whole file, writes it to `to` if that is open, and computes its digest. */
static bool
pour(struct copy *copy, int from, int to, char ret[DIGEST_SIZE], uint64_t *ret_size)
{
    struct digest *digest = digest_new();
    bool ok = digest != NULL;
    ssize_t n = 1;
    *ret_size = 0;
    while (ok && n != 0) {
        n = read(from, copy->chunk, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        ok = n >= 0 && digest_update(digest, copy->chunk, (size_t)n);
        for (ssize_t at = 0; ok && to >= 0 && at < n;) {
            ssize_t put = write(to, copy->chunk + at, (size_t)(n - at));
            ok = put >= 0 || errno == EINTR;
            at += put > 0 ? put : 0;
        }
        *ret_size += ok ? (uint64_t)n : 0;
    }
    ok = ok && digest_finish(digest, ret);
    digest_free(&digest);
    return ok;
}

/* Copies the bytes of `from` to a new file; the file system shares them where it
   can. */
static bool
copy_bytes(struct copy *copy, int from, const char *name, char ret[DIGEST_SIZE],
           uint64_t *ret_size)
{
    int to = openat(copy->to, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (to < 0)
        return false;
    bool shared = ioctl(to, FICLONE, from) == 0;
    bool ok = pour(copy, from, shared ? -1 : to, ret, ret_size) && fsync(to) == 0;
    close(to);
    return ok;
}

static bool
check_id(struct copy *copy, const char *name, const char *id, const char *found,
         struct api_problem *p)
{
    if (!strcmp(id, found))
        return true;
    unlinkat(copy->to, name, 0);
    return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                           "%s/%s is damaged: its bytes hash to %s", copy->from_path,
                           name, found);
}

/* Makes the folder of a blob in the copy. `ret` is the blob's name there. */
static bool
make_place(struct copy *copy, const char *id, char ret[NAME_SIZE],
           struct api_problem *p)
{
    char folder[NAME_SIZE];
    const char *hex = strchr(id, ':') + 1;
    snprintf(folder, sizeof folder, "blobs/%.2s", hex);
    snprintf(ret, NAME_SIZE, "blobs/%.2s/%.64s", hex, hex);
    return mkdirat(copy->to, folder, 0700) == 0 || errno == EEXIST ||
           fail(p, copy->to_path, "making a folder");
}

/* Copies a blob from one folder to the other. A blob that exists there was copied in
   an earlier round. */
static bool
copy_blob(void *arg, const char *id, struct api_problem *p)
{
    struct copy *copy = arg;
    char name[NAME_SIZE], found[DIGEST_SIZE];
    uint64_t size;
    if (copy->only_record)
        return true;
    if (!id || !digest_is_id(id))
        return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                               "%s: the database names a blob that is none",
                               copy->from_path);
    if (!make_place(copy, id, name, p))
        return false;
    if (faccessat(copy->to, name, F_OK, 0) == 0)
        return true;
    int from = openat(copy->from, name, O_RDONLY | O_CLOEXEC);
    if (from < 0 && errno == ENOENT && copy->again) {
        copy->gone++;
        return true;
    }
    if (from < 0)
        return fail(p, copy->from_path, name);
    bool linked = copy->link && linkat(copy->from, name, copy->to, name, 0) == 0;
    bool ok = (linked ? pour(copy, from, -1, found, &size)
                      : copy_bytes(copy, from, name, found, &size)) ||
              fail(p, copy->to_path, name);
    close(from);
    if (!ok)
        unlinkat(copy->to, name, 0);
    copy->done.files++;
    copy->done.bytes += ok ? size : 0;
    return ok && check_id(copy, name, id, found, p);
}

/* --- small files that the record has --------------------------------------- */

static bool
write_whole(int fd, const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = write(fd, text + at, size - at);
        if (n < 0 && errno != EINTR)
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Writes a file whose bytes are in the record: the folder may lack it, or have it damaged, since
   a loss of power. */
static bool
write_text(void *arg, const char *id, const char *text, struct api_problem *p)
{
    struct copy *copy = arg;
    char name[NAME_SIZE], found[DIGEST_SIZE];
    size_t size = text ? strlen(text) : 0;
    if (copy->only_record || !id || !digest_is_id(id) || !size ||
        !digest_of(text, size, found) || strcmp(id, found) != 0)
        return true;
    if (!make_place(copy, id, name, p))
        return false;
    int fd = openat(copy->to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == EEXIST || fail(p, copy->to_path, name);
    bool ok = write_whole(fd, text, size) || fail(p, copy->to_path, name);
    close(fd);
    if (!ok)
        unlinkat(copy->to, name, 0);
    copy->done.files += ok;
    copy->done.bytes += ok ? size : 0;
    return ok;
}

/* --- folders -------------------------------------------------------------- */

/* Returns whether this entry may be in a folder that is going to be filled. */
static bool
is_no_matter(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, "lock") ||
           !strcmp(name, TOKENS);
}

/* Opens a folder to be filled. Creates it when absent; else it must be empty but for
   `lock` and the access tokens. */
static bool
open_empty(const char *path, int *ret, struct api_problem *p)
{
    bool empty = true;
    if (mkdir(path, 0700) && errno != EEXIST)
        return fail(p, path, "making the folder");
    *ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = *ret < 0 ? -1 : openat(*ret, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream) {
        fail(p, path, "opening the folder");
        if (fd >= 0)
            close(fd);
        return false;
    }
    for (struct dirent *entry; (entry = readdir(stream));)
        empty = empty && is_no_matter(entry->d_name);
    closedir(stream);
    if (!empty)
        return api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                               "%s: the folder is not empty", path);
    return (mkdirat(*ret, "blobs", 0700) == 0 && fchmod(*ret, 0700) == 0) ||
           fail(p, path, "making a folder");
}

static bool
begin(struct copy *copy, struct api_problem *p)
{
    copy->from = open(copy->from_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (copy->from < 0)
        return fail(p, copy->from_path, "opening the folder");
    copy->chunk = malloc(CHUNK);
    return copy->chunk || api_problem_no_memory(p);
}

static void
end(struct copy *copy)
{
    free(copy->chunk);
    if (copy->from >= 0)
        close(copy->from);
    if (copy->to >= 0)
        close(copy->to);
}

/* Syncs the folders, and the database's name last: only then is the copy complete. */
static bool
seal(struct copy *copy, const char *database, struct api_problem *p)
{
    int blobs = openat(copy->to, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Syncs every folder that was written to. */
    bool ok = blobs >= 0 && syncfs(blobs) == 0 &&
              renameat(copy->to, database, copy->to, DATABASE) == 0 &&
              fsync(copy->to) == 0;
    if (!ok)
        fail(p, copy->to_path, "making it durable");
    if (blobs >= 0)
        close(blobs);
    return ok;
}

static bool
join(char ret[PATH_MAX], const char *folder, const char *name, struct api_problem *p)
{
    return snprintf(ret, PATH_MAX, "%s/%s", folder, name) < PATH_MAX ||
           api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL, "%s: too long", folder);
}

/* Copies the access tokens, if there are some and `to` has none of its own. */
static bool
copy_tokens(struct copy *copy, struct api_problem *p)
{
    char unused[DIGEST_SIZE];
    uint64_t size;
    int from = openat(copy->from, TOKENS, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return errno == ENOENT || fail(p, copy->from_path, TOKENS);
    bool ok = faccessat(copy->to, TOKENS, F_OK, 0) == 0 ||
              copy_bytes(copy, from, TOKENS, unused, &size) ||
              fail(p, copy->to_path, TOKENS);
    close(from);
    return ok;
}

/* Copies one state folder; those of its tenants are copied in the same way. */
typedef bool (*copy_fn)(const char *from, const char *to, bool only_record,
                        struct backup_done *ret, struct api_problem *p);

static bool
copy_tenant(struct copy *copy, const char *name, copy_fn fn, struct api_problem *p)
{
    char folder[sizeof TENANTS + TENANT_SIZE];
    char from[PATH_MAX], to[PATH_MAX], database[PATH_MAX];
    struct backup_done done = {0};
    snprintf(folder, sizeof folder, TENANTS "/%s", name);
    if (!join(from, copy->from_path, folder, p) ||
        !join(to, copy->to_path, folder, p) || !join(database, from, DATABASE, p))
        return false;
    bool ok = access(database, F_OK) ? true : fn(from, to, copy->only_record, &done, p);
    copy->done.files += done.files;
    copy->done.bytes += done.bytes;
    return ok;
}

static bool
copy_tenants(struct copy *copy, copy_fn fn, struct api_problem *p)
{
    int fd = openat(copy->from, TENANTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || fail(p, copy->from_path, TENANTS);
    DIR *stream = fdopendir(fd);
    bool ok = stream && (mkdirat(copy->to, TENANTS, 0700) == 0 || errno == EEXIST);
    if (!ok)
        fail(p, copy->to_path, TENANTS);
    for (struct dirent *entry; ok && (entry = readdir(stream));)
        ok = !tenant_is_name(entry->d_name) || copy_tenant(copy, entry->d_name, fn, p);
    if (stream)
        closedir(stream);
    else
        close(fd);
    return ok;
}

/* --- backup -------------------------------------------------------------- */

/*
 * Copies the database first and the blobs that it names second. A daemon may have
 * removed some of them meanwhile; its database does not name them any more either. So
 * both are copied again, and blobs that were copied stay.
 */
static bool
copy_all(struct copy *copy, const char *from, const char *to, struct api_problem *p)
{
    for (int round = 1; round <= ROUNDS; round++) {
        copy->gone = 0;
        copy->again = round < ROUNDS;
        if (!store_backup_copy(from, to, p) ||
            !store_backup_texts(to, write_text, copy, p) ||
            !store_backup_each(to, copy_blob, copy, p))
            return false;
        if (!copy->gone)
            return true;
    }
    return false;
}

bool
backup_make(const char *state, const char *to, bool only_record,
            struct backup_done *ret, struct api_problem *p)
{
    struct copy copy = {.from_path = state,
                        .to_path = to,
                        .from = -1,
                        .to = -1,
                        .link = true,
                        .only_record = only_record};
    char from_database[PATH_MAX], to_database[PATH_MAX];
    bool ok = join(from_database, state, DATABASE, p) &&
              join(to_database, to, DATABASE ".part", p) && begin(&copy, p) &&
              open_empty(to, &copy.to, p) &&
              copy_all(&copy, from_database, to_database, p) &&
              store_backup_check(to_database, p) && copy_tokens(&copy, p) &&
              copy_tenants(&copy, backup_make, p) && seal(&copy, DATABASE ".part", p);
    *ret = copy.done;
    end(&copy);
    return ok;
}

/* --- restore ------------------------------------------------------------- */

static bool
copy_database(struct copy *copy, struct api_problem *p)
{
    char unused[DIGEST_SIZE];
    uint64_t size;
    int from = openat(copy->from, DATABASE, O_RDONLY | O_CLOEXEC);
    bool ok = from >= 0 && copy_bytes(copy, from, DATABASE ".part", unused, &size);
    if (!ok)
        fail(p, copy->from_path, DATABASE);
    if (from >= 0)
        close(from);
    return ok;
}

bool
backup_restore(const char *from, const char *state, bool only_record,
               struct backup_done *ret, struct api_problem *p)
{
    struct copy copy = {.from_path = from,
                        .to_path = state,
                        .from = -1,
                        .to = -1,
                        .only_record = only_record};
    char database[PATH_MAX];
    bool ok = join(database, state, DATABASE ".part", p) && begin(&copy, p) &&
              open_empty(state, &copy.to, p) && folder_lock(copy.to, state, p) &&
              copy_database(&copy, p) && store_backup_check(database, p) &&
              store_backup_texts(database, write_text, &copy, p) &&
              store_backup_each(database, copy_blob, &copy, p) &&
              copy_tokens(&copy, p) && copy_tenants(&copy, backup_restore, p) &&
              seal(&copy, DATABASE ".part", p);
    *ret = copy.done;
    end(&copy);
    return ok;
}
