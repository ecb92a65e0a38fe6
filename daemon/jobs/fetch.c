/* SPDX-License-Identifier: Apache-2.0 */
/* A job while its inputs are fetched, as its carrier sees it. */
#include "config.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/inner.h"
#include "store/outbox.h"
#include "watch/metrics.h"

#include <string.h>

METRIC_WORDS(fetch_labels, "how", "done", "failed", "retried");
METRIC(fetches, COUNTER, "qdqd_fetches_total", &fetch_labels, ONE,
       "Fetches of jobs' inputs from remotes: done, failed for good, or to be tried "
       "again.");
enum { FETCH_DONE, FETCH_FAILED, FETCH_RETRIED };

/* How long a job waits whose end the record refuses for good, whatever its text. */
enum { REFUSED_MS = 60000 };

bool
jobs_fetch_claim(struct jobs *jobs, struct job_slot *slot, struct store_job *ret,
                 bool *ret_any, struct api_problem *p)
{
    bool ok = true;
    *ret_any = false;
    int64_t begun = clock_steady_ms();
    QDQD_CHECK(!*slot->id);
    lock_acquire(&jobs->lock);
    if (!jobs->draining)
        ok = store_fetch_claim(jobs->store, clock_wall_ms(), ret, ret_any, p);
    if (ok && *ret_any) {
        slot->device = GPUS_NONE;
        slot->stage = "fetch";
        slot->done = slot->total = 0;
        jobs_add_slot(jobs, slot, ret, begun);
    }
    lock_release(&jobs->lock);
    if (ok && *ret_any)
        log_info("job_fetches", "job=%s tenant=%s attempt=%lld", ret->id, jobs->tenant,
                 (long long)ret->fetch_attempts + 1);
    return ok;
}

void
jobs_fetch_progress(struct jobs *jobs, struct job_slot *slot, uint64_t done,
                    uint64_t total)
{
    lock_acquire(&jobs->lock);
    slot->done = done;
    slot->total = total;
    lock_release(&jobs->lock);
}

/* Empties the slot and tells everybody who waits for the job. */
static void
leave(struct jobs *jobs, struct job_slot *slot)
{
    char id[JOB_ID_SIZE];
    lock_acquire(&jobs->lock);
    memcpy(id, slot->id, sizeof id);
    jobs_remove_slot(jobs, slot);
    slot->stage = NULL;
    slot->unwanted = false;
    jobs_wake(jobs, id);
    lock_release(&jobs->lock);
    bell_ring(jobs->bell);
    bell_ring_carriers(jobs->bell);
    store_hint(jobs->store);
}

/* Lets the job wait again. When even that fails, the next start, or another daemon, finds
   the job. */
static void
put_back(struct jobs *jobs, const struct job_slot *slot, int charge, int64_t wait_ms)
{
    struct api_problem problem = {0};
    const struct store_fetch_wait wait = {slot->fence, charge, clock_wall_ms(),
                                          wait_ms};
    bool held;
    if (!store_fetch_later(jobs->store, slot->id, &wait, &held, &problem))
        store_log_failure(&problem);
    else if (!held)
        log_info("fetch_refused", "job=%s tenant=%s", slot->id, jobs->tenant);
}

void
jobs_fetch_done(struct jobs *jobs, struct job_slot *slot, const struct store_job *job,
                const char *identity)
{
    struct api_problem problem = {0};
    enum store_added added;
    bool was = false;
    if (!store_fetch_done(jobs->store, job, identity, &added, &was, &problem))
        store_log_failure(&problem);
    if (problem.code == API_INTERNAL && problem.set) {
        jobs_fetch_fail(jobs, slot, &problem);
        return;
    }
    if (!was)
        put_back(jobs, slot, 1, 1000);
    else
        log_info("job_fetched", "job=%s tenant=%s", slot->id, jobs->tenant);
    metrics_add(jobs->metrics, &metric_fetches, was ? FETCH_DONE : FETCH_RETRIED, 1);
    leave(jobs, slot);
}

void
jobs_fetch_fail(struct jobs *jobs, struct job_slot *slot,
                const struct api_problem *problem)
{
    struct api_problem store_problem = {0};
    struct store_ended ended = {0};
    char quoted[LOG_QUOTED];
    bool ok = jobs_write_failure(jobs, slot, API_JOB_QUEUED, problem, &ended,
                                 &store_problem) &&
              store_sync(jobs->store, &store_problem);
    if (!ok) {
        store_log_failure(&store_problem);
        put_back(jobs, slot, 0, store_problem.code == API_INTERNAL ? REFUSED_MS : 1000);
    }
    if (ended.was) {
        jobs_count_failed(jobs, problem);
        metrics_add(jobs->metrics, &metric_fetches, FETCH_FAILED, 1);
        log_info("job_failed", "job=%s tenant=%s code=%s detail=%s", slot->id,
                 jobs->tenant, api_problem_slug(problem->code),
                 log_quote(quoted, problem->detail));
    }
    leave(jobs, slot);
}

void
jobs_fetch_later(struct jobs *jobs, struct job_slot *slot, int charge, int64_t wait_ms)
{
    put_back(jobs, slot, charge, wait_ms);
    metrics_add(jobs->metrics, &metric_fetches, FETCH_RETRIED, charge);
    leave(jobs, slot);
}

void
jobs_wake_carriers(struct jobs *jobs)
{
    bell_ring_carriers(jobs->bell);
}
