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
#include "library/inner.h"
#include "store/leader.h"
#include "api/grow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REMOVAL_S 45 /* since an announcement, until the bucket refuses the removal */
#define RECORD "record/"

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

static bool
put_mark(struct library *library, const char *id, struct api_problem *p)
{
    char mark[BUCKET_KEY];
    bool was_there = false;
    object_mark_key(library->blobs, id, mark);
    bool ok = object_put_empty(library->blobs->bucket, mark, &was_there, p);
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
    return object_put_empty(library->blobs->bucket, removal, &was_there, p) &&
           (was_there ||
            object_find_moment(library->blobs->bucket, removal, ret_since, &now, p));
}

/* Removes an object of a removal that was announced then, unless that is too long ago. */
static bool
remove_in_time(struct library *library, const char *key, int64_t since,
               bool *ret_in_time, struct api_problem *p)
{
    const struct bucket *bucket = library->blobs->bucket;
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
    const struct bucket *bucket = library->blobs->bucket;
    char key[BUCKET_KEY], mark[BUCKET_KEY];
    int64_t stored, marked, now;
    *ret_in_time = true;
    object_key(library->blobs, one->id, key);
    object_mark_key(library->blobs, one->id, mark);
    if (!object_find_moment(bucket, key, &stored, &now, p) ||
        !object_find_moment(bucket, mark, &marked, &now, p))
        return false;
    if (marked != one->modified)
        return true;
    if (stored && stored <= marked && !library_is_needed(library, one->id)) {
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
    object_removal_key(library->blobs, one->id, removal);
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
    object_removal_key(library->blobs, one->id, removal);
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
    bool needed = library_is_needed(library, one->id);
    if (one->what == BLOB)
        return needed || age < grace / PARTS_OF_GRACE || put_mark(library, one->id, p);
    object_mark_key(library->blobs, one->id, mark);
    if (needed)
        return library->blobs->bucket->remove(library->blobs->bucket->arg, mark, p);
    return age < grace || remove_marked(library, one, p);
}

/* Notes which record the blobs of this tenant belong to. Returns false when that is another one,
   whose blobs would have no rows here: then nothing may be removed. */
static bool
owns_prefix(struct library *library, bool *ret_owns, struct api_problem *p)
{
    const struct bucket *bucket = library->blobs->bucket;
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
        (!owner.n &&
         !object_put_empty(library->blobs->bucket, owner.key, &(bool){false}, p)))
        return false;
    library->owns_prefix = *ret_owns = owner.n == owner.own;
    if (!*ret_owns)
        log_error("bucket_shared",
                  "tenant=%s detail=\"objects below this prefix belong to another "
                  "database; none is removed\"",
                  library_tenant(library));
    return true;
}

/* Looks at the next page of the list. *ret_more: there is another one. */
static bool
sweep_page(struct library *library, int64_t grace, bool *ret_more,
           struct api_problem *p)
{
    const struct bucket *bucket = library->blobs->bucket;
    struct page page = {.library = library};
    char prefix[BUCKET_KEY];
    int64_t now = 0;
    snprintf(prefix, sizeof prefix, "%.100s/", library->blobs->tenant);
    bool ok = bucket->list(bucket->arg, prefix, library->bucket_token, add_listed,
                           &page, &now, p) &&
              (!page.failed || api_problem_no_memory(p));
    for (size_t i = 0; ok && i < page.n; i++)
        ok = sweep_one(library, &page.items[i], now, grace, p);
    free(page.items);
    *ret_more = ok && *library->bucket_token;
    return ok;
}

bool
bucket_objects_sweep(struct library *library, int64_t grace, bool *ret_more,
                     struct api_problem *p)
{
    bool owns = false;
    *ret_more = false;
    if (clock_steady_ms() < library->sweep_at)
        return true;
    bool ok = owns_prefix(library, &owns, p);
    if (ok && !owns) {
        library->sweep_at = clock_steady_ms() + MOST_BETWEEN_MS;
        return true;
    }
    ok = ok && sweep_page(library, grace, ret_more, p);
    if (!ok)
        library->bucket_token[0] = '\0';
    if (!*ret_more)
        library->sweep_at = library_next_look(grace);
    return ok;
}
