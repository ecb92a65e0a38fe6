/* SPDX-License-Identifier: Apache-2.0 */
/* The files of blobs in their folders. */
#include "config.h"
#include "library/inner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

DIR *
blobs_open_stream(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream && fd >= 0)
        close(fd);
    return stream;
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
blob_sync(struct blobs *blobs, const char *id, struct api_problem *p)
{
    return !blobs->ops->sync || blobs->ops->sync(blobs, &id, 1) ||
           blobs_fail(p, "storing a file");
}

bool
blobs_sync_all(struct blobs *blobs, struct api_problem *p)
{
    return syncfs(blobs->dir) == 0 || blobs_fail(p, "storing files");
}
