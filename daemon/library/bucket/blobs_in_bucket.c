/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs that are kept in a bucket, of which the files of the state folder are a cache. */
#include "config.h"
#include "base/log.h"
#include "library/bucket/cache.h"
#include "library/inner.h"

#include <unistd.h>

static void
note_use(struct blobs *blobs, int fd)
{
    cache_note_use(fd);
    cache_count_hit(blobs->bucket->cache);
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
    .set_aside = set_aside,
    .report_damaged = report_damaged,
    .free_disk = free_disk,
    .close = cache_leave,
    .keep_incoming = keep_incoming,
    .has_part = has_part,
    .counts_rows = counts_rows,
    .tidy = tidy,
    .sweep = bucket_objects_sweep,
};
