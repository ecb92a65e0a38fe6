/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs that are kept in a bucket, of which the files of the state folder are a cache. */
#include "config.h"
#include "base/log.h"
#include "library/bucket/cache.h"
#include "library/bucket/objects.h"
#include "library/inner.h"
#include "library/sweep/bucket_objects.h"

#include <unistd.h>

static void
note_use(struct blobs *blobs, int fd)
{
    cache_note_use(fd);
    cache_count_hit(blobs->bucket->cache);
}

/* The object may be gone, and the file of a cache says nothing about it. */
static bool
is_kept(struct blobs *blobs, const char *id, uint64_t size)
{
    (void)blobs;
    (void)id;
    (void)size;
    return false;
}

/* The bucket has the right bytes. */
static bool
set_aside(struct blobs *blobs, const char *id, const char *name)
{
    (void)id;
    return unlinkat(blobs->dir, name, 0) == 0;
}

static void
report_damaged(struct blobs *blobs, const char *id, uint64_t size)
{
    (void)blobs;
    log_error("cache_damaged", "id=%s size=%llu", id, (unsigned long long)size);
}

/* A cache may lose its files. */
static bool
sync_replacement(int fd)
{
    (void)fd;
    return true;
}

static bool
sync_blobs(struct blobs *blobs, const char *const *ids, size_t n)
{
    (void)blobs;
    (void)ids;
    (void)n;
    return true;
}

/* Jobs stay where the disk is short: their bytes are elsewhere. */
static bool
free_disk(struct blobs *blobs, uint64_t size)
{
    struct api_problem ignored = {0};
    uint64_t shortage = 0;
    if (!blobs_find_shortage(blobs, size, &shortage, &ignored))
        return true;
    (void)cache_evict(blobs->bucket->cache, shortage);
    return !blobs_find_shortage(blobs, size, &shortage, &ignored) || !shortage;
}

static bool
evicts_later(const struct blobs *blobs)
{
    (void)blobs;
    return false;
}

static bool
has_blobs(struct blobs *blobs)
{
    (void)blobs;
    return false;
}

static bool
find_leftovers(struct library *library, struct api_problem *p)
{
    (void)library;
    (void)p;
    return true;
}

static bool
keep_incoming(struct library *library, struct incoming *incoming, struct api_problem *p)
{
    for (size_t i = 0; i < incoming->n; i++)
        if (!object_upload(library->blobs, *incoming->spools[i], p))
            return false;
    return true;
}

/* A bucket is not asked while the library is locked: a part that is not new has a row. */
static bool
has_part(struct library *library, const char *id)
{
    return store_needs_blob(library->store, id);
}

static bool
counts_rows(const struct library *library)
{
    (void)library;
    return true;
}

static bool
tidy(struct library *library, int64_t grace, struct api_problem *p)
{
    (void)grace;
    (void)p;
    (void)cache_evict(library->blobs->bucket->cache, 0);
    return true;
}

const struct blob_store_ops blobs_in_bucket = {
    .open_absent = cache_fetch,
    .note_use = note_use,
    .is_kept = is_kept,
    .set_aside = set_aside,
    .report_damaged = report_damaged,
    .sync_replacement = sync_replacement,
    .sync = sync_blobs,
    .free_disk = free_disk,
    .close = cache_leave,
    .has_blobs = has_blobs,
    .find_leftovers = find_leftovers,
    .keep_incoming = keep_incoming,
    .has_part = has_part,
    .counts_rows = counts_rows,
    .evicts_later = evicts_later,
    .tidy = tidy,
    .sweep = bucket_objects_sweep,
};
