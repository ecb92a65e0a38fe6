/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removal of blobs in a bucket that no row names. Another node may store the same bytes at
 * any moment: it finds the object, stores nothing, and adds its row a little later. So a
 * removal has two steps:
 *
 *   1. An object without a row gets a mark, an object of its own.
 *   2. When the mark is older than the grace period, and there is still no row, the removal
 *      is announced by another object. If the mark is still the same then, the object is
 *      removed, then the mark, and then the announcement.
 *
 * A daemon that stores a blob whose object is there first removes its mark, if there is one, and
 * then waits until no removal of it is announced; after that it stores the blob again if it is gone.
 * Without a mark it does the same: the mark may have gone with the object just now, or with an
 * upload that did not want to wait. However long the requests of a removal take, either the
 * remover finds no mark, or it is waited for. An announcement that is older than STALE_S is of a
 * daemon that died.
 * An object that is newer than its mark was stored after the removal: only the mark goes.
 */
#include "config.h"
#include "base/clock.h"
#include "base/log.h"
#include "library/cache.h"
#include "library/inner.h"
#include "library/library_inner.h"
#include "library/sweep.h"
#include "store/leader.h"
#include "api/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define STALE_S 60    /* no removal takes as long, with all attempts of its requests */
#define PATIENCE_S 20 /* that an upload waits for the end of a removal */
#define LOOK_MS 100
#define MARKS "marks/"
#define RECORD "record/"
#define MOST_BETWEEN_MS (INT64_C(3600) * 1000)
#define PARTS_OF_GRACE 8

/* The bucket's time of one object. */
struct moment {
    const char *key;
    int64_t modified; /* 0: there is no such object */
};

static void
note_moment(void *arg, const struct bucket_object *object)
{
    struct moment *moment = arg;
    if (strcmp(object->key, moment->key) == 0)
        moment->modified = object->modified;
}

/* Finds when an object was stored; 0 when there is none. */
static bool
find_moment(const struct bucket *bucket, const char *key, int64_t *ret,
            int64_t *ret_now, struct api_problem *p)
{
    struct moment moment = {key, 0};
    char token[BUCKET_TOKEN] = "";
    if (!bucket->list(bucket->arg, key, token, note_moment, &moment, ret_now, p))
        return false;
    *ret = moment.modified;
    return true;
}

/* Waits until no removal of the blob is announced. UNAVAILABLE when that takes too long. */
static bool
await_removal(struct blobs *blobs, const char *id, struct api_problem *p)
{
    const struct timespec pause = {0, LOOK_MS * 1000000};
    const struct bucket *bucket = blobs->bucket;
    int64_t began = clock_steady_ms(), since, now;
    char removal[BUCKET_KEY];
    cache_removal_key(blobs, id, removal);
    for (;;) {
        if (!find_moment(bucket, removal, &since, &now, p))
            return false;
        if (!since)
            return true;
        if (now - since > STALE_S)
            return bucket->remove(bucket->arg, removal, p);
        if (clock_steady_ms() - began > PATIENCE_S * 1000)
            return api_problem_set(p, API_UNAVAILABLE, QDQ_AT_NOTHING, NULL,
                                   "an earlier copy of %s is being removed from the "
                                   "bucket",
                                   id);
        nanosleep(&pause, NULL);
    }
}

bool
cache_keep(struct blobs *blobs, const char *id, int fd, struct api_problem *p)
{
    lock_assert_none(LOCK_LIBRARY);
    const struct bucket *bucket = blobs->bucket;
    char key[BUCKET_KEY], mark[BUCKET_KEY];
    bool marked, there, was_there;
    cache_key(blobs, id, key);
    cache_mark_key(blobs, id, mark);
    return bucket->find(bucket->arg, mark, &marked, p) &&
           (!marked || bucket->remove(bucket->arg, mark, p)) &&
           await_removal(blobs, id, p) && bucket->find(bucket->arg, key, &there, p) &&
           (there || bucket->put(bucket->arg, key, fd, id, &was_there, p));
}

/* --- the sweep ------------------------------------------------------------ */

/* A page of the list. Its objects are looked at after the list was read. */
struct page {
    struct library *library;
    size_t n;
    struct listed {
        char id[DIGEST_SIZE];
        bool is_mark;
        int64_t modified;
    } * items;
    bool failed;
};

static void
add_listed(void *arg, const struct bucket_object *object)
{
    struct page *page = arg;
    size_t len = strlen(page->library->blobs->tenant);
    const char *name = object->key + len + 1;
    if (strlen(object->key) <= len)
        return;
    bool is_mark = strncmp(name, MARKS, strlen(MARKS)) == 0;
    struct listed one = {.is_mark = is_mark, .modified = object->modified};
    snprintf(one.id, sizeof one.id, "sha256:%.64s",
             name + (is_mark ? strlen(MARKS) : 0));
    if (!digest_is_id(one.id))
        return;
    struct listed *items = api_grow(page->items, page->n, 1, sizeof *items);
    page->failed = page->failed || !items;
    if (!items)
        return;
    page->items = items;
    page->items[page->n++] = one;
}

/* The records that a tenant's prefix belongs to. */
struct owner {
    char key[BUCKET_KEY]; /* of this record */
    size_t n, own;        /* all; those of this record */
};

static void
note_owner(void *arg, const struct bucket_object *object)
{
    struct owner *owner = arg;
    owner->n++;
    owner->own += strcmp(object->key, owner->key) == 0;
}

/* Returns whether a row names the blob, or a thread is publishing it. */
static bool
is_needed(struct library *library, const char *id)
{
    lock_acquire(&library->lock);
    bool needed =
        library_is_incoming(library, id) || store_needs_blob(library->store, id);
    lock_release(&library->lock);
    return needed;
}

/* Stores an object without bytes. */
static bool
put_empty(struct library *library, const char *key, bool *ret_was_there,
          struct api_problem *p)
{
    const struct bucket *bucket = library->bucket;
    char digest[DIGEST_SIZE];
    int fd = memfd_create("mark", MFD_CLOEXEC);
    if (fd < 0)
        return blobs_fail(p, "making a temporary file");
    bool ok = (digest_of("", 0, digest) || api_problem_no_memory(p)) &&
              bucket->put(bucket->arg, key, fd, digest, ret_was_there, p);
    close(fd);
    return ok;
}

static bool
put_mark(struct library *library, const char *id, struct api_problem *p)
{
    char mark[BUCKET_KEY];
    bool was_there = false;
    cache_mark_key(library->blobs, id, mark);
    bool ok = put_empty(library, mark, &was_there, p);
    if (ok && !was_there)
        log_info("leftover_marked", "id=%s tenant=%s", id, library_tenant(library));
    return ok;
}

/* Announces a removal. *ret_ours is false where another node has announced one, or had one that
   failed: a stale announcement goes, and the next sweep begins anew. Where the record is not
   shared, an announcement that is there was left by a daemon that died. */
static bool
announce(struct library *library, const char *removal, bool *ret_ours,
         struct api_problem *p)
{
    const struct bucket *bucket = library->bucket;
    int64_t since, now;
    bool was_there = false;
    *ret_ours = false;
    if (!put_empty(library, removal, &was_there, p))
        return false;
    *ret_ours = !was_there || !store_is_shared(library->store);
    if (*ret_ours)
        return true;
    return find_moment(bucket, removal, &since, &now, p) &&
           (now - since <= STALE_S || bucket->remove(bucket->arg, removal, p));
}

/* Returns whether the announcement of a removal that began then may soon count as stale: the
   daemon has stood still, or the bucket is slow. */
static bool
is_late(int64_t began)
{
    return clock_steady_ms() - began > STALE_S * 1000 / 4;
}

/* Removes the object of a mark, if there is still this mark, unless the blob is needed by now;
   then the mark. The removal is announced. */
static bool
remove_announced(struct library *library, const struct listed *one,
                 struct api_problem *p)
{
    const struct bucket *bucket = library->bucket;
    char key[BUCKET_KEY], mark[BUCKET_KEY];
    int64_t began = clock_steady_ms(), stored, marked, now;
    cache_key(library->blobs, one->id, key);
    cache_mark_key(library->blobs, one->id, mark);
    if (!find_moment(bucket, key, &stored, &now, p) ||
        !find_moment(bucket, mark, &marked, &now, p))
        return false;
    if (marked != one->modified || is_late(began))
        return true;
    if (stored && stored <= marked && !is_needed(library, one->id)) {
        if (!store_still_leads(library->store, p))
            return false;
        if (is_late(began))
            return true;
        if (!bucket->remove(bucket->arg, key, p))
            return false;
        blob_remove(library->blobs, one->id);
        log_info("leftover_removed", "id=%s tenant=%s", one->id,
                 library_tenant(library));
    }
    return bucket->remove(bucket->arg, mark, p);
}

/* Removes the object of a mark whose time has come. The announcement of a removal that failed
   stays, because the bucket may have done it nevertheless, or may do it still. */
static bool
remove_marked(struct library *library, const struct listed *one, struct api_problem *p)
{
    char removal[BUCKET_KEY];
    bool ours;
    cache_removal_key(library->blobs, one->id, removal);
    if (!announce(library, removal, &ours, p))
        return false;
    return !ours || (remove_announced(library, one, p) &&
                     library->bucket->remove(library->bucket->arg, removal, p));
}

static bool
sweep_one(struct library *library, const struct listed *one, int64_t now, int64_t grace,
          struct api_problem *p)
{
    char mark[BUCKET_KEY];
    int64_t age = (now - one->modified) * 1000;
    bool needed = is_needed(library, one->id);
    if (!one->is_mark)
        return needed || age < grace / PARTS_OF_GRACE || put_mark(library, one->id, p);
    cache_mark_key(library->blobs, one->id, mark);
    if (needed)
        return library->bucket->remove(library->bucket->arg, mark, p);
    return age < grace || remove_marked(library, one, p);
}

/* Notes which record the blobs of this tenant belong to. Returns false when that is another one,
   whose blobs would have no rows here: then nothing may be removed. */
static bool
owns_prefix(struct library *library, bool *ret_owns, struct api_problem *p)
{
    const struct bucket *bucket = library->bucket;
    struct store_identity identity;
    struct owner owner = {.n = 0};
    char prefix[BUCKET_KEY], token[BUCKET_TOKEN] = "";
    int64_t now;
    *ret_owns = library->owns_prefix;
    if (library->owns_prefix)
        return true;
    if (!store_identify(library->store, &identity, p))
        return false;
    snprintf(prefix, sizeof prefix, "%.100s/" RECORD, library->blobs->tenant);
    snprintf(owner.key, sizeof owner.key, "%.130s%08x", prefix,
             (unsigned)identity.number);
    if (!bucket->list(bucket->arg, prefix, token, note_owner, &owner, &now, p) ||
        (!owner.n && !put_empty(library, owner.key, &(bool){false}, p)))
        return false;
    library->owns_prefix = *ret_owns = owner.n == owner.own;
    if (!*ret_owns)
        log_error("bucket_shared",
                  "tenant=%s detail=\"objects below this prefix belong to another "
                  "database; none is removed\"",
                  library_tenant(library));
    return true;
}

bool
bucket_sweep_page(struct library *library, int64_t grace, bool *ret_more,
                  struct api_problem *p)
{
    const struct bucket *bucket = library->bucket;
    struct page page = {.library = library};
    char prefix[BUCKET_KEY];
    int64_t now = 0;
    *ret_more = false;
    if (!bucket || clock_steady_ms() < library->bucket_at)
        return true;
    int64_t between = grace / PARTS_OF_GRACE;
    bool owns = false;
    snprintf(prefix, sizeof prefix, "%.100s/", library->blobs->tenant);
    bool ok = owns_prefix(library, &owns, p);
    if (ok && !owns) {
        library->bucket_at = clock_steady_ms() + MOST_BETWEEN_MS;
        return true;
    }
    ok = ok &&
         bucket->list(bucket->arg, prefix, library->bucket_token, add_listed, &page,
                      &now, p) &&
         (!page.failed || api_problem_no_memory(p));
    for (size_t i = 0; ok && i < page.n; i++)
        ok = sweep_one(library, &page.items[i], now, grace, p);
    free(page.items);
    if (!ok)
        library->bucket_token[0] = '\0';
    *ret_more = ok && *library->bucket_token;
    if (!*ret_more)
        library->bucket_at =
            clock_steady_ms() + (between < MOST_BETWEEN_MS ? between : MOST_BETWEEN_MS);
    return ok;
}
