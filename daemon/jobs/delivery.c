/* SPDX-License-Identifier: Apache-2.0 */
/* The deliveries under way: their slots, as their carriers see them. */
#include "config.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/inner.h"

#include <string.h>

bool
jobs_delivery_claim(struct jobs *jobs, struct delivery_slot *delivery,
                    struct store_delivery *ret, bool *ret_any, struct api_problem *p)
{
    int64_t begun = clock_steady_ms();
    QDQD_CHECK(!*delivery->id);
    bool ok = store_delivery_claim(jobs->store, clock_wall_ms(), ret, ret_any, p);
    if (!ok || !*ret_any)
        return ok;
    memcpy(delivery->id, ret->id, sizeof delivery->id);
    delivery->fence = ret->fence;
    delivery->lease = (struct job_lease){.renewed_at = begun};
    lock_acquire(&jobs->lock);
    lock_acquire(&jobs->leases);
    delivery->next = jobs->deliveries;
    jobs->deliveries = delivery;
    lock_release(&jobs->leases);
    lock_release(&jobs->lock);
    return true;
}

void
jobs_delivery_refused(struct jobs *jobs, const struct delivery_slot *delivery)
{
    log_info("delivery_refused", "delivery=%s tenant=%s", delivery->id, jobs->tenant);
}

void
jobs_delivery_leave(struct jobs *jobs, struct delivery_slot *delivery)
{
    lock_acquire(&jobs->lock);
    lock_acquire(&jobs->leases);
    struct delivery_slot **at = &jobs->deliveries;
    while (*at != delivery) {
        QDQD_CHECK(*at);
        at = &(*at)->next;
    }
    *at = delivery->next;
    lock_release(&jobs->leases);
    lock_release(&jobs->lock);
    delivery->id[0] = '\0';
}
