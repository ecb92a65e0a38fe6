/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns of the tenants: whose job a lane runs next. It is a job of the tenant that has had
 * lanes for the shortest time, so that one with long jobs has no more of them than others. A tenant
 * without jobs saves no time up for later: with its next job it counts as one that has had lanes
 * for as long as the tenant of the last turn (start-time fair queueing: P. Goyal, H. M. Vin and
 * H. Cheng, 1996).
 */
#include "config.h"
#include "tenants/inner.h"
#include "base/clock.h"

#include <time.h>

/* Returns for how long the tenant has had lanes. */
static int64_t
spent(const struct tenant *t, int64_t now)
{
    return t->spent_ms + (int64_t)t->running * now - t->claimed_ms;
}

/* Returns whether the one tenant's turn comes before the other's: whoever was served longest ago
   where both have had as much. */
static bool
comes_before(const struct tenant *one, const struct tenant *other, int64_t now)
{
    const int64_t a = spent(one, now), b = spent(other, now);
    return a != b ? a < b : one->served < other->served;
}

/* Returns the tenant whose turn it is, among those whose queue was not looked at in this
   round. */
static struct tenant *
choose(struct tenants *tenants, int64_t now)
{
    lock_assert_held(&tenants->turns);
    struct tenant *best = NULL;
    for (struct tenant *t = NULL; (t = tenants_after(tenants, t));)
        if (t->looked != tenants->look && (!best || comes_before(t, best, now)))
            best = t;
    return best;
}

/* Notes that a lane has claimed a job of the tenant. */
static void
begin(struct tenants *tenants, struct tenant *t, int64_t now)
{
    lock_assert_held(&tenants->turns);
    const int64_t has_spent = spent(t, now);
    if (has_spent < tenants->last_spent_ms)
        t->spent_ms += tenants->last_spent_ms - has_spent;
    else
        tenants->last_spent_ms = has_spent;
    t->claimed_ms += now;
    t->running++;
    t->served = ++tenants->turn;
}

void
tenants_lane_is_free(struct tenants *tenants, const struct service *service,
                     int64_t claimed_ms)
{
    const int64_t now = clock_steady_ms();
    lock_acquire(&tenants->turns);
    for (struct tenant *t = NULL; (t = tenants_after(tenants, t));) {
        if (&t->service != service)
            continue;
        t->spent_ms += now - claimed_ms;
        t->claimed_ms -= claimed_ms;
        t->running--;
    }
    lock_release(&tenants->turns);
}

struct hindrance {
    bool failed; /* a queue cannot be read or written (a full disk) */
    bool paused; /* a tenant's workers have died, and its work waits */
};

bool
pool_share_is_paused(struct pool_share *share)
{
    int64_t until = atomic_load(&share->paused_until);
    return until && clock_steady_ms() < until;
}

/*
 * Claims the next job. *ret is NULL when there is none; *ret_why then says whose queue
 * could not be asked: the other tenants are served all the same.
 */
static void
claim(struct tenants *tenants, struct job_slot *slot, const struct service **ret,
      struct store_job *ret_job, int64_t *ret_ms, struct hindrance *ret_why)
{
    bool any = false;
    const int64_t now = *ret_ms = clock_steady_ms();
    *ret = NULL;
    *ret_why = (struct hindrance){false, false};
    lock_acquire(&tenants->turns);
    tenants->look++;
    for (struct tenant *t; !any && (t = choose(tenants, now));) {
        struct api_problem problem = {0};
        t->looked = tenants->look;
        if (pool_share_is_paused(&t->share)) {
            ret_why->paused = true;
            continue;
        }
        if (!jobs_claim(t->jobs, slot, ret_job, &any, &problem)) {
            ret_why->failed = true;
            store_log_failure(&problem);
        }
        if (any) {
            begin(tenants, t, now);
            *ret = &t->service;
        }
    }
    lock_release(&tenants->turns);
}

static bool
is_draining(struct tenants *tenants)
{
    lock_acquire(&tenants->lock);
    bool draining = tenants->draining;
    lock_release(&tenants->lock);
    return draining;
}

bool
tenants_claim(struct tenants *tenants, struct job_slot *slot,
              const struct service **ret_service, struct store_job *ret,
              int64_t *ret_ms)
{
    const struct timespec a_while = {1, 0}, a_moment = {0, 50 * 1000000};
    for (;;) {
        struct hindrance why;
        uint64_t heard = bell_heard(&tenants->bell);
        if (is_draining(tenants))
            return false;
        claim(tenants, slot, ret_service, ret, ret_ms, &why);
        if (*ret_service)
            return true;
        if (why.failed || why.paused)
            nanosleep(why.paused ? &a_moment : &a_while, NULL);
        else
            bell_wait(&tenants->bell, heard);
    }
}
