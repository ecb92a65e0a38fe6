/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local folders of all tenants as a cache of a bucket. A file is fetched when somebody
 * opens it, and verified before it has a name. Each open descriptor of a file, also one in a
 * worker, holds a shared lock of it (flock), so that no file that is in use is removed.
 *
 * Any thread may call. A caller holds no lock of the library.
 */
#ifndef QDQD_LIBRARY_BUCKET_CACHE_H
#define QDQD_LIBRARY_BUCKET_CACHE_H

#include "library/blob.h"
#include "library/bucket/bucket.h"

struct cache;

/* Returns NULL when out of memory. `max_bytes` is borrowed and may change. */
struct cache *cache_new(const _Atomic int64_t *max_bytes);
void cache_free(struct cache **cache);

/* Makes a tenant's folder a part of the bucket's cache. Borrows both; `tenant` is copied. Must
   be called before other threads use the blobs. */
bool cache_join(struct blobs *blobs, const struct bucket *bucket, const char *tenant,
                struct api_problem *p);
void cache_leave(struct blobs *blobs);

/* Fetches a blob that has no file, and opens it. NOT_FOUND, DAMAGED, UNAVAILABLE, DISK_FULL. */
bool cache_fetch(struct blobs *blobs, const char *id, int *ret, struct api_problem *p);
/* Notes that an open file of the cache is used now. */
void cache_note_use(int fd);
/* Counts a file that was opened without the bucket. */
void cache_count_hit(struct cache *cache);

/* Removes files that are not in use, those that were used least recently first, until the
   cache has at most its bytes and `bytes` less than it has now. Returns how many went. */
uint64_t cache_evict(struct cache *cache, uint64_t bytes);
/* Returns the bytes of all folders. */
uint64_t cache_used(struct cache *cache);

struct cache_figures {
    int64_t used, most; /* bytes of all folders, and how many they may have */
    int64_t hits,
        misses;      /* files that were opened: those that were there, and others */
    int64_t evicted; /* bytes that were removed */
};
void cache_figures(struct cache *cache, struct cache_figures *ret);

#endif
