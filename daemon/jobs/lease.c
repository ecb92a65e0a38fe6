/* SPDX-License-Identifier: Apache-2.0 */
/* The leases of running jobs, where several daemons share a record. */
#include "config.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/inner.h"

#include <string.h>

enum { MOST_SLOTS = 512 };

struct claim {
    char id[JOB_ID_SIZE];
    int64_t fence;
};

/* Gives a job up whose lease was lost. The caller holds the lock. */
static void
lapse(struct jobs *jobs, struct job_slot *slot)
{
    lock_assert_held(&jobs->lock);
    if (!slot->lapsed)
        log_info("lease_lost", "job=%s tenant=%s", slot->id, jobs->tenant);
    slot->lapsed = true;
    jobs_give_up(slot);
}

/* Renews one lease. The lock is not held meanwhile, so that a worker whose lease ends can
   be stopped while the database does not answer. */
static void
renew(struct jobs *jobs, const struct claim *claim)
{
    struct api_problem problem = {0};
    char quoted[LOG_QUOTED];
    int64_t begun = clock_steady_ms();
    bool held;
    bool ok = store_job_renew(jobs->store, claim->id, claim->fence, &held, &problem);
    if (!ok)
        log_error("store_failed", "detail=%s", log_quote(quoted, problem.detail));
    lock_acquire(&jobs->lock);
    struct job_slot *slot = jobs_find_slot(jobs, claim->id);
    if (ok && slot && slot->fence == claim->fence) {
        if (held)
            slot->renewed_at = begun;
        else
            lapse(jobs, slot);
    }
    lock_release(&jobs->lock);
}

void
jobs_renew(struct jobs *jobs)
{
    struct claim claims[MOST_SLOTS];
    struct api_problem problem = {0};
    int64_t recovered = 0;
    size_t n = 0;
    lock_acquire(&jobs->lock);
    for (struct job_slot *slot = jobs->slots; slot && n < MOST_SLOTS;
         slot = slot->next) {
        memcpy(claims[n].id, slot->id, sizeof claims[n].id);
        claims[n++].fence = slot->fence;
    }
    lock_release(&jobs->lock);
    for (size_t i = 0; i < n; i++)
        renew(jobs, &claims[i]);
    if (store_recover(jobs->store, &recovered, &problem) && recovered) {
        log_info("jobs_recovered", "n=%lld tenant=%s", (long long)recovered,
                 jobs->tenant);
        bell_ring(jobs->bell);
    }
}

void
jobs_check_leases(struct jobs *jobs, int64_t lease_ms)
{
    int64_t now = clock_steady_ms();
    lock_acquire(&jobs->lock);
    for (struct job_slot *slot = jobs->slots; slot; slot = slot->next)
        if (now - slot->renewed_at > lease_ms - lease_ms / 5)
            lapse(jobs, slot);
    lock_release(&jobs->lock);
}

int64_t
jobs_count_running(struct jobs *jobs)
{
    int64_t n = 0;
    lock_acquire(&jobs->lock);
    for (const struct job_slot *slot = jobs->slots; slot; slot = slot->next)
        n++;
    lock_release(&jobs->lock);
    return n;
}

void
jobs_look(struct jobs *jobs)
{
    struct api_problem ignored = {0};
    int64_t waiting = 0;
    lock_acquire(&jobs->lock);
    bool waited_for = jobs->waiters;
    if (waited_for)
        jobs_wake(jobs, NULL);
    lock_release(&jobs->lock);
    if (store_queue_length(jobs->store, &waiting, &ignored) && waiting)
        bell_ring(jobs->bell);
}
