/* SPDX-License-Identifier: Apache-2.0 */
/* The leases of running jobs and deliveries, where several daemons share a record. */
#include "config.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/inner.h"
#include "watch/metrics.h"
#include "workers/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

METRIC_WORDS(what_labels, "what", "job", "delivery");
METRIC(lapsed, COUNTER, "qdqd_leases_lost_total", &what_labels, ONE,
       "Leases of jobs and deliveries that this daemon could not renew.");

#define LOST "lease_lost"

/* --- the list of leases ---------------------------------------------------- */

void
jobs_add_slot(struct jobs *jobs, struct job_slot *slot, const struct store_job *job,
              int64_t begun)
{
    lock_assert_held(&jobs->lock);
    memcpy(slot->id, job->id, sizeof slot->id);
    memcpy(slot->parent, job->parent, sizeof slot->parent);
    slot->fence = job->fence;
    slot->lease = (struct job_lease){.renewed_at = begun};
    lock_acquire(&jobs->leases);
    slot->next = jobs->slots;
    jobs->slots = slot;
    lock_release(&jobs->leases);
}

void
jobs_remove_slot(struct jobs *jobs, struct job_slot *slot)
{
    lock_assert_held(&jobs->lock);
    lock_acquire(&jobs->leases);
    struct job_slot **at = &jobs->slots;
    while (*at != slot) {
        QDQD_CHECK(*at);
        at = &(*at)->next;
    }
    *at = slot->next;
    lock_release(&jobs->leases);
    slot->id[0] = '\0';
}

void
jobs_leave_worker(struct jobs *jobs, struct job_slot *slot)
{
    lock_acquire(&jobs->lock);
    lock_acquire(&jobs->leases);
    slot->process = NULL;
    lock_release(&jobs->leases);
    lock_release(&jobs->lock);
}

bool
jobs_has_lapsed(struct jobs *jobs, const struct job_lease *lease)
{
    lock_acquire(&jobs->leases);
    bool lapsed = lease->lapsed;
    lock_release(&jobs->leases);
    return lapsed;
}

/* --- giving up -------------------------------------------------------------- */

/* Gives a job up. A worker that starts a little later is ended by its lane, or when the leases
   are looked at again. The caller holds the lock of leases. */
static void
lapse(struct jobs *jobs, struct job_slot *slot, const char *event)
{
    lock_assert_held(&jobs->leases);
    if (!slot->lease.lapsed) {
        log_info(event, "job=%s tenant=%s", slot->id, jobs->tenant);
        if (!strcmp(event, LOST))
            metrics_add(jobs->metrics, &metric_lapsed, 0, 1);
    }
    slot->lease.lapsed = true;
    if (slot->process)
        process_kill(slot->process);
}

/* Does the same with a delivery. */
static void
lapse_delivery(struct jobs *jobs, struct delivery_slot *delivery)
{
    lock_assert_held(&jobs->leases);
    if (!delivery->lease.lapsed) {
        log_info(LOST, "delivery=%s tenant=%s", delivery->id, jobs->tenant);
        metrics_add(jobs->metrics, &metric_lapsed, 1, 1);
    }
    delivery->lease.lapsed = true;
    process_kill(delivery->process);
}

static bool
is_over(const struct job_lease *lease, int64_t last)
{
    return lease->lapsed || lease->renewed_at < last;
}

void
jobs_check_leases(struct jobs *jobs, int64_t lease_ms)
{
    int64_t last = clock_steady_ms() - (lease_ms - lease_ms / 5);
    lock_acquire(&jobs->leases);
    for (struct job_slot *slot = jobs->slots; slot; slot = slot->next)
        if (is_over(&slot->lease, last))
            lapse(jobs, slot, LOST);
    for (struct delivery_slot *delivery = jobs->deliveries; delivery;
         delivery = delivery->next)
        if (is_over(&delivery->lease, last))
            lapse_delivery(jobs, delivery);
    lock_release(&jobs->leases);
}

/* --- renewal ---------------------------------------------------------------- */

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
claim_of_delivery(const struct delivery_slot *delivery)
{
    struct claim claim = {.fence = delivery->fence, .is_delivery = true};
    snprintf(claim.id, sizeof claim.id, "%s", delivery->id);
    return claim;
}

static struct delivery_slot *
find_delivery(struct jobs *jobs, const char *id)
{
    lock_assert_held(&jobs->leases);
    struct delivery_slot *delivery = jobs->deliveries;
    while (delivery && strcmp(delivery->id, id) != 0)
        delivery = delivery->next;
    return delivery;
}

/* Notes the outcome of a renewal that began at `begun`. */
static void
note_renewal(struct jobs *jobs, const struct claim *claim, int64_t begun,
             const char *lost)
{
    lock_acquire(&jobs->leases);
    struct job_slot *slot = claim->is_delivery ? NULL : jobs_find_slot(jobs, claim->id);
    struct delivery_slot *delivery =
        claim->is_delivery ? find_delivery(jobs, claim->id) : NULL;
    if (slot && slot->fence == claim->fence) {
        slot->lease.renewed_at = begun;
        if (lost)
            lapse(jobs, slot, lost);
    }
    if (delivery && delivery->fence == claim->fence) {
        delivery->lease.renewed_at = begun;
        if (lost)
            lapse_delivery(jobs, delivery);
    }
    lock_release(&jobs->leases);
}

/* Returns the event of a claim that is no longer this daemon's. */
static const char *
event_of_loss(struct jobs *jobs, const struct claim *claim)
{
    struct api_problem ignored = {0};
    struct store_job job;
    if (claim->is_delivery || !store_job_get(jobs->store, claim->id, &job, &ignored))
        return LOST;
    bool cancelled = job.state == API_JOB_CANCELLED;
    store_job_fini(&job);
    return cancelled ? "cancelled_elsewhere" : LOST;
}

/* Renews one lease. */
static bool
renew(struct jobs *jobs, const struct claim *claim, bool *ret_held,
      struct api_problem *p)
{
    int64_t begun = clock_steady_ms();
    bool ok = claim->is_delivery ? store_delivery_renew(jobs->store, claim->id,
                                                        claim->fence, ret_held, p)
                                 : store_job_renew(jobs->store, claim->id, claim->fence,
                                                   &claim->progress, ret_held, p);
    if (ok)
        note_renewal(jobs, claim, begun, *ret_held ? NULL : event_of_loss(jobs, claim));
    return ok;
}

/* Lists the claims. Returns their number. free() frees the list. */
static size_t
list_claims(struct jobs *jobs, struct claim **ret)
{
    size_t n = 0, room = 0;
    lock_acquire(&jobs->lock);
    for (struct job_slot *slot = jobs->slots; slot; slot = slot->next)
        room++;
    for (struct delivery_slot *delivery = jobs->deliveries; delivery;
         delivery = delivery->next)
        room++;
    struct claim *claims = *ret = calloc(room, sizeof *claims);
    for (struct job_slot *slot = jobs->slots; claims && slot; slot = slot->next)
        claims[n++] = claim_of(jobs, slot);
    for (struct delivery_slot *delivery = jobs->deliveries; claims && delivery;
         delivery = delivery->next)
        claims[n++] = claim_of_delivery(delivery);
    lock_release(&jobs->lock);
    return n;
}

/* Lets jobs wait again that daemons had that are gone, and fetches and deliveries. */
static void
recover(struct jobs *jobs)
{
    struct api_problem problem = {0};
    int64_t recovered = 0;
    if (!store_recover(jobs->store, &recovered, &problem))
        store_log_failure(&problem);
    if (recovered) {
        log_info("jobs_recovered", "n=%lld tenant=%s", (long long)recovered,
                 jobs->tenant);
        bell_ring(jobs->bell);
    }
}

bool
jobs_renew(struct jobs *jobs)
{
    struct claim *claims;
    struct api_problem problem = {0};
    bool held;
    size_t n = list_claims(jobs, &claims);
    for (size_t i = 0; i < n && problem.code != API_UNAVAILABLE; i++) {
        problem = (struct api_problem){0};
        if (!renew(jobs, &claims[i], &held, &problem) &&
            (problem.code != API_UNAVAILABLE || !jobs->unanswered))
            store_log_failure(&problem);
    }
    free(claims);
    bool answers = problem.code != API_UNAVAILABLE;
    jobs->unanswered = !answers;
    if (answers)
        recover(jobs);
    /* Fetches and deliveries may wait again, or another daemon may have too many. */
    bell_ring_carriers(jobs->bell);
    return answers;
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
    const struct claim claim = claim_of(jobs, slot);
    lock_release(&jobs->lock);
    return check_claim(jobs, &claim, jobs_has_lapsed(jobs, &slot->lease), p);
}

bool
jobs_delivery_is_held(struct jobs *jobs, struct delivery_slot *delivery,
                      struct api_problem *p)
{
    const struct claim claim = claim_of_delivery(delivery);
    return check_claim(jobs, &claim, jobs_has_lapsed(jobs, &delivery->lease), p);
}

int64_t
jobs_count_running(struct jobs *jobs)
{
    int64_t n = 0;
    lock_acquire(&jobs->leases);
    for (const struct job_slot *slot = jobs->slots; slot; slot = slot->next)
        n++;
    lock_release(&jobs->leases);
    return n;
}
