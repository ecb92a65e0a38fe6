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
 * remover finds no mark, or it is waited for.
 *
 * An announcement that is older than STALE_S, by the bucket's clock, is of a daemon that died or
 * stands still, and delays nobody. Such a daemon may wake at any moment and go on. Therefore the
 * bucket refuses the removal of an object, and that of its announcement, REMOVAL_S after the
 * announcement was made: the request's signature ends then. So nothing that was stored
 * again when the announcement had become stale can be removed by it. The leader's next sweep removes
 * stale announcements.
 *
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

#define STALE_S 60    /* since an announcement, until it delays nobody any more */
#define REMOVAL_S 45  /* since an announcement, until the bucket refuses the removal */
#define PATIENCE_S 20 /* that an upload waits for the end of a removal */
#define LOOK_MS 100
#define MARKS "marks/"
#define REMOVALS "removals/"
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
        if (!since || now - since > STALE_S)
            return true;
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
        enum { BLOB, MARK, REMOVAL } what;
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
    struct listed one = {.what = BLOB, .modified = object->modified};
    if (strncmp(name, MARKS, strlen(MARKS)) == 0) {
        one.what = MARK;
        name += strlen(MARKS);
    } else if (strncmp(name, REMOVALS, strlen(REMOVALS)) == 0) {
        one.what = REMOVAL;
        name += strlen(REMOVALS);
    }
    snprintf(one.id, sizeof one.id, "sha256:%.64s", name);
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

/* Announces a removal. *ret_since is when, by the bucket's clock; 0: another one is announced, or
   was by a daemon that died. */
static bool
announce(struct library *library, const char *removal, int64_t *ret_since,
         struct api_problem *p)
{
    int64_t now;
    bool was_there = false;
    *ret_since = 0;
    return put_empty(library, removal, &was_there, p) &&
           (was_there || find_moment(library->bucket, removal, ret_since, &now, p));
}

/* Removes an object of a removal that was announced then, unless that is too long ago. */
static bool
remove_in_time(struct library *library, const char *key, int64_t since,
               bool *ret_in_time, struct api_problem *p)
{
    const struct bucket *bucket = library->bucket;
    const struct bucket_while when = {since, REMOVAL_S};
    if (!bucket->remove_by(bucket->arg, key, &when, ret_in_time, p))
        return false;
    if (!*ret_in_time)
        log_info("removal_refused", "key=%s tenant=%s", key, library_tenant(library));
    return true;
}

/* Removes the object of a mark, if there is still this mark, unless the blob is needed by now;
   then the mark. The removal was announced at `since`. *ret_in_time is false where the bucket has
   refused it. */
static bool
remove_announced(struct library *library, const struct listed *one, int64_t since,
                 bool *ret_in_time, struct api_problem *p)
{
    const struct bucket *bucket = library->bucket;
    char key[BUCKET_KEY], mark[BUCKET_KEY];
    int64_t stored, marked, now;
    *ret_in_time = true;
    cache_key(library->blobs, one->id, key);
    cache_mark_key(library->blobs, one->id, mark);
    if (!find_moment(bucket, key, &stored, &now, p) ||
        !find_moment(bucket, mark, &marked, &now, p))
        return false;
    if (marked != one->modified)
        return true;
    if (stored && stored <= marked && !is_needed(library, one->id)) {
        if (!store_still_leads(library->store, p) ||
            !remove_in_time(library, key, since, ret_in_time, p))
            return false;
        if (!*ret_in_time)
            return true;
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
    int64_t since;
    bool in_time;
    cache_removal_key(library->blobs, one->id, removal);
    if (!announce(library, removal, &since, p))
        return false;
    return !since ||
           (remove_announced(library, one, since, &in_time, p) &&
            (!in_time || remove_in_time(library, removal, since, &in_time, p)));
}

/* Removes a stale announcement, as the leader. A request of it that comes late is refused, so that
   it does not remove an announcement that followed. */
static bool
remove_stale(struct library *library, const struct listed *one, int64_t now,
             struct api_problem *p)
{
    char removal[BUCKET_KEY];
    bool in_time;
    cache_removal_key(library->blobs, one->id, removal);
    return now - one->modified <= STALE_S ||
           (store_still_leads(library->store, p) &&
            remove_in_time(library, removal, now, &in_time, p));
}

static bool
sweep_one(struct library *library, const struct listed *one, int64_t now, int64_t grace,
          struct api_problem *p)
{
    char mark[BUCKET_KEY];
    int64_t age = (now - one->modified) * 1000;
    if (one->what == REMOVAL)
        return remove_stale(library, one, now, p);
    bool needed = is_needed(library, one->id);
    if (one->what == BLOB)
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
