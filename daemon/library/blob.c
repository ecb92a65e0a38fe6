/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "library/cache.h"
#include "library/inner.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int
open_folder(int dir, const char *name)
{
    if (mkdirat(dir, name, 0700) && errno != EEXIST)
        return -1;
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Makes the 256 folders once, so that a commit never has to. */
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

DIR *
blobs_open_stream(int dir, const char *name)
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
    size_t n = 0;
    DIR *stream = blobs_open_stream(tmp, ".");
    if (!stream)
        return false;
    for (struct dirent *entry; (entry = readdir(stream));)
        if (entry->d_name[0] != '.')
            n += unlinkat(tmp, entry->d_name, 0) == 0;
    closedir(stream);
    if (n)
        log_info("unfinished_removed", "files=%zu", n);
    return true;
}

static uint64_t
size_of(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ? 0 : (uint64_t)st.st_size;
}

/* Counts the bytes of the blobs that exist. */
static bool
count_blobs(const struct blobs *blobs, uint64_t *ret)
{
    *ret = 0;
    for (unsigned i = 0; i < 256; i++) {
        char name[4];
        snprintf(name, sizeof name, "%02x", i);
        DIR *stream = blobs_open_stream(blobs->dir, name);
        if (!stream)
            return false;
        for (struct dirent *entry; (entry = readdir(stream));)
            if (entry->d_name[0] != '.')
                *ret += size_of(dirfd(stream), entry->d_name);
        closedir(stream);
    }
    return true;
}

/* A file that comes or goes meanwhile may be counted wrongly until the next call. */
bool
blobs_recount(struct blobs *blobs, struct api_problem *p)
{
    uint64_t before = blobs->used, now;
    if (!count_blobs(blobs, &now))
        return blobs_fail(p, "reading the blobs' folder");
    blobs->used += now - before;
    return true;
}

bool
blobs_open(int dir, struct blobs **ret, struct api_problem *p)
{
    struct blobs *blobs = calloc(1, sizeof *blobs);
    if (!blobs)
        return api_problem_no_memory(p);
    lock_init(&blobs->naming, LOCK_NAMING);
    blobs->dir = open_folder(dir, "blobs");
    blobs->tmp = open_folder(dir, "tmp");
    blobs->damaged = open_folder(dir, "damaged");
    if (!blobs_integrity_open(blobs)) {
        blobs_close(&blobs);
        return api_problem_no_memory(p);
    }
    if (blobs->dir < 0 || blobs->tmp < 0 || blobs->damaged < 0 ||
        !make_folders(blobs->dir) || !sweep_tmp(blobs->tmp) ||
        !blobs_recount(blobs, p)) {
        blobs_fail(p, "the state folder");
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
    cache_leave(*blobs);
    if ((*blobs)->dir >= 0)
        close((*blobs)->dir);
    if ((*blobs)->tmp >= 0)
        close((*blobs)->tmp);
    if ((*blobs)->damaged >= 0)
        close((*blobs)->damaged);
    blobs_integrity_close(*blobs);
    lock_fini(&(*blobs)->naming);
    free(*blobs);
    *blobs = NULL;
}

bool
blob_exists(struct blobs *blobs, const char *id)
{
    char name[NAME_SIZE];
    if (!digest_is_id(id))
        return false;
    blob_name(id, name);
    return faccessat(blobs->dir, name, F_OK, 0) == 0;
}

void
blob_remove(struct blobs *blobs, const char *id)
{
    char name[NAME_SIZE];
    if (!digest_is_id(id))
        return;
    blob_name(id, name);
    lock_acquire(&blobs->naming);
    uint64_t size = size_of(blobs->dir, name);
    if (unlinkat(blobs->dir, name, 0) == 0)
        blobs->used -= size;
    (void)unlinkat(blobs->damaged, blob_hex(id), 0);
    lock_release(&blobs->naming);
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
        DIR *stream = blobs_open_stream(blobs->dir, name);
        if (!stream)
            return blobs_fail(p, "reading the blobs' folder");
        each_of_folder(stream, fn, arg);
        closedir(stream);
    }
    return true;
}

bool
blobs_sync_all(struct blobs *blobs, struct api_problem *p)
{
    return syncfs(blobs->dir) == 0 || blobs_fail(p, "storing files");
}
