/* SPDX-License-Identifier: Apache-2.0 */
/* Room for more blobs: the limits of the stored bytes and of the disk, and how much is evicted
   to keep them. */
#include "config.h"
#include "base/clock.h"
#include "library/inner.h"

#include <sys/statvfs.h>

/* stays free for writes that must succeed, above all those of the record */
#define RESERVE (16u << 20)
#define MOST_FREE (1u << 30) /* the default reserve of a large disk is at most this */

void
blobs_set_limits(struct blobs *blobs, const struct blobs_limits *limits)
{
    blobs->limits.max_bytes = limits->max_bytes;
    blobs->limits.min_free = limits->min_free;
    blobs->limits.grace_ms = limits->grace_ms;
    if (blobs->limits.evict != limits->evict || blobs->limits.arg != limits->arg) {
        blobs->limits.evict = limits->evict;
        blobs->limits.rows = limits->rows;
        blobs->limits.beside = limits->beside;
        blobs->limits.sharers = limits->sharers;
        blobs->limits.arg = limits->arg;
    }
}

uint64_t
blobs_used(struct blobs *blobs)
{
    return blobs->used;
}

uint64_t
blobs_counted(const struct blobs *blobs)
{
    const struct blobs_limits *limits = &blobs->limits;
    return (limits->rows ? limits->rows(limits->arg) : blobs->used) +
           (limits->beside ? limits->beside(limits->arg) : 0);
}

/* --- what is too much ----------------------------------------------------- */

/* Returns the bytes of a disk that stay free. */
static uint64_t
free_space_floor(const struct blobs *blobs, const struct statvfs *disk)
{
    uint64_t least = blobs->limits.min_free;
    if (!least)
        least = (uint64_t)disk->f_blocks * disk->f_frsize / 20;
    if (!blobs->limits.min_free && least > MOST_FREE)
        least = MOST_FREE;
    return least < RESERVE ? RESERVE : least;
}

bool
blobs_find_shortage(struct blobs *blobs, uint64_t size, uint64_t *ret,
                    struct api_problem *p)
{
    struct statvfs disk;
    if (fstatvfs(blobs->tmp, &disk))
        return blobs_fail(p, "asking for the disk's free space");
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    uint64_t wanted = free_space_floor(blobs, &disk);
    wanted = size > UINT64_MAX - wanted ? UINT64_MAX : size + wanted;
    *ret = wanted > left ? wanted - left : 0;
    return true;
}

/* Bytes that are too many: more than the limit, and more than the disk has room for. */
struct excess {
    uint64_t limit, disk;
};

/* Computes the excess if `size` more bytes came. Returns false when there is some; `p`
   becomes the DISK_FULL that says so. */
static bool
find_excess(struct blobs *blobs, uint64_t size, struct excess *ret,
            struct api_problem *p)
{
    uint64_t most = blobs->limits.max_bytes;
    uint64_t there = most ? blobs_counted(blobs) + blobs->spooled : 0;
    *ret = (struct excess){0};
    if (!blobs_find_shortage(blobs, size, &ret->disk, p))
        return false;
    if (most && (size > most || there > most - size)) {
        ret->limit = size > most ? UINT64_MAX : there - (most - size);
        return api_problem_set(p, API_DISK_FULL, QDQ_AT_NOTHING, NULL,
                               "%llu bytes are stored, too many to store %llu more "
                               "(storage.max_bytes)",
                               (unsigned long long)there, (unsigned long long)size);
    }
    return !ret->disk ||
           api_problem_set(p, API_DISK_FULL, QDQ_AT_NOTHING, NULL,
                           "too little of the disk is free to store %llu bytes "
                           "more (storage.min_free)",
                           (unsigned long long)size);
}

bool
blobs_has_room(struct blobs *blobs, uint64_t size, struct api_problem *p)
{
    struct excess excess;
    return find_excess(blobs, size, &excess, p);
}

/* --- files that go later -------------------------------------------------- */

/* Returns the bytes that were evicted and may still be on the disk. The sweep looks at each
   file eight times in a grace period, so a file is there for at most a quarter longer. */
static uint64_t
leaving(const struct blobs *blobs)
{
    int64_t grace = blobs->limits.grace_ms;
    return clock_steady_ms() - blobs->evicted_at < grace + grace / 4 ? blobs->evicted
                                                                     : 0;
}

/* Counts what was evicted, so that nothing more goes until the disk has that room. */
static void
add_leaving(struct blobs *blobs, uint64_t before, uint64_t after)
{
    if (!blobs->ops->evicts_later || !blobs->ops->evicts_later(blobs) ||
        after >= before)
        return;
    blobs->evicted = leaving(blobs) + before - after;
    blobs->evicted_at = clock_steady_ms();
}

/* --- eviction ------------------------------------------------------------- */

/*
 * Computes how many bytes are more than an equal share of the disk if `size` more come. The
 * share is of all that is stored and of what is free, to the floor.
 */
static bool
find_overuse(struct blobs *blobs, uint64_t size, uint64_t *ret, struct api_problem *p)
{
    uint64_t gone = leaving(blobs), all = blobs->used;
    uint64_t used = all > gone ? all - gone : 0;
    unsigned n = 1;
    struct statvfs disk;
    if (fstatvfs(blobs->tmp, &disk))
        return blobs_fail(p, "asking for the disk's free space");
    if (blobs->limits.sharers)
        blobs->limits.sharers(blobs->limits.arg, &all, &n);
    if (!used || !n) /* the others are all that have stored something */
        n++;
    uint64_t floor = free_space_floor(blobs, &disk);
    uint64_t most = all + (uint64_t)disk.f_bavail * disk.f_frsize;
    uint64_t share = most > floor ? (most - floor) / n : 0;
    uint64_t wanted = size > UINT64_MAX - used ? UINT64_MAX : used + size;
    *ret = wanted > share ? wanted - share : 0;
    return true;
}

/*
 * Decides what goes when the disk lacks `shortage` bytes: *ret_more is how many should go, at
 * least those. A tenant with more than a share gives back as much again, so that the others
 * find room. *ret_computed: only what can be computed again may go.
 */
static bool
divide_shortage(struct blobs *blobs, uint64_t size, uint64_t shortage,
                uint64_t *ret_more, bool *ret_computed, struct api_problem *p)
{
    uint64_t overuse = 0;
    *ret_computed = false;
    if (!shortage)
        return true;
    if (!find_overuse(blobs, size, &overuse, p))
        return false;
    *ret_computed = overuse < shortage;
    uint64_t twice = shortage > UINT64_MAX / 2 ? UINT64_MAX : 2 * shortage;
    uint64_t more = overuse < twice ? overuse : twice;
    *ret_more = more > *ret_more ? more : *ret_more;
    return true;
}

/*
 * Evicts to end an excess. The space of an evicted file may become free only later (a reader
 * still has it open), so the eviction is counted here and not measured on the disk. Evicts
 * nothing when that would not be enough. Returns whether it was.
 */
static bool
evict(struct blobs *blobs, uint64_t size, const struct excess *excess,
      struct api_problem *p)
{
    const struct blobs_limits *limits = &blobs->limits;
    uint64_t before = blobs_counted(blobs), gone = leaving(blobs);
    uint64_t shortage = excess->disk > gone ? excess->disk - gone : 0;
    uint64_t least = shortage > excess->limit ? shortage : excess->limit, more = least;
    bool computed = false;
    if (!limits->evict || least > before ||
        !divide_shortage(blobs, size, shortage, &more, &computed, p))
        return false;
    while (blobs_counted(blobs) + more > before && limits->evict(limits->arg, computed))
        continue;
    uint64_t after = blobs_counted(blobs);
    add_leaving(blobs, before, after);
    return after + least <= before;
}

bool
blobs_check_room(struct blobs *blobs, uint64_t size, struct api_problem *p)
{
    lock_assert_none(LOCK_LIBRARY);
    struct api_problem problem = {0};
    struct excess excess;
    if (blobs->ops->free_disk && !blobs->ops->free_disk(blobs, size))
        return blobs_has_room(blobs, size, p);
    if (find_excess(blobs, size, &excess, &problem))
        return true;
    if ((excess.limit || excess.disk) && evict(blobs, size, &excess, &problem))
        return blobs_has_room(blobs, size, p);
    *p = problem;
    return false;
}
