/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "library/cache.h"
#include "library/inner.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* stays free for writes that must succeed, above all those of the record */
#define RESERVE (16u << 20)
#define MOST_FREE (1u << 30) /* the default reserve of a large disk is at most this */

struct spool {
    struct blobs *blobs;
    int fd;
    char name[NAME_SIZE]; /* file name in STATE/tmp */
    struct digest *digest;
    uint64_t size;        /* bytes, counted in blobs->spooled */
    char id[DIGEST_SIZE]; /* "" until finished */
    bool replaces;        /* replaces a blob of the same name, if there is one */
};

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

/* Counts the bytes of the blobs that exist at the start. */
static bool
count_blobs(struct blobs *blobs)
{
    for (unsigned i = 0; i < 256; i++) {
        char name[4];
        snprintf(name, sizeof name, "%02x", i);
        DIR *stream = blobs_open_stream(blobs->dir, name);
        if (!stream)
            return false;
        for (struct dirent *entry; (entry = readdir(stream));)
            if (entry->d_name[0] != '.')
                blobs->used += size_of(dirfd(stream), entry->d_name);
        closedir(stream);
    }
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
        !make_folders(blobs->dir) || !sweep_tmp(blobs->tmp) || !count_blobs(blobs)) {
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

/* --- disk space ---------------------------------------------------------- */

void
blobs_set_limits(struct blobs *blobs, const struct blobs_limits *limits)
{
    blobs->limits.max_bytes = limits->max_bytes;
    blobs->limits.min_free = limits->min_free;
    if (blobs->limits.evict != limits->evict || blobs->limits.arg != limits->arg) {
        blobs->limits.evict = limits->evict;
        blobs->limits.beside = limits->beside;
        blobs->limits.sharers = limits->sharers;
        blobs->limits.arg = limits->arg;
    }
}

uint64_t
blobs_used(struct blobs *blobs)
{
    return blobs->used;
}

/* Returns the stored bytes that count, without spools. Files of a cache do not. */
static uint64_t
counted(const struct blobs *blobs)
{
    const struct blobs_limits *limits = &blobs->limits;
    return (blobs->bucket ? 0 : blobs->used) +
           (limits->beside ? limits->beside(limits->arg) : 0);
}

/* Returns the bytes of a disk that stay free. */
static uint64_t
free_space_floor(const struct blobs *blobs, const struct statvfs *disk)
{
    uint64_t least = blobs->limits.min_free;
    if (!least)
        least = (uint64_t)disk->f_blocks * disk->f_frsize / 20;
    if (!blobs->limits.min_free && least > MOST_FREE)
        least = MOST_FREE;
    return least < RESERVE ? RESERVE : least;
}

/* Computes how many bytes the disk lacks if `size` more come. */
static bool
find_shortage(struct blobs *blobs, uint64_t size, uint64_t *ret, struct api_problem *p)
{
    struct statvfs disk;
    if (fstatvfs(blobs->tmp, &disk))
        return blobs_fail(p, "asking for the disk's free space");
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    uint64_t wanted = free_space_floor(blobs, &disk);
    wanted = size > UINT64_MAX - wanted ? UINT64_MAX : size + wanted;
    *ret = wanted > left ? wanted - left : 0;
    return true;
}

/* Computes how many bytes would be too many if `size` more came; `p` becomes the
   DISK_FULL that says so. */
static bool
find_excess(struct blobs *blobs, uint64_t size, uint64_t *ret, struct api_problem *p)
{
    uint64_t most = blobs->limits.max_bytes;
    uint64_t there = most ? counted(blobs) + blobs->spooled : 0;
    if (!find_shortage(blobs, size, ret, p))
        return false;
    if (most && (size > most || there > most - size)) {
        uint64_t over = size > most ? UINT64_MAX : there - (most - size);
        *ret = over > *ret ? over : *ret;
        return api_problem_set(p, API_DISK_FULL, QDQ_AT_NOTHING, NULL,
                               "%llu bytes are stored, too many to store %llu more "
                               "(storage.max_bytes)",
                               (unsigned long long)there, (unsigned long long)size);
    }
    return !*ret ||
           api_problem_set(p, API_DISK_FULL, QDQ_AT_NOTHING, NULL,
                           "too little of the disk is free to store %llu bytes "
                           "more (storage.min_free)",
                           (unsigned long long)size);
}

bool
blobs_has_room(struct blobs *blobs, uint64_t size, struct api_problem *p)
{
    uint64_t excess;
    return find_excess(blobs, size, &excess, p);
}

/*
 * Computes how many bytes are more than an equal share of the disk if `size` more come. The
 * share is of all that is stored and of what is free, to the floor.
 */
static bool
find_overuse(struct blobs *blobs, uint64_t size, uint64_t *ret, struct api_problem *p)
{
    uint64_t used = blobs->used, all = used;
    unsigned n = 1;
    struct statvfs disk;
    if (fstatvfs(blobs->tmp, &disk))
        return blobs_fail(p, "asking for the disk's free space");
    if (blobs->limits.sharers)
        blobs->limits.sharers(blobs->limits.arg, &all, &n);
    if (!used || !n) /* the others are all that have stored something */
        n++;
    uint64_t floor = free_space_floor(blobs, &disk);
    uint64_t most = all + (uint64_t)disk.f_bavail * disk.f_frsize;
    uint64_t share = most > floor ? (most - floor) / n : 0;
    uint64_t wanted = size > UINT64_MAX - used ? UINT64_MAX : used + size;
    *ret = wanted > share ? wanted - share : 0;
    return true;
}

/*
 * Decides what goes when the disk is short: *ret_more is how many bytes should go, at least
 * those that it lacks. Who has more than a share gives back as much again, so that the others
 * find room. *ret_computed: only what can be computed again may go.
 */
static bool
divide_shortage(struct blobs *blobs, uint64_t size, uint64_t *ret_more,
                bool *ret_computed, struct api_problem *p)
{
    uint64_t shortage = 0, overuse = 0;
    *ret_computed = false;
    if (!find_shortage(blobs, size, &shortage, p) ||
        (shortage && !find_overuse(blobs, size, &overuse, p)))
        return false;
    if (!shortage)
        return true;
    *ret_computed = overuse < shortage;
    uint64_t twice = shortage > UINT64_MAX / 2 ? UINT64_MAX : 2 * shortage;
    uint64_t more = overuse < twice ? overuse : twice;
    *ret_more = more > *ret_more ? more : *ret_more;
    return true;
}

/*
 * Evicts nothing when the bytes would not fit even then. The space of an evicted file
 * may become free only later (a reader still has it open), so the eviction is counted
 * here and not measured on the disk.
 */
bool
blobs_check_room(struct blobs *blobs, uint64_t size, struct api_problem *p)
{
    struct api_problem problem = {0};
    const struct blobs_limits *limits = &blobs->limits;
    uint64_t before = counted(blobs), excess = 0;
    if (blobs->bucket && find_shortage(blobs, size, &excess, &problem)) {
        (void)cache_evict(blobs->bucket->cache, excess);
        if (find_shortage(blobs, size, &excess, &problem) && excess)
            return blobs_has_room(blobs, size,
                                  p); /* jobs stay: their bytes are elsewhere */
    }
    if (find_excess(blobs, size, &excess, &problem))
        return true;
    uint64_t more = excess;
    bool computed = false;
    if (excess && excess <= before && limits->evict &&
        (blobs->bucket || divide_shortage(blobs, size, &more, &computed, &problem))) {
        while (counted(blobs) + more > before && limits->evict(limits->arg, computed))
            continue;
        if (counted(blobs) + excess <= before)
            return blobs_has_room(blobs, size, p);
    }
    *p = problem;
    return false;
}

/* --- spools --------------------------------------------------------------- */

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
    if (!spool && fd >= 0)
        close(fd);
    if (!spool)
        return api_problem_no_memory(p);
    spool->blobs = blobs;
    spool->digest = digest_new();
    spool->fd = fd < 0 ? open_named(spool) : fd;
    bool ok = (spool->fd >= 0 || blobs_fail(p, "making a temporary file")) &&
              (spool->digest || api_problem_no_memory(p));
    if (!ok)
        spool_discard(&spool);
    else
        *ret = spool;
    return ok;
}

bool
spool_open(struct blobs *blobs, struct spool **ret, struct api_problem *p)
{
    return open_spool(blobs, -1, ret, p);
}

bool
spool_open_lent(struct blobs *blobs, struct spool **ret, struct api_problem *p)
{
    int fd = openat(blobs->tmp, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    return open_spool(blobs, fd, ret, p);
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
    if (most && counted(blobs) + blobs->spooled + len > most &&
        !blobs_check_room(spool->blobs, len, p))
        return false;
    if (!digest_update(spool->digest, data, len))
        return api_problem_no_memory(p);
    if (!write_all(spool->fd, data, len, p))
        return false;
    add_size(spool, len);
    return true;
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

/* The worker may still have the file that it wrote. So the spool becomes a copy, and the
   digest is that of the bytes that were copied. */
bool
spool_finish_file(struct spool *spool, struct api_problem *p)
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
    bool ok = can_copy(spool, written, p) && copy_file(spool, written, p);
    close(written);
    return ok && spool_finish(spool, p);
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

bool
spools_sync(struct spool **const *spools, size_t n, struct api_problem *p)
{
    int fds[SYNC_MOST];
    if (n && (*spools[0])->blobs->bucket)
        return true; /* the bucket has them, and a cache may lose them */
    for (size_t at = 0; at < n; at += SYNC_MOST) {
        size_t some = n - at < SYNC_MOST ? n - at : SYNC_MOST;
        for (size_t i = 0; i < some; i++)
            fds[i] = (*spools[at + i])->fd;
        if ((errno = sync_together(fdatasync, fds, some)))
            return blobs_fail(p, "writing a temporary file");
    }
    return true;
}

bool
spool_sync(struct spool *spool, struct api_problem *p)
{
    struct spool **const one = &spool;
    return spools_sync(&one, 1, p);
}

/* Opens the folder that holds a blob. */
static int
open_folder_of(struct blobs *blobs, const char *id)
{
    char folder[4];
    snprintf(folder, sizeof folder, "%.2s", blob_hex(id));
    return openat(blobs->dir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Makes the names of up to SYNC_MOST blobs durable. */
static bool
sync_folders(struct blobs *blobs, struct spool **const *spools, size_t n)
{
    int fds[SYNC_MOST];
    size_t opened = 0;
    int error = 0;
    while (opened < n && !error) {
        fds[opened] = open_folder_of(blobs, (*spools[opened])->id);
        if (fds[opened] < 0)
            error = errno;
        else
            opened++;
    }
    if (!error)
        error = sync_together(fsync, fds, opened);
    while (opened)
        close(fds[--opened]);
    errno = error;
    return !error;
}

bool
blob_sync_name(struct blobs *blobs, const char *id, struct api_problem *p)
{
    int fd = open_folder_of(blobs, id);
    bool ok = (fd >= 0 && fsync(fd) == 0) || blobs_fail(p, "storing a file");
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Renames a finished spool to its blob's name, unless the blob exists and was verified.
   A damaged file of that name is forgotten. */
static bool
name_blob(struct spool *s)
{
    struct blobs *blobs = s->blobs;
    char name[NAME_SIZE];
    bool ok = true;
    blob_name(s->id, name);
    lock_acquire(&blobs->naming);
    uint64_t before = size_of(blobs->dir, name);
    if (!before || before != s->size || s->replaces ||
        !blobs_is_verified(blobs, s->id)) {
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
    for (size_t i = 0; i < n; i++)
        if (!name_blob(*spools[i]))
            return blobs_fail(p, "storing a file");
    for (size_t at = 0; at < n && !(*spools[0])->blobs->bucket; at += SYNC_MOST)
        if (!sync_folders((*spools[at])->blobs, spools + at,
                          n - at < SYNC_MOST ? n - at : SYNC_MOST))
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
    (*spool)->blobs->spooled -= (*spool)->size;
    if ((*spool)->fd >= 0) {
        if ((*spool)->name[0])
            unlinkat((*spool)->blobs->tmp, (*spool)->name, 0);
        close((*spool)->fd);
    }
    digest_free(&(*spool)->digest);
    free(*spool);
    *spool = NULL;
}
