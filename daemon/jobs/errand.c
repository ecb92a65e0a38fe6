/* SPDX-License-Identifier: Apache-2.0 */
/* A delivery while it is made, as its carrier sees it. */
#include "config.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/inner.h"

#include <string.h>

bool
jobs_delivery_claim(struct jobs *jobs, struct job_errand *errand,
                    struct store_delivery *ret, bool *ret_any, struct api_problem *p)
{
    int64_t begun = clock_steady_ms();
    QDQD_CHECK(!*errand->id);
    bool ok = store_delivery_claim(jobs->store, clock_wall_ms(), ret, ret_any, p);
    lock_acquire(&jobs->lock);
    if (ok && *ret_any) {
        memcpy(errand->id, ret->id, sizeof errand->id);
        errand->fence = ret->fence;
        errand->renewed_at = begun;
        errand->lapsed = false;
        errand->next = jobs->errands;
        jobs->errands = errand;
    }
    lock_release(&jobs->lock);
    return ok;
}

void
jobs_delivery_refused(struct jobs *jobs, const struct job_errand *errand)
{
    log_info("delivery_refused", "delivery=%s tenant=%s", errand->id, jobs->tenant);
}

void
jobs_delivery_leave(struct jobs *jobs, struct job_errand *errand)
{
    lock_acquire(&jobs->lock);
    struct job_errand **at = &jobs->errands;
    while (*at != errand) {
        QDQD_CHECK(*at);
        at = &(*at)->next;
    }
    *at = errand->next;
    errand->id[0] = '\0';
    lock_release(&jobs->lock);
}
