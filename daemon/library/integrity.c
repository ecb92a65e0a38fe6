/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blobs are hashed before they are believed: each when it is read first after a start,
 * and all of them, slowly, in the background. A blob whose bytes do not hash to its name
 * is set aside in STATE/damaged, and the next upload of the right bytes takes its place.
 */
#include "config.h"
#include "base/log.h"
#include "library/cache.h"
#include "library/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOTS \
    16384u /* of the table of verified files; a file that finds its slot taken
                        is hashed again */
#define CHUNK (64u << 10)

/* --- the table of verified files ------------------------------------------ */

static uint64_t
key_of(const char *id)
{
    char text[17];
    snprintf(text, sizeof text, "%.16s", blob_hex(id));
    return strtoull(text, NULL, 16) | 1;
}

static struct verified
describe(const char *id, const struct stat *st)
{
    return (struct verified){.key = key_of(id),
                             .inode = st->st_ino,
                             .changed = (int64_t)st->st_mtim.tv_sec * 1000000000 +
                                        st->st_mtim.tv_nsec};
}

static struct verified *
slot_of(struct blobs *blobs, const char *id)
{
    lock_assert_held(&blobs->naming);
    return &blobs->verified[(key_of(id) >> 32) % SLOTS];
}

static bool
is_in_table(struct blobs *blobs, const char *id, const struct stat *st)
{
    const struct verified *slot = slot_of(blobs, id), now = describe(id, st);
    return slot->key == now.key && slot->inode == now.inode &&
           slot->changed == now.changed;
}

/* Looks at the file of this name and returns whether it is in the table. */
static bool
is_named_in_table(struct blobs *blobs, const char *id, struct stat *ret)
{
    char name[NAME_SIZE];
    *ret = (struct stat){0};
    blob_name(id, name);
    return fstatat(blobs->dir, name, ret, AT_SYMLINK_NOFOLLOW) == 0 &&
           is_in_table(blobs, id, ret);
}

bool
blobs_is_verified(struct blobs *blobs, const char *id, uint64_t *ret_size)
{
    lock_assert_held(&blobs->naming);
    struct stat st;
    bool known = is_named_in_table(blobs, id, &st);
    *ret_size = (uint64_t)st.st_size;
    return known;
}

bool
blob_is_durable(struct blobs *blobs, const char *id)
{
    struct stat st;
    lock_acquire(&blobs->naming);
    bool durable = is_named_in_table(blobs, id, &st) && slot_of(blobs, id)->durable;
    lock_release(&blobs->naming);
    return durable;
}

void
blobs_set_verified(struct blobs *blobs, const char *id, int fd)
{
    lock_assert_held(&blobs->naming);
    struct stat st;
    if (fstat(fd, &st) == 0 && !is_in_table(blobs, id, &st))
        *slot_of(blobs, id) = describe(id, &st);
}

void
blobs_set_durable(struct blobs *blobs, const char *id, int fd)
{
    struct stat st;
    lock_acquire(&blobs->naming);
    if (fstat(fd, &st) == 0 && is_in_table(blobs, id, &st))
        slot_of(blobs, id)->durable = true;
    lock_release(&blobs->naming);
}

bool
blobs_integrity_open(struct blobs *blobs)
{
    blobs->scrub.fd = -1;
    blobs->verified = calloc(SLOTS, sizeof *blobs->verified);
    return blobs->verified != NULL;
}

static void
stop_scrub(struct scrub *scrub)
{
    if (scrub->fd >= 0)
        close(scrub->fd);
    scrub->fd = -1;
    digest_free(&scrub->digest);
}

void
blobs_integrity_close(struct blobs *blobs)
{
    stop_scrub(&blobs->scrub);
    free(blobs->verified);
}

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

static bool
say_damaged(const char *id, struct api_problem *p)
{
    return api_problem_set(p, API_DAMAGED, QDQ_AT_NOTHING, NULL,
                           "the stored bytes of %s are damaged; store them again", id);
}

/* Moves the open file out of the blobs, unless another one has its name by now. A file of a
   cache is removed, because the bucket has its bytes. */
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
        moved = blobs->bucket
                    ? unlinkat(blobs->dir, name, 0) == 0
                    : renameat(blobs->dir, name, blobs->damaged, blob_hex(id)) == 0;
    if (moved)
        blobs->used -= (uint64_t)named.st_size;
    lock_release(&blobs->naming);
    if (moved && blobs->bucket)
        log_error("cache_damaged", "id=%s size=%llu", id,
                  (unsigned long long)opened.st_size);
    if (!moved || blobs->bucket)
        return;
    blobs->n_damaged++;
    log_error("blob_damaged", "id=%s size=%llu moved_to=damaged/%s", id,
              (unsigned long long)opened.st_size, blob_hex(id));
    if (blobs->on_damaged)
        blobs->on_damaged(blobs->damaged_arg, id);
}

/* --- reading -------------------------------------------------------------- */

bool
blob_open(struct blobs *blobs, const char *id, int *ret, struct api_problem *p)
{
    char name[NAME_SIZE];
    if (!digest_is_id(id))
        return api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                               "there is no blob of this id");
    blob_name(id, name);
    int fd = openat(blobs->dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && blobs->bucket)
        return cache_fetch(blobs, id, ret, p);
    if (fd < 0 && errno == ENOENT)
        return blobs_is_set_aside(blobs, id)
                   ? say_damaged(id, p)
                   : api_problem_set(p, API_NOT_FOUND, QDQ_AT_NOTHING, NULL,
                                     "there is no blob %s", id);
    if (fd < 0)
        return blobs_fail(p, "opening a blob");
    if (blobs->bucket) {
        cache_note_use(fd);
        cache_count_hit(blobs->bucket->cache);
    }
    *ret = fd;
    return true;
}

/* Reads the next part of a file into a digest. Returns the number of bytes, 0 at the
   end, or -1. */
static ssize_t
hash_chunk(int fd, uint64_t at, char *chunk, size_t size, struct digest *digest)
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
        if ((n = hash_chunk(fd, at, chunk, CHUNK, digest)) < 0)
            ok = blobs_fail(p, "reading a blob");
    ok = ok && (digest_finish(digest, found) || api_problem_no_memory(p));
    *ret_right = ok && !strcmp(found, id);
    digest_free(&digest);
    free(chunk);
    return ok;
}

/* Remembers a right file, and sets a wrong one aside. */
static bool
conclude(struct blobs *blobs, const char *id, int fd, bool right, struct api_problem *p)
{
    if (!right) {
        set_aside(blobs, id, fd);
        return say_damaged(id, p);
    }
    lock_acquire(&blobs->naming);
    blobs_set_verified(blobs, id, fd);
    lock_release(&blobs->naming);
    return true;
}

static bool
is_known(struct blobs *blobs, const char *id, int fd)
{
    struct stat st;
    lock_acquire(&blobs->naming);
    bool known = fstat(fd, &st) == 0 && is_in_table(blobs, id, &st);
    lock_release(&blobs->naming);
    return known;
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
        ok = is_known(blobs, id, fd) ||
             (hash_file(fd, id, &right, p) && conclude(blobs, id, fd, right, p));
    else if (ok && (uint64_t)st.st_size != size)
        ok = conclude(blobs, id, fd, false, p);
    if (ok)
        *ret = fd;
    else
        close(fd);
    return ok;
}

/* Does so once more when the file was that of a cache and had other bytes: by then it is
   removed, and is fetched again. */
static bool
read_checked(struct blobs *blobs, const char *id, bool hash, uint64_t size, int *ret,
             struct api_problem *p)
{
    struct api_problem problem = {0};
    if (open_checked(blobs, id, hash, size, ret, &problem))
        return true;
    if (blobs->bucket && problem.code == API_DAMAGED && !blobs_is_set_aside(blobs, id))
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

/* --- the check of all blobs ----------------------------------------------- */

/* Finds the first name of a folder that is after `name`; "" when there is none. */
static bool
next_in_folder(struct blobs *blobs, unsigned folder, const char *name,
               char ret[NAME_SIZE])
{
    char path[4], found[NAME_SIZE];
    snprintf(path, sizeof path, "%02x", folder);
    DIR *stream = blobs_open_stream(blobs->dir, path);
    ret[0] = '\0';
    if (!stream)
        return false;
    for (struct dirent *entry; (entry = readdir(stream));) {
        if (strlen(entry->d_name) != DIGEST_SIZE - 1 - strlen("sha256:"))
            continue;
        snprintf(found, sizeof found, "%s/%.80s", path, entry->d_name);
        if (strcmp(found, name) > 0 && (!*ret || strcmp(found, ret) < 0))
            snprintf(ret, NAME_SIZE, "%s", found);
    }
    closedir(stream);
    return true;
}

/* Opens the blob after the last one; none is open on return where all were read. */
static bool
open_next(struct blobs *blobs, struct scrub *scrub, struct api_problem *p)
{
    char next[NAME_SIZE] = "";
    unsigned folder = (unsigned)strtoul(scrub->name, NULL, 16);
    for (; folder < 256 && !*next; folder++)
        if (!next_in_folder(blobs, folder, scrub->name, next))
            return blobs_fail(p, "reading the blobs' folder");
    snprintf(scrub->name, sizeof scrub->name, "%s", next);
    scrub->at = 0;
    if (!*next)
        return true;
    scrub->digest = digest_new();
    if (!scrub->digest)
        return api_problem_no_memory(p);
    scrub->fd = openat(blobs->dir, next, O_RDONLY | O_CLOEXEC);
    if (scrub->fd >= 0 || errno == ENOENT)
        return true; /* one that was removed meanwhile is passed over */
    return blobs_fail(p, "opening a blob");
}

static bool
finish_blob(struct blobs *blobs, struct scrub *scrub, struct api_problem *p)
{
    char id[NAME_SIZE + 8], found[DIGEST_SIZE];
    struct api_problem told = {0};
    snprintf(id, sizeof id, "sha256:%s", scrub->name + 3);
    bool ok = digest_finish(scrub->digest, found) || api_problem_no_memory(p);
    if (ok)
        (void)conclude(blobs, id, scrub->fd, !strcmp(id, found), &told);
    stop_scrub(scrub);
    return ok;
}

bool
blobs_scrub(struct blobs *blobs, uint64_t bytes, bool *ret_done, struct api_problem *p)
{
    struct scrub *scrub = &blobs->scrub;
    char *chunk = malloc(CHUNK);
    bool ok = chunk || api_problem_no_memory(p);
    *ret_done = false;
    for (uint64_t left = bytes; ok && left && !*ret_done;) {
        if (scrub->fd < 0) {
            stop_scrub(scrub);
            ok = open_next(blobs, scrub, p);
            *ret_done = ok && !*scrub->name;
            left--;
            continue;
        }
        size_t size = left < CHUNK ? (size_t)left : CHUNK;
        ssize_t n = hash_chunk(scrub->fd, scrub->at, chunk, size, scrub->digest);
        if (n < 0)
            ok = blobs_fail(p, "reading a blob");
        else if (n == 0)
            ok = finish_blob(blobs, scrub, p);
        scrub->at += n > 0 ? (uint64_t)n : 0;
        blobs->scrubbed += n > 0 ? (uint64_t)n : 0;
        left -= n > 0 ? (uint64_t)n : 0;
    }
    if (!ok)
        stop_scrub(scrub);
    free(chunk);
    return ok;
}
