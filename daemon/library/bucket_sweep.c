/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removal of blobs in a bucket that no row names. Another node may store the same bytes at
 * any moment: it finds the object, stores nothing, and adds its row a little later. So a
 * removal has two steps:
 *
 *   1. An object without a row gets a mark, an object of its own.
 *   2. When the mark is older than the grace period, and there is still no row, the object
 *      is removed, and then the mark.
 *
 * Whoever stores a blob whose object is there removes its mark first. A removal that may be
 * under way by then ends within SETTLE_MS, after which the blob is stored again if it is gone.
 * An object that is newer than its mark was stored after the removal: only the mark goes.
 */
#include "config.h"
#include "base/clock.h"
#include "base/log.h"
#include "library/cache.h"
#include "library/inner.h"
#include "library/library_inner.h"
#include "library/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SETTLE_MS 2000 /* longest time from the last look at a mark to the removal */
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

bool
cache_unmark(struct blobs *blobs, const char *id, int fd, struct api_problem *p)
{
    const struct timespec settle = {SETTLE_MS / 1000, SETTLE_MS % 1000 * 1000000};
    const struct bucket *bucket = blobs->bucket;
    char key[BUCKET_KEY], mark[BUCKET_KEY];
    int64_t marked, now;
    bool was_there;
    cache_key(blobs, id, key);
    cache_mark_key(blobs, id, mark);
    if (!find_moment(bucket, mark, &marked, &now, p) ||
        !bucket->remove(bucket->arg, mark, p))
        return false;
    if (marked && (now - marked) * 1000 < blobs->grace_ms / 2)
        return true; /* nobody removes the object yet, and the mark is gone by then */
    nanosleep(&settle, NULL);
    return bucket->put(bucket->arg, key, fd, id, &was_there, p);
}

/* --- the sweep ------------------------------------------------------------ */

/* A page of the list. Its objects are looked at after the list was read. */
struct page {
    struct library *library;
    size_t n, space;
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
    if (page->n == page->space) {
        size_t space = page->space ? 2 * page->space : 256;
        struct listed *items = realloc(page->items, space * sizeof *items);
        page->failed = page->failed || !items;
        if (!items)
            return;
        page->items = items;
        page->space = space;
    }
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

/* Removes the object of a mark whose time has come, unless it is needed by now. */
static bool
remove_marked(struct library *library, const struct listed *one, struct api_problem *p)
{
    const struct bucket *bucket = library->bucket;
    char key[BUCKET_KEY], mark[BUCKET_KEY];
    int64_t stored, now, began;
    bool marked = false;
    cache_key(library->blobs, one->id, key);
    cache_mark_key(library->blobs, one->id, mark);
    if (!find_moment(bucket, key, &stored, &now, p))
        return false;
    began = clock_steady_ms();
    if (!bucket->find(bucket->arg, mark, &marked, p) || !marked)
        return !p->set;
    if (stored && stored <= one->modified && !is_needed(library, one->id)) {
        if (clock_steady_ms() - began > SETTLE_MS / 2)
            return true; /* too late for this sweep */
        if (!bucket->remove(bucket->arg, key, p))
            return false;
        blob_remove(library->blobs, one->id);
        log_info("leftover_removed", "id=%s tenant=%s", one->id,
                 library_tenant(library));
    }
    return bucket->remove(bucket->arg, mark, p);
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
