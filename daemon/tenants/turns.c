/* SPDX-License-Identifier: Apache-2.0 */
/* The turns of the tenants: whose job a lane runs next. */
#include "config.h"
#include "tenants/inner.h"
#include "base/clock.h"
#include "base/log.h"

#include <time.h>

/* Returns the tenant that was served longest ago, among those whose queue was not
   looked at in this round. */
static struct tenant *
choose(struct tenants *tenants)
{
    lock_assert_held(&tenants->turns);
    struct tenant *best = NULL;
    for (struct tenant *t = NULL; (t = tenants_after(tenants, t));)
        if (t->looked != tenants->look && (!best || t->served < best->served))
            best = t;
    return best;
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
      struct store_job *ret_job, struct hindrance *ret_why)
{
    bool any = false;
    *ret = NULL;
    *ret_why = (struct hindrance){false, false};
    lock_acquire(&tenants->turns);
    tenants->look++;
    for (struct tenant *t; !any && (t = choose(tenants));) {
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
            t->served = ++tenants->turn;
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
              const struct service **ret_service, struct store_job *ret)
{
    const struct timespec a_while = {1, 0}, a_moment = {0, 50 * 1000000};
    for (;;) {
        struct hindrance why;
        uint64_t heard = bell_heard(&tenants->bell);
        if (is_draining(tenants))
            return false;
        claim(tenants, slot, ret_service, ret, &why);
        if (*ret_service)
            return true;
        if (why.failed || why.paused)
            nanosleep(why.paused ? &a_moment : &a_while, NULL);
        else
            bell_wait(&tenants->bell, heard);
    }
}
