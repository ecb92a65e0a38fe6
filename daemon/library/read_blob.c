/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blobs are hashed before they are believed: each when it is read first after a start,
 * and all of them, slowly, in the background (scrub.c). A blob whose bytes do not hash to its
 * name is set aside in STATE/damaged, and the next upload of the right bytes takes its place.
 */
#include "config.h"
#include "library/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (64u << 10)

void
blobs_on_damaged(struct blobs *blobs, void (*fn)(void *arg, const char *id), void *arg)
{
    blobs->on_damaged = fn;
    blobs->damaged_arg = arg;
}

void
blobs_health(struct blobs *blobs, struct blobs_health *ret)
{
    *ret = (struct blobs_health){blobs->n_damaged, blobs->scrubbed};
}

/* --- setting aside -------------------------------------------------------- */

bool
blobs_is_set_aside(struct blobs *blobs, const char *id)
{
    return faccessat(blobs->damaged, blob_hex(id), F_OK, 0) == 0;
}

bool
blobs_fail_damaged(const char *id, struct api_problem *p)
{
    return api_problem_set(p, API_DAMAGED, QDQ_AT_NOTHING, NULL,
                           "the stored bytes of %s are damaged; store them again", id);
}

/* Takes the name away from the open file, unless another one has it by now. */
static void
set_aside(struct blobs *blobs, const char *id, int fd)
{
    char name[NAME_SIZE];
    struct stat opened, named;
    bool moved = false;
    blob_name(id, name);
    lock_acquire(&blobs->naming);
    if (fstat(fd, &opened) == 0 &&
        fstatat(blobs->dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        opened.st_ino == named.st_ino)
        moved = blobs->ops->set_aside(blobs, id, name);
    if (moved)
        blobs->used -= (uint64_t)named.st_size;
    lock_release(&blobs->naming);
    if (moved)
        blobs->ops->report_damaged(blobs, id, (uint64_t)opened.st_size);
}

bool
blobs_judge_file(struct blobs *blobs, const char *id, int fd, bool right,
                 struct api_problem *p)
{
    if (!right) {
        set_aside(blobs, id, fd);
        return blobs_fail_damaged(id, p);
    }
    lock_acquire(&blobs->naming);
    blobs_set_verified(blobs, id, fd);
    lock_release(&blobs->naming);
    return true;
}

/* --- reading -------------------------------------------------------------- */

int
blobs_open_file(struct blobs *blobs, const char *id)
{
    char name[NAME_SIZE];
    blob_name(id, name);
    int fd = openat(blobs->dir, name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && blobs->ops->note_use)
        blobs->ops->note_use(blobs, fd);
    return fd;
}

bool
blob_open(struct blobs *blobs, const char *id, int *ret, struct api_problem *p)
{
    if (!digest_is_id(id))
        return api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                               "there is no blob of this id");
    int fd = blobs_open_file(blobs, id);
    if (fd < 0)
        return errno == ENOENT ? blobs->ops->open_absent(blobs, id, ret, p)
                               : blobs_fail(p, "opening a blob");
    *ret = fd;
    return true;
}

ssize_t
blobs_hash_chunk(int fd, uint64_t at, char *chunk, size_t size, struct digest *digest)
{
    ssize_t n;
    do
        n = pread(fd, chunk, size, (off_t)at);
    while (n < 0 && errno == EINTR);
    return n > 0 && !digest_update(digest, chunk, (size_t)n) ? -1 : n;
}

/* Hashes a whole file. *ret_right is whether its bytes are those of `id`. */
static bool
hash_file(int fd, const char *id, bool *ret_right, struct api_problem *p)
{
    char found[DIGEST_SIZE] = "", *chunk = malloc(CHUNK);
    struct digest *digest = digest_new();
    bool ok = (chunk && digest) || api_problem_no_memory(p);
    ssize_t n = 1;
    for (uint64_t at = 0; ok && n > 0; at += n > 0 ? (uint64_t)n : 0)
        if ((n = blobs_hash_chunk(fd, at, chunk, CHUNK, digest)) < 0)
            ok = blobs_fail(p, "reading a blob");
    ok = ok && (digest_finish(digest, found) || api_problem_no_memory(p));
    *ret_right = ok && !strcmp(found, id);
    digest_free(&digest);
    free(chunk);
    return ok;
}

/* Opens a blob and checks its bytes, or only its size where `hash` is false. */
static bool
open_checked(struct blobs *blobs, const char *id, bool hash, uint64_t size, int *ret,
             struct api_problem *p)
{
    struct stat st;
    bool right = false;
    int fd;
    if (!blob_open(blobs, id, &fd, p))
        return false;
    bool ok = hash || fstat(fd, &st) == 0 || blobs_fail(p, "looking at a blob");
    if (ok && hash)
        ok =
            blobs_is_verified_file(blobs, id, fd) ||
            (hash_file(fd, id, &right, p) && blobs_judge_file(blobs, id, fd, right, p));
    else if (ok && (uint64_t)st.st_size != size)
        ok = blobs_judge_file(blobs, id, fd, false, p);
    if (ok)
        *ret = fd;
    else
        close(fd);
    return ok;
}

/* Does so once more when a file that had other bytes was not set aside, because that of a cache was
   removed, or somebody has stored the right bytes: by then it is fetched again, or replaced. */
static bool
read_checked(struct blobs *blobs, const char *id, bool hash, uint64_t size, int *ret,
             struct api_problem *p)
{
    struct api_problem problem = {0};
    if (open_checked(blobs, id, hash, size, ret, &problem))
        return true;
    if (problem.code == API_DAMAGED && !blobs_is_set_aside(blobs, id))
        return open_checked(blobs, id, hash, size, ret, p);
    if (p && !p->set)
        *p = problem;
    return false;
}

bool
blob_read(struct blobs *blobs, const char *id, int *ret, struct api_problem *p)
{
    return read_checked(blobs, id, true, 0, ret, p);
}

bool
blob_read_part(struct blobs *blobs, const char *id, uint64_t size, int *ret,
               struct api_problem *p)
{
    return read_checked(blobs, id, false, size, ret, p);
}
