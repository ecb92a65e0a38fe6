/* SPDX-License-Identifier: Apache-2.0 */
/* Files while they are written, and how they become blobs. */
#include "config.h"
#include "library/inner.h"
#include "base/lock.h"
#include "base/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* bytes of a file after which the free room on the disk is checked again */
#define WATCH_EVERY (8u << 20)

struct spool {
    struct blobs *blobs;
    int fd;
    char name[NAME_SIZE]; /* file name in STATE/tmp */
    struct digest *digest;
    uint64_t size;        /* bytes, counted in blobs->spooled */
    uint64_t lent;        /* the same, of a file that another process writes */
    char id[DIGEST_SIZE]; /* "" until finished */
    bool replaces;        /* replaces a blob of the same name, if there is one */
    bool stored;          /* the blob of that name is durable */
    bool is_lent;         /* fd is a worker's file, of which the blob is a copy */
    bool is_borrowed;     /* fd is the caller's */
    bool is_late;         /* the blob is synced later */
};

/* Makes an empty file with a new name for a spool, and returns its descriptor. */
static int
open_named(struct spool *spool)
{
    snprintf(spool->name, sizeof spool->name, "%llu.tmp",
             (unsigned long long)atomic_fetch_add(&spool->blobs->next, 1));
    return openat(spool->blobs->tmp, spool->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                  0600);
}

static bool
open_spool(struct blobs *blobs, int fd, struct spool **ret, struct api_problem *p)
{
    struct spool *spool = calloc(1, sizeof *spool);
    if (!spool)
        return api_problem_no_memory(p);
    spool->blobs = blobs;
    spool->fd = fd < 0 ? open_named(spool) : fd;
    bool ok = spool->fd >= 0 || blobs_fail(p, "making a temporary file");
    if (!ok)
        spool_discard(&spool);
    else
        *ret = spool;
    return ok;
}

/* Begins to hash what is written to the spool. */
static bool
begin_digest(struct spool *spool, struct api_problem *p)
{
    if (!spool->digest)
        spool->digest = digest_new();
    return spool->digest || api_problem_no_memory(p);
}

bool
spool_open(struct blobs *blobs, struct spool **ret, struct api_problem *p)
{
    if (!open_spool(blobs, -1, ret, p))
        return false;
    if (begin_digest(*ret, p))
        return true;
    spool_discard(ret);
    return false;
}

bool
spool_open_lent(struct blobs *blobs, int fd, struct spool **ret, struct api_problem *p)
{
    if (!open_spool(blobs, fd, ret, p))
        return false;
    (*ret)->is_borrowed = true;
    return true;
}

/* Opens a file in STATE/tmp that has no name, or none any more. */
static int
open_nameless(struct blobs *blobs)
{
    struct spool named = {.blobs = blobs};
    int fd = openat(blobs->tmp, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    fd = open_named(&named);
    if (fd >= 0)
        unlinkat(blobs->tmp, named.name, 0);
    return fd;
}

/* Empties a file that was written to. Returns false when that fails. */
static bool
empty_file(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (!st.st_size || ftruncate(fd, 0) == 0) &&
           lseek(fd, 0, SEEK_SET) == 0;
}

bool
lent_file_open(struct blobs *blobs, int *fd, struct api_problem *p)
{
    if (*fd >= 0 && empty_file(*fd))
        return true;
    lent_file_close(fd);
    *fd = open_nameless(blobs);
    return *fd >= 0 || blobs_fail(p, "making a temporary file");
}

void
lent_file_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void
lent_file_trim(int *fd)
{
    enum { MOST_KEPT = 1 << 20 };
    struct stat st;
    if (*fd >= 0 && (fstat(*fd, &st) || st.st_size > MOST_KEPT))
        lent_file_close(fd);
}

static bool
write_all(int fd, const char *at, size_t left, struct api_problem *p)
{
    while (left) {
        ssize_t n = write(fd, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return blobs_fail(p, "writing a temporary file");
        at += n;
        left -= (size_t)n;
    }
    return true;
}

static void
add_size(struct spool *spool, uint64_t size)
{
    spool->size += size;
    spool->blobs->spooled += size;
}

bool
spool_write(struct spool *spool, const void *data, size_t len, struct api_problem *p)
{
    const struct blobs *blobs = spool->blobs;
    uint64_t most = blobs->limits.max_bytes;
    if (most && blobs_counted(blobs) + blobs->spooled + len > most &&
        !blobs_check_room(spool->blobs, len, p))
        return false;
    if (!digest_update(spool->digest, data, len))
        return api_problem_no_memory(p);
    if (!write_all(spool->fd, data, len, p))
        return false;
    add_size(spool, len);
    return true;
}

/* Counts `now` bytes as those that another process has written. */
static void
count_lent(struct spool *spool, uint64_t now)
{
    spool->blobs->spooled += now - spool->lent;
    spool->lent = now;
}

bool
spool_watch(struct spool *spool, struct api_problem *p)
{
    struct stat st;
    if (fstat(spool->fd, &st))
        return blobs_fail(p, "reading a temporary file");
    uint64_t now = (uint64_t)st.st_size;
    bool is_due = now / WATCH_EVERY != spool->lent / WATCH_EVERY;
    uint64_t most = spool->blobs->limits.max_bytes;
    count_lent(spool, now);
    if (!is_due &&
        (!most || blobs_counted(spool->blobs) + spool->blobs->spooled <= most))
        return true;
    return blobs_check_room(spool->blobs, 0, p);
}

bool
spool_fill(struct spool *spool, int from, char ret[DIGEST_SIZE], struct api_problem *p)
{
    char chunk[1 << 16];
    struct digest *digest = digest_new();
    off_t at = 0;
    ssize_t n = 1;
    bool ok = digest || api_problem_no_memory(p);
    while (ok && n != 0) {
        n = pread(from, chunk, sizeof chunk, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            ok = blobs_fail(p, "reading a blob");
        else
            ok =
                (digest_update(digest, chunk, (size_t)n) || api_problem_no_memory(p)) &&
                write_all(spool->fd, chunk, (size_t)n, p);
        at += n;
    }
    ok = ok && (digest_finish(digest, ret) || api_problem_no_memory(p));
    digest_free(&digest);
    return ok;
}

bool
spool_finish(struct spool *spool, struct api_problem *p)
{
    if (!digest_finish(spool->digest, spool->id))
        return api_problem_no_memory(p);
    digest_free(&spool->digest);
    return true;
}

/* Checks that the disk has room for a copy of the file. One without room for it may be
   nothing but a hole, and its copy would not be. DISK_FULL. */
static bool
can_copy(const struct spool *spool, int from, struct api_problem *p)
{
    struct statvfs disk;
    struct stat st;
    if (fstat(from, &st) || fstatvfs(spool->blobs->tmp, &disk))
        return blobs_fail(p, "reading a temporary file");
    return (uint64_t)st.st_size <= (uint64_t)disk.f_bavail * disk.f_frsize ||
           api_problem_set(p, API_DISK_FULL, QDQ_AT_NOTHING, NULL,
                           "too little of the disk is free to store a result of %lld "
                           "bytes",
                           (long long)st.st_size);
}

/* Hashes and copies the rest of `from` to the spool's own file. */
static bool
copy_file(struct spool *spool, int from, struct api_problem *p)
{
    char chunk[1 << 16];
    bool ok = true;
    while (ok) {
        ssize_t n = pread(from, chunk, sizeof chunk, (off_t)spool->size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            break;
        ok = n > 0 ? digest_update(spool->digest, chunk, (size_t)n) ||
                         api_problem_no_memory(p)
                   : blobs_fail(p, "reading a temporary file");
        ok = ok && write_all(spool->fd, chunk, (size_t)n, p);
        if (ok)
            add_size(spool, (uint64_t)n);
    }
    return ok;
}

/* Makes the spool a copy of the file that it is. */
static bool
copy_spool(struct spool *spool, struct api_problem *p)
{
    char old[NAME_SIZE];
    int written = spool->fd;
    memcpy(old, spool->name, sizeof old);
    spool->fd = open_named(spool);
    if (spool->fd < 0) {
        spool->fd = written;
        memcpy(spool->name, old, sizeof old);
        return blobs_fail(p, "making a temporary file");
    }
    if (*old)
        unlinkat(spool->blobs->tmp, old, 0);
    bool ok = can_copy(spool, written, p) && begin_digest(spool, p) &&
              copy_file(spool, written, p);
    if (!spool->is_borrowed)
        close(written);
    count_lent(spool, 0);
    spool->is_lent = spool->is_borrowed = false;
    return ok && spool_finish(spool, p);
}

/* Returns whether a small file has the bytes of a blob that was verified. The spool then gets
   its id and size. */
static bool
is_stored_already(struct spool *spool)
{
    char chunk[1 << 14];
    uint64_t size;
    struct blobs *blobs = spool->blobs;
    ssize_t n = pread(spool->fd, chunk, sizeof chunk, 0);
    if (n <= 0 || (size_t)n == sizeof chunk || blobs->bucket ||
        !digest_of(chunk, (size_t)n, spool->id))
        return false;
    lock_acquire(&blobs->naming);
    bool stored = blobs_is_verified(blobs, spool->id, &size) && size == (uint64_t)n;
    lock_release(&blobs->naming);
    if (stored)
        add_size(spool, (uint64_t)n);
    else
        spool->id[0] = '\0';
    return stored;
}

/* The worker may still have the file that it wrote. So the spool becomes a copy, and the
   digest is that of the bytes that were copied. Where a blob has these bytes, none is made. */
bool
spool_finish_file(struct spool *spool, struct api_problem *p)
{
    spool->is_lent = is_stored_already(spool);
    return spool->is_lent || copy_spool(spool, p);
}

/* Copies the worker's file after all, because its blob is gone. The file must not have
   changed since it was hashed. */
static bool
copy_lent(struct spool *spool, struct api_problem *p)
{
    char id[DIGEST_SIZE];
    memcpy(id, spool->id, sizeof id);
    spool->blobs->spooled -= spool->size;
    spool->size = 0;
    return copy_spool(spool, p) &&
           (strcmp(spool->id, id) == 0 ||
            api_problem_set(p, API_IO, QDQ_AT_NOTHING, NULL,
                            "a result changed while it was stored"));
}

uint64_t
spool_size(const struct spool *spool)
{
    return spool->size;
}

const char *
spool_id(const struct spool *spool)
{
    return spool->id;
}

int
spool_fd(const struct spool *spool)
{
    return spool->fd;
}

bool
spool_read(struct spool *spool, int *ret, struct api_problem *p)
{
    int fd = openat(spool->blobs->tmp, spool->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return blobs_fail(p, "opening a temporary file");
    *ret = fd;
    return true;
}

/* Opens the folder that holds a blob. */
static int
open_folder_of(struct blobs *blobs, const char *id)
{
    char folder[4];
    snprintf(folder, sizeof folder, "%.2s", blob_hex(id));
    return openat(blobs->dir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int
open_file_of(struct blobs *blobs, const char *id)
{
    char name[NAME_SIZE];
    blob_name(id, name);
    return openat(blobs->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

enum { SYNC_BLOBS = SYNC_MOST / 2 };

/* Makes the bytes and the names of up to SYNC_BLOBS blobs durable, all at once. */
static bool
sync_blobs(struct blobs *blobs, const char *const *ids, size_t n)
{
    int fds[SYNC_MOST] = {-1};
    size_t opened = 0;
    int error = 0;
    for (size_t i = 0; i < 2 * n && !error; i++) {
        const char *id = ids[i / 2];
        fds[opened] = i % 2 ? open_folder_of(blobs, id) : open_file_of(blobs, id);
        if (fds[opened] < 0)
            error = errno;
        else
            opened++;
    }
    if (!error)
        error = sync_together(fsync, fds, opened);
    for (size_t i = 0; i < n && !error; i++)
        blobs_set_durable(blobs, ids[i], fds[2 * i]);
    while (opened)
        close(fds[--opened]);
    errno = error;
    return !error;
}

bool
blob_sync(struct blobs *blobs, const char *id, struct api_problem *p)
{
    return sync_blobs(blobs, &id, 1) || blobs_fail(p, "storing a file");
}

/* Makes the blobs of the spools durable, except those that are so already. */
static bool
sync_committed(struct spool **const *spools, size_t n)
{
    const char *ids[SYNC_BLOBS];
    for (size_t at = 0; at < n;) {
        size_t some = 0;
        for (; at < n && some < SYNC_BLOBS; at++)
            if (!(*spools[at])->stored && !(*spools[at])->is_late)
                ids[some++] = (*spools[at])->id;
        if (some && !sync_blobs((*spools[0])->blobs, ids, some))
            return false;
    }
    return true;
}

/* Returns whether the blob's name is for this spool: no file has it, or a damaged one, or
   one that was not verified. *ret_before is the size of the file that has it. */
static bool
takes_name(const struct spool *s, uint64_t *ret_before)
{
    lock_assert_held(&s->blobs->naming);
    bool is_verified = blobs_is_verified(s->blobs, s->id, ret_before);
    return !is_verified || *ret_before != s->size || s->replaces;
}

/*
 * Makes a spool ready to get its blob's name, if it will get it. One that replaces a file is
 * synced: a row may name that file, and after a loss of power its name must not stand for
 * fewer bytes.
 */
static bool
prepare_naming(struct spool *s, struct api_problem *p)
{
    struct blobs *blobs = s->blobs;
    uint64_t before;
    lock_acquire(&blobs->naming);
    bool takes = takes_name(s, &before);
    lock_release(&blobs->naming);
    if (takes && s->is_lent && !copy_lent(s, p))
        return false;
    return !takes || !before || blobs->bucket || fdatasync(s->fd) == 0 ||
           blobs_fail(p, "storing a file");
}

/* Renames a finished spool to its blob's name, unless the blob exists and was verified.
   A damaged file of that name is forgotten. */
static bool
name_blob(struct spool *s)
{
    struct blobs *blobs = s->blobs;
    char name[NAME_SIZE];
    uint64_t before;
    bool ok = true;
    blob_name(s->id, name);
    lock_acquire(&blobs->naming);
    bool takes = takes_name(s, &before);
    if (takes && s->is_lent) {
        errno = EAGAIN; /* its blob was set aside a moment ago */
        ok = false;
    } else if (takes) {
        s->stored = false;
        ok = renameat(blobs->tmp, s->name, blobs->dir, name) == 0;
        if (ok) {
            s->name[0] = '\0';
            blobs->used += s->size - before;
            blobs_set_verified(blobs, s->id, s->fd);
            (void)unlinkat(blobs->damaged, blob_hex(s->id), 0);
        }
    }
    lock_release(&blobs->naming);
    return ok;
}

bool
spools_commit(struct spool **const *spools, size_t n, struct api_problem *p)
{
    for (size_t i = 0; i < n; i++) {
        if (!prepare_naming(*spools[i], p))
            return false;
        if (!name_blob(*spools[i]))
            return blobs_fail(p, "storing a file");
    }
    /* a cache may lose its files */
    if (n && !(*spools[0])->blobs->bucket && !sync_committed(spools, n))
        return blobs_fail(p, "storing a file");
    for (size_t i = 0; i < n; i++)
        spool_discard(spools[i]);
    return true;
}

void
spool_set_replace(struct spool *spool)
{
    spool->replaces = true;
}

void
spool_set_stored(struct spool *spool)
{
    spool->stored = true;
}

bool
spool_is_stored(const struct spool *spool)
{
    return spool->stored;
}

void
spool_set_late(struct spool *spool)
{
    spool->is_late = !spool->stored;
}

bool
spool_commit(struct spool **spool, struct api_problem *p)
{
    return spools_commit(&spool, 1, p);
}

void
spool_discard(struct spool **spool)
{
    if (!*spool)
        return;
    (*spool)->blobs->spooled -= (*spool)->size + (*spool)->lent;
    if ((*spool)->fd >= 0) {
        if ((*spool)->name[0])
            unlinkat((*spool)->blobs->tmp, (*spool)->name, 0);
        if (!(*spool)->is_borrowed)
            close((*spool)->fd);
    }
    digest_free(&(*spool)->digest);
    free(*spool);
    *spool = NULL;
}
