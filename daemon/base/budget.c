/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/lock.h"

#include <malloc.h>

/* Requests of more than SMALL_BYTES leave so much to others, which need not wait for them. */
#define KEPT_BYTES (32u << 20)
#define MOST_BYTES (BUDGET_MOST + KEPT_BYTES)
#define SMALL_BYTES (16u << 20)
#define LARGE_BYTES (8u << 20) /* after which the allocator returns memory */
#define PATIENCE_MS 5000

static struct {
    pthread_once_t once;
    struct lock lock;
    pthread_cond_t given;
    uint64_t taken; /* guarded by lock */
} budget = {.once = PTHREAD_ONCE_INIT};

static void
init_budget(void)
{
    lock_init(&budget.lock, LOCK_BUDGET);
    lock_cond_init(&budget.given);
}

/* Returns whether there is room for so many bytes. The caller holds the lock. */
static bool
has_room(uint64_t bytes)
{
    lock_assert_held(&budget.lock);
    return bytes <= (bytes > SMALL_BYTES ? BUDGET_MOST : MOST_BYTES) &&
           budget.taken <= (bytes > SMALL_BYTES ? BUDGET_MOST : MOST_BYTES) - bytes;
}

bool
budget_take(uint64_t bytes, struct api_problem *p)
{
    int64_t deadline = clock_steady_ms() + PATIENCE_MS;
    if (bytes > BUDGET_MOST)
        return api_fail(p, API_TOO_LARGE,
                        "this would take %llu MiB of memory; the requests have %u MiB",
                        (unsigned long long)(bytes >> 20), BUDGET_MOST >> 20);
    pthread_once(&budget.once, init_budget);
    lock_acquire(&budget.lock);
    while (!has_room(bytes) && clock_steady_ms() < deadline)
        lock_wait_until(&budget.lock, &budget.given, deadline);
    bool ok = has_room(bytes);
    if (ok)
        budget.taken += bytes;
    lock_release(&budget.lock);
    return ok || api_problem_set(p, API_BUSY, QDQ_AT_NOTHING, NULL,
                                 "too many large requests are in memory; try again");
}

void
budget_give(uint64_t bytes)
{
    if (!bytes)
        return;
    if (bytes >= LARGE_BYTES)
        malloc_trim(0);
    lock_acquire(&budget.lock);
    budget.taken -= bytes;
    pthread_cond_broadcast(&budget.given);
    lock_release(&budget.lock);
}
