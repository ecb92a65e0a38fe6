/* SPDX-License-Identifier: Apache-2.0 */
/* Files while they are written. */
#include "config.h"
#include "library/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* bytes of a file after which the free room on the disk is checked again */
#define WATCH_EVERY (8u << 20)

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

/* Copies the next part of a file to that of the spool, and hashes it. Returns the number of bytes,
   0 at the end, or -1 with a problem. */
static ssize_t
copy_chunk(struct spool *spool, int from, uint64_t at, struct digest *digest,
           struct api_problem *p)
{
    char chunk[1 << 16];
    ssize_t n = blobs_hash_chunk(from, at, chunk, sizeof chunk, digest);
    bool ok = n >= 0 ? write_all(spool->fd, chunk, (size_t)n, p)
                     : blobs_fail(p, "reading a file");
    return ok ? n : -1;
}

bool
spool_fill(struct spool *spool, int from, char ret[DIGEST_SIZE], struct api_problem *p)
{
    struct digest *digest = digest_new();
    bool ok = digest || api_problem_no_memory(p);
    ssize_t n = 1;
    for (uint64_t at = 0; ok && n > 0; at += (uint64_t)n)
        ok = (n = copy_chunk(spool, from, at, digest, p)) >= 0;
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
    ssize_t n;
    while ((n = copy_chunk(spool, from, spool->size, spool->digest, p)) > 0)
        add_size(spool, (uint64_t)n);
    return n == 0;
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

/* Returns whether a small file has the bytes of a blob that is kept. The spool then gets
   its id and size. */
static bool
is_stored_already(struct spool *spool)
{
    char chunk[1 << 14];
    struct blobs *blobs = spool->blobs;
    ssize_t n = pread(spool->fd, chunk, sizeof chunk, 0);
    if (n <= 0 || (size_t)n == sizeof chunk || !digest_of(chunk, (size_t)n, spool->id))
        return false;
    bool stored =
        blobs->ops->is_kept && blobs->ops->is_kept(blobs, spool->id, (uint64_t)n);
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

bool
spool_copy_lent(struct spool *spool, struct api_problem *p)
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
spool_set_deferred(struct spool *spool)
{
    spool->is_deferred = !spool->stored;
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
