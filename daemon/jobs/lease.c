/* SPDX-License-Identifier: Apache-2.0 */
/* The leases of running jobs and deliveries, where several daemons share a record. */
#include "config.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/inner.h"
#include "watch/metrics.h"
#include "workers/process.h"

#include <stdio.h>
#include <string.h>

METRIC_WORDS(what_labels, "what", "job", "delivery");
METRIC(lapsed, COUNTER, "qdqd_leases_lost_total", &what_labels, ONE,
       "Leases of jobs and deliveries that this daemon could not renew.");

enum { MOST_CLAIMS = 512 };

/* A claim of a job or of a delivery. */
struct claim {
    char id[DELIVERY_ID_SIZE];
    int64_t fence;
    bool is_delivery;
    struct store_progress progress; /* of a job */
};

/* Describes the claim of a slot. The caller holds the lock. */
static struct claim
claim_of(struct jobs *jobs, const struct job_slot *slot)
{
    lock_assert_held(&jobs->lock);
    struct claim claim = {.fence = slot->fence};
    snprintf(claim.id, sizeof claim.id, "%s", slot->id);
    snprintf(claim.progress.stage, sizeof claim.progress.stage, "%s",
             slot->stage ? slot->stage : "");
    claim.progress.done = (int64_t)slot->done;
    claim.progress.total = (int64_t)slot->total;
    claim.progress.eta_s = api_eta_left(&slot->eta, clock_steady_ms());
    return claim;
}

/* Does the same with a delivery. */
static struct claim
claim_of_delivery(struct jobs *jobs, const struct delivery_slot *delivery)
{
    lock_assert_held(&jobs->lock);
    struct claim claim = {.fence = delivery->fence, .is_delivery = true};
    snprintf(claim.id, sizeof claim.id, "%s", delivery->id);
    return claim;
}

/* Gives a job up whose lease was lost. The caller holds the lock. */
static void
lapse(struct jobs *jobs, struct job_slot *slot)
{
    lock_assert_held(&jobs->lock);
    if (!slot->lapsed) {
        log_info("lease_lost", "job=%s tenant=%s", slot->id, jobs->tenant);
        metrics_add(jobs->metrics, &metric_lapsed, 0, 1);
    }
    slot->lapsed = true;
    jobs_give_up(jobs, slot);
}

/* Does the same with a delivery. */
static void
lapse_delivery(struct jobs *jobs, struct delivery_slot *delivery)
{
    lock_assert_held(&jobs->lock);
    if (!delivery->lapsed) {
        log_info("lease_lost", "delivery=%s tenant=%s", delivery->id, jobs->tenant);
        metrics_add(jobs->metrics, &metric_lapsed, 1, 1);
    }
    delivery->lapsed = true;
    process_kill(delivery->process);
}

static struct delivery_slot *
find_delivery(struct jobs *jobs, const char *id)
{
    lock_assert_held(&jobs->lock);
    struct delivery_slot *delivery = jobs->deliveries;
    while (delivery && strcmp(delivery->id, id) != 0)
        delivery = delivery->next;
    return delivery;
}

/* Notes the outcome of a renewal that began at `begun`. The caller holds the lock. */
static void
note_renewal(struct jobs *jobs, const struct claim *claim, int64_t begun, bool held)
{
    lock_assert_held(&jobs->lock);
    struct job_slot *slot = claim->is_delivery ? NULL : jobs_find_slot(jobs, claim->id);
    struct delivery_slot *delivery =
        claim->is_delivery ? find_delivery(jobs, claim->id) : NULL;
    if (slot && slot->fence == claim->fence) {
        slot->renewed_at = begun;
        if (!held)
            lapse(jobs, slot);
    }
    if (delivery && delivery->fence == claim->fence) {
        delivery->renewed_at = begun;
        if (!held)
            lapse_delivery(jobs, delivery);
    }
}

/* Renews one lease. The lock is not held meanwhile, so that a process whose lease ends can
   be stopped while the database does not answer. */
static bool
renew(struct jobs *jobs, const struct claim *claim, bool *ret_held,
      struct api_problem *p)
{
    int64_t begun = clock_steady_ms();
    bool ok = claim->is_delivery ? store_delivery_renew(jobs->store, claim->id,
                                                        claim->fence, ret_held, p)
                                 : store_job_renew(jobs->store, claim->id, claim->fence,
                                                   &claim->progress, ret_held, p);
    lock_acquire(&jobs->lock);
    if (ok)
        note_renewal(jobs, claim, begun, *ret_held);
    lock_release(&jobs->lock);
    return ok;
}

/* Lists the claims. Returns their number. */
static size_t
list_claims(struct jobs *jobs, struct claim claims[MOST_CLAIMS])
{
    size_t n = 0;
    lock_acquire(&jobs->lock);
    for (struct job_slot *slot = jobs->slots; slot && n < MOST_CLAIMS;
         slot = slot->next)
        claims[n++] = claim_of(jobs, slot);
    for (struct delivery_slot *delivery = jobs->deliveries; delivery && n < MOST_CLAIMS;
         delivery = delivery->next)
        claims[n++] = claim_of_delivery(jobs, delivery);
    lock_release(&jobs->lock);
    return n;
}

void
jobs_renew(struct jobs *jobs)
{
    struct claim claims[MOST_CLAIMS];
    struct api_problem problem = {0};
    char quoted[LOG_QUOTED];
    int64_t recovered = 0;
    bool held;
    size_t n = list_claims(jobs, claims);
    for (size_t i = 0; i < n; i++) {
        problem = (struct api_problem){0};
        if (!renew(jobs, &claims[i], &held, &problem))
            log_error("store_failed", "detail=%s", log_quote(quoted, problem.detail));
    }
    if (store_recover(jobs->store, &recovered, &problem) && recovered) {
        log_info("jobs_recovered", "n=%lld tenant=%s", (long long)recovered,
                 jobs->tenant);
        bell_ring(jobs->bell);
    }
    /* Fetches and deliveries may wait again, or another daemon may have too many. */
    bell_ring_carriers(jobs->bell);
}

void
jobs_check_leases(struct jobs *jobs, int64_t lease_ms)
{
    int64_t last = clock_steady_ms() - (lease_ms - lease_ms / 5);
    lock_acquire(&jobs->lock);
    for (struct job_slot *slot = jobs->slots; slot; slot = slot->next)
        if (slot->lapsed || slot->renewed_at < last)
            lapse(jobs, slot);
    for (struct delivery_slot *delivery = jobs->deliveries; delivery;
         delivery = delivery->next)
        if (delivery->lapsed || delivery->renewed_at < last)
            lapse_delivery(jobs, delivery);
    lock_release(&jobs->lock);
}

/* --- before something leaves this daemon ----------------------------------- */

/* A claim whose lease could end before the write that follows is of no use, even while the
   record still has it: `lapsed` is final. */
static bool
check_claim(struct jobs *jobs, const struct claim *claim, bool lapsed,
            struct api_problem *p)
{
    bool held = true;
    if (!store_is_shared(jobs->store))
        return true;
    return (lapsed || renew(jobs, claim, &held, p)) &&
           ((held && !lapsed) ||
            api_problem_set(p, API_CANCELLED, QDQ_AT_NOTHING, NULL,
                            "the lease of %s was lost", claim->id));
}

bool
jobs_is_held(struct jobs *jobs, struct job_slot *slot, struct api_problem *p)
{
    lock_acquire(&jobs->lock);
    bool lapsed = slot->lapsed;
    const struct claim claim = claim_of(jobs, slot);
    lock_release(&jobs->lock);
    return check_claim(jobs, &claim, lapsed, p);
}

bool
jobs_delivery_is_held(struct jobs *jobs, struct delivery_slot *delivery,
                      struct api_problem *p)
{
    lock_acquire(&jobs->lock);
    bool lapsed = delivery->lapsed;
    const struct claim claim = claim_of_delivery(jobs, delivery);
    lock_release(&jobs->lock);
    return check_claim(jobs, &claim, lapsed, p);
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
