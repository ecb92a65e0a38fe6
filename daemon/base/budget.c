/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/lock.h"

#include <malloc.h>

#define MOST_BYTES (128u << 20)
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

static uint64_t
bounded(uint64_t bytes)
{
    return bytes < MOST_BYTES ? bytes : MOST_BYTES;
}

bool
budget_take(uint64_t bytes, struct api_problem *p)
{
    int64_t deadline = clock_steady_ms() + PATIENCE_MS;
    uint64_t wanted = bounded(bytes);
    pthread_once(&budget.once, init_budget);
    lock_acquire(&budget.lock);
    while (wanted > MOST_BYTES - budget.taken && clock_steady_ms() < deadline)
        lock_wait_until(&budget.lock, &budget.given, deadline);
    bool ok = wanted <= MOST_BYTES - budget.taken;
    if (ok)
        budget.taken += wanted;
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
    budget.taken -= bounded(bytes);
    pthread_cond_broadcast(&budget.given);
    lock_release(&budget.lock);
}
