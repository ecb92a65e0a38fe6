/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "library/bucket/cache.h"
#include "base/log.h"
#include "library/inner.h"
#include "api/grow.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMELESS "_" /* the tenant without a name; no name begins with it */

/* A blob that a thread fetches; it lies on the stack of that thread. */
struct fetch {
    const struct blobs *blobs;
    const char *id;
    struct fetch *next;
};

struct cache {
    const _Atomic int64_t *max_bytes;
    struct lock lock;
    pthread_cond_t fetched;
    /* guarded by lock: */
    struct blobs *first; /* the folders, linked by next_cached */
    struct fetch *fetches;
    /* any thread: */
    atomic_int_fast64_t hits, misses, evicted;
};

struct cache *
cache_new(const _Atomic int64_t *max_bytes)
{
    struct cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    cache->max_bytes = max_bytes;
    lock_init(&cache->lock, LOCK_CACHE);
    lock_cond_init(&cache->fetched);
    return cache;
}

void
cache_free(struct cache **cache)
{
    if (!*cache)
        return;
    pthread_cond_destroy(&(*cache)->fetched);
    lock_fini(&(*cache)->lock);
    free(*cache);
    *cache = NULL;
}

bool
cache_join(struct blobs *blobs, const struct bucket *bucket, const char *tenant,
           struct api_problem *p)
{
    struct cache *cache = bucket->cache;
    blobs->tenant = strdup(tenant && *tenant ? tenant : NAMELESS);
    if (!blobs->tenant)
        return api_problem_no_memory(p);
    blobs->bucket = bucket;
    lock_acquire(&cache->lock);
    blobs->next_cached = cache->first;
    cache->first = blobs;
    lock_release(&cache->lock);
    return true;
}

void
cache_leave(struct blobs *blobs)
{
    struct cache *cache = blobs->bucket->cache;
    lock_acquire(&cache->lock);
    struct blobs **at = &cache->first;
    while (*at != blobs)
        at = &(*at)->next_cached;
    *at = blobs->next_cached;
    lock_release(&cache->lock);
    free(blobs->tenant);
}

/* --- eviction ------------------------------------------------------------- */

/* A file of the cache. */
struct entry {
    struct blobs *blobs;
    struct timespec used;
    char name[NAME_SIZE];
};

struct entries {
    struct entry *items;
    size_t n;
};

static void
add_entry(struct entries *entries, struct blobs *blobs, const char *id)
{
    struct stat st;
    char name[NAME_SIZE];
    blob_name(id, name);
    struct entry *items = api_grow(entries->items, entries->n, 1, sizeof *items);
    if (!items)
        return;
    entries->items = items;
    if (fstatat(blobs->dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return;
    struct entry *entry = &entries->items[entries->n++];
    *entry = (struct entry){.blobs = blobs, .used = st.st_atim};
    memcpy(entry->name, name, sizeof name);
}

struct collecting {
    struct entries entries;
    struct blobs *blobs;
};

static void
collect(void *arg, const char *id)
{
    struct collecting *collecting = arg;
    add_entry(&collecting->entries, collecting->blobs, id);
}

static int
compare_uses(const void *a, const void *b)
{
    const struct timespec *x = &((const struct entry *)a)->used;
    const struct timespec *y = &((const struct entry *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Removes a file unless somebody has it open. Returns its size. */
static uint64_t
remove_entry(const struct entry *entry)
{
    struct blobs *blobs = entry->blobs;
    struct stat st;
    uint64_t size = 0;
    int fd = openat(blobs->dir, entry->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0) {
        lock_acquire(&blobs->naming);
        if (unlinkat(blobs->dir, entry->name, 0) == 0) {
            size = (uint64_t)st.st_size;
            blobs->used -= size;
        }
        lock_release(&blobs->naming);
    }
    close(fd);
    return size;
}

static uint64_t
sum_used(const struct cache *cache)
{
    uint64_t used = 0;
    for (const struct blobs *b = cache->first; b; b = b->next_cached)
        used += b->used;
    return used;
}

uint64_t
cache_used(struct cache *cache)
{
    lock_acquire(&cache->lock);
    uint64_t used = sum_used(cache);
    lock_release(&cache->lock);
    return used;
}

void
cache_figures(struct cache *cache, struct cache_figures *ret)
{
    *ret = (struct cache_figures){.used = (int64_t)cache_used(cache),
                                  .most = *cache->max_bytes,
                                  .hits = cache->hits,
                                  .misses = cache->misses,
                                  .evicted = cache->evicted};
}

void
cache_count_hit(struct cache *cache)
{
    cache->hits++;
}

uint64_t
cache_evict(struct cache *cache, uint64_t bytes)
{
    lock_assert_none(LOCK_LIBRARY);
    struct collecting collecting = {0};
    struct api_problem ignored = {0};
    uint64_t most = (uint64_t)*cache->max_bytes, gone = 0;
    lock_acquire(&cache->lock);
    uint64_t used = sum_used(cache);
    if (used > most && used - most > bytes)
        bytes = used - most;
    if (bytes) {
        /* A tenth more, so that not every file that comes needs a look at all files. */
        bytes += used > most ? most / 10 : 0;
        for (collecting.blobs = cache->first; collecting.blobs;
             collecting.blobs = collecting.blobs->next_cached)
            (void)blobs_each(collecting.blobs, collect, &collecting, &ignored);
        struct entries *all = &collecting.entries;
        if (all->n)
            qsort(all->items, all->n, sizeof *all->items, compare_uses);
        for (size_t i = 0; i < all->n && gone < bytes; i++)
            gone += remove_entry(&all->items[i]);
    }
    lock_release(&cache->lock);
    free(collecting.entries.items);
    cache->evicted += (int64_t)gone;
    if (gone)
        log_info("cache_evicted", "bytes=%llu", (unsigned long long)gone);
    return gone;
}

/* --- fetching ------------------------------------------------------------- */

static bool
is_fetched(const struct cache *cache, const struct blobs *blobs, const char *id)
{
    const struct fetch *at = cache->fetches;
    while (at && (at->blobs != blobs || strcmp(at->id, id) != 0))
        at = at->next;
    return at;
}

/* Waits until no other thread fetches the blob, then says that this one does. Returns false
   when another did. */
static bool
begin_fetch(struct cache *cache, struct fetch *fetch)
{
    bool first = true;
    lock_acquire(&cache->lock);
    for (; is_fetched(cache, fetch->blobs, fetch->id); first = false)
        lock_wait(&cache->lock, &cache->fetched);
    if (first) {
        fetch->next = cache->fetches;
        cache->fetches = fetch;
    }
    lock_release(&cache->lock);
    return first;
}

static void
end_fetch(struct cache *cache, struct fetch *fetch)
{
    lock_acquire(&cache->lock);
    struct fetch **at = &cache->fetches;
    while (*at != fetch)
        at = &(*at)->next;
    *at = fetch->next;
    pthread_cond_broadcast(&cache->fetched);
    lock_release(&cache->lock);
}

/* Opens the file of a blob and holds its shared lock. Returns -1 when there is none. */
static int
open_entry(struct blobs *blobs, const char *id)
{
    char name[NAME_SIZE];
    blob_name(id, name);
    int fd = openat(blobs->dir, name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        cache_note_use(fd);
    return fd;
}

/* Notes that the object has other bytes, for the next upload. */
static bool
fail_wrong_bytes(struct blobs *blobs, const char *id, const char *found,
                 struct api_problem *p)
{
    int fd = openat(blobs->damaged, blob_hex(id), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    blobs->n_damaged++;
    log_error("blob_damaged", "id=%s place=bucket found=%s", id, found);
    if (blobs->on_damaged)
        blobs->on_damaged(blobs->damaged_arg, id);
    return api_problem_set(
        p, API_DAMAGED, QDQ_AT_NOTHING, NULL,
        "the bytes of %s in the bucket are damaged; store them again", id);
}

/* Brings the object into the cache. */
static bool
get(struct blobs *blobs, const char *id, int *ret, struct api_problem *p)
{
    const struct bucket *bucket = blobs->bucket;
    struct spool *spool = NULL;
    char key[BUCKET_KEY];
    int fd = -1;
    object_key(blobs, id, key);
    bool ok = spool_open(blobs, &spool, p) &&
              bucket->get(bucket->arg, key, spool_fd(spool), p) &&
              spool_finish_file(spool, p);
    if (ok && strcmp(spool_id(spool), id) != 0)
        ok = fail_wrong_bytes(blobs, id, spool_id(spool), p);
    ok = ok && spool_read(spool, &fd, p);
    if (ok) {
        cache_note_use(fd);
        ok = spool_commit(&spool, p);
    }
    spool_discard(&spool);
    if (ok)
        *ret = fd;
    else if (fd >= 0)
        close(fd);
    return ok;
}

bool
cache_fetch(struct blobs *blobs, const char *id, int *ret, struct api_problem *p)
{
    lock_assert_none(LOCK_LIBRARY);
    struct cache *cache = blobs->bucket->cache;
    struct fetch fetch = {.blobs = blobs, .id = id};
    cache->misses++;
    while (!begin_fetch(cache, &fetch))
        if ((*ret = open_entry(blobs, id)) >= 0)
            return true;
    bool ok = (*ret = open_entry(blobs, id)) >= 0 || get(blobs, id, ret, p);
    end_fetch(cache, &fetch);
    if (ok)
        (void)blobs_check_room(blobs, 0, &(struct api_problem){0});
    return ok;
}

/* The lock is that of the open file, which a worker shares. A file system without locks has a
   cache whose files may be removed while they are read, which readers do not notice. */
void
cache_note_use(int fd)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    (void)flock(fd, LOCK_SH | LOCK_NB);
    (void)futimens(fd, times);
}
