/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "blob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define RESERVE (16u << 20) /* left for what has to be written: the record, above all */
#define NAME_SIZE 96        /* "ab/" and 64 digits, or a spool's name */

struct blobs {
    int dir, tmp; /* descriptors of STATE/blobs and STATE/tmp */
    atomic_uint_fast64_t next;
};

struct spool {
    struct blobs *blobs;
    int fd;
    char name[NAME_SIZE]; /* in STATE/tmp */
    struct digest *digest;
    uint64_t size;
    char id[DIGEST_SIZE]; /* "" until finished */
};

static bool
fail(struct api_problem *p, const char *what)
{
    bool full = errno == ENOSPC || errno == EDQUOT;
    return api_problem_set(p, full ? API_DISK_FULL : API_IO, QDQ_AT_NOTHING, NULL,
                           "%s: %s", what, strerror(errno));
}

static bool
fail_memory(struct api_problem *p)
{
    return api_problem_set(p, API_NO_MEMORY, QDQ_AT_NOTHING, NULL, "out of memory");
}

static const char *
hex_of(const char *id)
{
    return strchr(id, ':') + 1;
}

static void
blob_name(const char *id, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%.2s/%s", hex_of(id), hex_of(id));
}

static int
open_folder(int dir, const char *name)
{
    if (mkdirat(dir, name, 0700) && errno != EEXIST)
        return -1;
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The 256 folders are made once, so that a commit never has to. */
static bool
make_folders(int dir)
{
    for (unsigned i = 0; i < 256; i++) {
        char name[4];
        snprintf(name, sizeof name, "%02x", i);
        if (mkdirat(dir, name, 0700) && errno != EEXIST)
            return false;
    }
    return fsync(dir) == 0;
}

/* Opens a folder of its own for reading, because the stream takes its descriptor. */
static DIR *
open_stream(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream && fd >= 0)
        close(fd);
    return stream;
}

static bool
sweep_tmp(int tmp)
{
    DIR *stream = open_stream(tmp, ".");
    if (!stream)
        return false;
    for (struct dirent *entry; (entry = readdir(stream));)
        if (entry->d_name[0] != '.')
            unlinkat(tmp, entry->d_name, 0);
    closedir(stream);
    return true;
}

bool
blobs_open(int dir, struct blobs **ret, struct api_problem *p)
{
    struct blobs *blobs = calloc(1, sizeof *blobs);
    if (!blobs)
        return fail_memory(p);
    blobs->dir = open_folder(dir, "blobs");
    blobs->tmp = open_folder(dir, "tmp");
    if (blobs->dir < 0 || blobs->tmp < 0 || !make_folders(blobs->dir) ||
        !sweep_tmp(blobs->tmp)) {
        fail(p, "the state folder");
        blobs_close(&blobs);
        return false;
    }
    *ret = blobs;
    return true;
}

void
blobs_close(struct blobs **blobs)
{
    if (!*blobs)
        return;
    if ((*blobs)->dir >= 0)
        close((*blobs)->dir);
    if ((*blobs)->tmp >= 0)
        close((*blobs)->tmp);
    free(*blobs);
    *blobs = NULL;
}

bool
blob_read(struct blobs *blobs, const char *id, int *ret, struct api_problem *p)
{
    char name[NAME_SIZE];
    if (!digest_is_id(id))
        return api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                               "there is no blob of this id");
    blob_name(id, name);
    int fd = openat(blobs->dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                               "there is no blob %s", id);
    if (fd < 0)
        return fail(p, "opening a blob");
    *ret = fd;
    return true;
}

void
blob_remove(struct blobs *blobs, const char *id)
{
    char name[NAME_SIZE];
    if (!digest_is_id(id))
        return;
    blob_name(id, name);
    unlinkat(blobs->dir, name, 0);
}

static void
each_of_folder(DIR *stream, void (*fn)(void *arg, const char *id), void *arg)
{
    for (struct dirent *entry; (entry = readdir(stream));) {
        char id[DIGEST_SIZE + 192];
        snprintf(id, sizeof id, "sha256:%s", entry->d_name);
        if (digest_is_id(id))
            fn(arg, id);
    }
}

bool
blobs_each(struct blobs *blobs, void (*fn)(void *arg, const char *id), void *arg,
           struct api_problem *p)
{
    for (unsigned i = 0; i < 256; i++) {
        char name[4];
        snprintf(name, sizeof name, "%02x", i);
        DIR *stream = open_stream(blobs->dir, name);
        if (!stream)
            return fail(p, "reading the blobs' folder");
        each_of_folder(stream, fn, arg);
        closedir(stream);
    }
    return true;
}

bool
blobs_check_room(struct blobs *blobs, uint64_t size, struct api_problem *p)
{
    struct statvfs disk;
    if (fstatvfs(blobs->tmp, &disk))
        return fail(p, "asking for the disk's free space");
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    return (left >= RESERVE && size <= left - RESERVE) ||
           api_problem_set(p, API_DISK_FULL, QDQ_AT_NOTHING, NULL,
                           "%llu bytes are free, too few to store %llu more",
                           (unsigned long long)left, (unsigned long long)size);
}

bool
spool_open(struct blobs *blobs, struct spool **ret, struct api_problem *p)
{
    struct spool *spool = calloc(1, sizeof *spool);
    if (!spool)
        return fail_memory(p);
    spool->blobs = blobs;
    spool->digest = digest_new();
    snprintf(spool->name, sizeof spool->name, "%llu.tmp",
             (unsigned long long)atomic_fetch_add(&blobs->next, 1));
    spool->fd =
        openat(blobs->tmp, spool->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (spool->fd < 0)
        fail(p, "making a temporary file");
    if (!spool->digest)
        fail_memory(p);
    if (spool->fd < 0 || !spool->digest) {
        spool_drop(&spool);
        return false;
    }
    *ret = spool;
    return true;
}

static bool
write_all(int fd, const char *at, size_t left, struct api_problem *p)
{
    while (left) {
        ssize_t n = write(fd, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail(p, "writing a temporary file");
        at += n;
        left -= (size_t)n;
    }
    return true;
}

bool
spool_write(struct spool *spool, const void *data, size_t len, struct api_problem *p)
{
    if (!digest_update(spool->digest, data, len))
        return fail_memory(p);
    if (!write_all(spool->fd, data, len, p))
        return false;
    spool->size += len;
    return true;
}

bool
spool_fill(struct spool *spool, int from, char ret[DIGEST_SIZE], struct api_problem *p)
{
    enum { CHUNK = 1 << 18 };
    char *chunk = malloc(CHUNK);
    struct digest *digest = digest_new();
    off_t at = 0;
    ssize_t n = 1;
    bool ok = (chunk && digest) || fail_memory(p);
    while (ok && n != 0) {
        n = pread(from, chunk, CHUNK, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            ok = fail(p, "reading a blob");
        else
            ok = (digest_update(digest, chunk, (size_t)n) || fail_memory(p)) &&
                 write_all(spool->fd, chunk, (size_t)n, p);
        at += n;
    }
    ok = ok && (digest_finish(digest, ret) || fail_memory(p));
    digest_free(&digest);
    free(chunk);
    return ok;
}

bool
spool_finish(struct spool *spool, struct api_problem *p)
{
    if (!digest_finish(spool->digest, spool->id))
        return fail_memory(p);
    digest_free(&spool->digest);
    return true;
}

bool
spool_finish_file(struct spool *spool, struct api_problem *p)
{
    enum { CHUNK = 1 << 18 };
    bool ok = false;
    char *chunk = malloc(CHUNK);
    if (!chunk)
        return fail_memory(p);
    for (;;) {
        ssize_t n = pread(spool->fd, chunk, CHUNK, (off_t)spool->size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            fail(p, "reading a temporary file");
            goto out;
        }
        if (n == 0)
            break;
        if (!digest_update(spool->digest, chunk, (size_t)n)) {
            fail_memory(p);
            goto out;
        }
        spool->size += (uint64_t)n;
    }
    ok = spool_finish(spool, p);
out:
    free(chunk);
    return ok;
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
        return fail(p, "opening a temporary file");
    *ret = fd;
    return true;
}

bool
spool_sync(struct spool *spool, struct api_problem *p)
{
    return fdatasync(spool->fd) == 0 || fail(p, "writing a temporary file");
}

/* Makes the folder of the blob `name` ("ab/abcd…") durable. */
static bool
sync_folder(struct blobs *blobs, const char *name)
{
    char folder[4];
    snprintf(folder, sizeof folder, "%.2s", name);
    int fd = openat(blobs->dir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

bool
spool_commit(struct spool **spool, struct api_problem *p)
{
    struct spool *s = *spool;
    char name[NAME_SIZE];
    blob_name(s->id, name);
    if (renameat(s->blobs->tmp, s->name, s->blobs->dir, name))
        return fail(p, "storing a file");
    s->name[0] = '\0';
    if (!sync_folder(s->blobs, name))
        return fail(p, "storing a file");
    spool_drop(spool);
    return true;
}

void
spool_drop(struct spool **spool)
{
    if (!*spool)
        return;
    if ((*spool)->fd >= 0) {
        if ((*spool)->name[0])
            unlinkat((*spool)->blobs->tmp, (*spool)->name, 0);
        close((*spool)->fd);
    }
    digest_free(&(*spool)->digest);
    free(*spool);
    *spool = NULL;
}
