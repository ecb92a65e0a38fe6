/* SPDX-License-Identifier: Apache-2.0 */
/* The ways in which a job ends, or goes back to the queue. */
#include "config.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/inner.h"
#include "settings/settings.h"
#include "watch/metrics.h"

#include <string.h>
#include <time.h>

METRIC(ended, COUNTER, "qdqd_jobs_ended_total", &metric_states, ONE,
       "Jobs that ended, without those that were answered or had joined.");
METRIC(failed, COUNTER, "qdqd_job_errors_total", &metric_codes, ONE,
       "Jobs that ended as failed.");
METRIC(requeued, COUNTER, "qdqd_jobs_requeued_total", &metric_unlabelled, ONE,
       "Jobs that went back to the queue because their worker ended.");

/* Notifies the waiters of a job that has ended, of the job of which it is one target, and of the jobs
   that joined it.
   Rings the bell, because one of those may be queued now. Rings for the carriers where there
   may be something to deliver: most jobs have nothing, and looking for it would take three
   threads more time than a small job. */
static void
notify_ended(struct jobs *jobs, const char *id, const char *parent,
             const struct store_ended *ended)
{
    lock_assert_held(&jobs->lock);
    if (*parent)
        jobs_wake(jobs, parent);
    jobs_wake(jobs, ended->joined ? NULL : id);
    if (ended->tells || ended->joined)
        bell_ring_carriers(jobs->bell);
    if (ended->joined)
        bell_ring(jobs->bell);
}

/* --- called by requests -------------------------------------------------- */

/* Changes the record first and kills the process second. A lane that claims the job
   in between has put it into its slot under the lock, so it is found here. */
bool
jobs_cancel(struct jobs *jobs, const char *id, struct api_problem *p)
{
    const struct store_end end = {.state = API_JOB_CANCELLED};
    struct store_job row;
    struct store_ended ended = {0};
    if (!store_job_get(jobs->store, id, &row, p))
        return false;
    enum api_job_state state = row.state;
    char parent[JOB_ID_SIZE];
    memcpy(parent, row.parent, sizeof parent);
    store_job_fini(&row);
    lock_acquire(&jobs->lock);
    bool ok = store_job_end(jobs->store, id, API_JOB_QUEUED, &end, clock_wall_ms(),
                            &ended, p);
    if (ok && !ended.was)
        ok = store_job_end(jobs->store, id, API_JOB_RUNNING, &end, clock_wall_ms(),
                           &ended, p);
    for (struct job_slot *slot = jobs->slots; ok && ended.was && slot;
         slot = slot->next)
        if (strcmp(slot->id, id) == 0 || strcmp(slot->parent, id) == 0)
            jobs_give_up(jobs, slot);
    if (ok && ended.was)
        notify_ended(jobs, id, parent, &ended);
    lock_release(&jobs->lock);
    ok = ok && store_sync(jobs->store, p);
    if (ok && ended.was) {
        store_hint(jobs->store);
        metrics_add(jobs->metrics, &metric_ended, API_JOB_CANCELLED, 1);
        log_info("job_cancelled", "job=%s tenant=%s", id, jobs->tenant);
    }
    if (!ok || ended.was || state == API_JOB_CANCELLED)
        return ok;
    return api_problem_set(p, API_ENDED, QDQ_AT_NOTHING, NULL,
                           "the job has ended already");
}

/* --- called by lanes ----------------------------------------------------- */

/*
 * Waits before another try to write to the store, which may have failed because the
 * disk is full. Returns false when another try is of no use: the store refuses the statement for
 * good, the job is no longer this lane's, or the daemon is stopping, and the next daemon finds the
 * job as the store has it.
 */
static bool
wait_for_store(struct jobs *jobs, const struct job_slot *slot,
               const struct api_problem *problem)
{
    const struct timespec a_while = {1, 0};
    store_log_failure(problem);
    if (problem->code == API_INTERNAL)
        return false;
    nanosleep(&a_while, NULL);
    return !jobs_is_unwanted(jobs, slot) && !jobs_is_draining(jobs);
}

/* Empties the slot after its job has ended or was queued again. Waits until that is
   durable, then notifies the job's waiters and the other lanes. */
static void
release_slot(struct jobs *jobs, struct job_slot *slot, const struct store_ended *ended)
{
    struct api_problem problem = {0};
    char id[JOB_ID_SIZE], parent[JOB_ID_SIZE];
    if (!store_sync(jobs->store, &problem))
        store_log_failure(&problem);
    lock_acquire(&jobs->lock);
    memcpy(id, slot->id, sizeof id);
    memcpy(parent, slot->parent, sizeof parent);
    speeds_add(&jobs->speeds, slot->model, slot->spec, &slot->eta.speed);
    if (slot->device != GPUS_NONE) {
        gpus_give_back(&jobs->bell->gpus, slot->device);
        bell_ring(jobs->bell);
    }
    slot->device = GPUS_NONE;
    if (slot->lends)
        gpus_forgo(&jobs->bell->gpus, &slot->turn);
    slot->lends = false;
    jobs_remove_slot(jobs, slot);
    slot->unwanted = false;
    slot->stage = NULL;
    slot->done = slot->total = 0;
    notify_ended(jobs, id, parent, ended);
    lock_release(&jobs->lock);
    store_hint(jobs->store);
}

/* Keeps what the stages of a job took, none of which was left out. */
static void
keep_speed(struct jobs *jobs, struct job_slot *slot)
{
    lock_acquire(&jobs->lock);
    api_eta_end(&slot->eta, clock_steady_ms());
    lock_release(&jobs->lock);
}

/* Leaves a job to the daemon that has it now, or that had it cancelled. */
static void
leave_refused(struct jobs *jobs, struct job_slot *slot)
{
    log_info("end_refused", "job=%s tenant=%s", slot->id, jobs->tenant);
    release_slot(jobs, slot, &(struct store_ended){0});
}

/* Ends a job whose files cannot be stored. It runs once more when the problem may
   pass. */
static void
end_unstored(struct jobs *jobs, struct job_slot *slot,
             const struct api_problem *problem)
{
    if (problem->code == API_CANCELLED)
        leave_refused(jobs, slot);
    else if (problem->code == API_UNAVAILABLE)
        jobs_put_back(jobs, slot);
    else
        jobs_fail(jobs, slot, problem);
}

void
jobs_succeed(struct jobs *jobs, struct job_slot *slot, const struct job_result *result)
{
    struct job_result fenced = *result;
    struct store_ended ended;
    struct api_problem problem = {0};
    fenced.fence = slot->fence;
    if (!jobs_is_held(jobs, slot, &problem) ||
        !library_job_end(jobs->library, slot->id, &fenced, NULL, &ended, &problem)) {
        end_unstored(jobs, slot, &problem);
        return;
    }
    if (ended.was) {
        metrics_add(jobs->metrics, &metric_ended, API_JOB_SUCCEEDED, 1);
        log_info("job_succeeded", "job=%s tenant=%s", slot->id, jobs->tenant);
    }
    keep_speed(jobs, slot);
    release_slot(jobs, slot, &ended);
    library_sync_many(jobs->library);
}

void
jobs_count_failed(struct jobs *jobs, const struct api_problem *problem)
{
    metrics_add(jobs->metrics, &metric_ended, API_JOB_FAILED, 1);
    metrics_add(jobs->metrics, &metric_failed, problem->code, 1);
}

void
jobs_reject(struct jobs *jobs, struct job_slot *slot, const struct job_result *result,
            const struct api_problem *problem)
{
    struct job_result fenced = *result;
    struct store_ended ended;
    char quoted[LOG_QUOTED];
    struct api_problem store_problem = {0};
    fenced.fence = slot->fence;
    if (!jobs_is_held(jobs, slot, &store_problem) ||
        !library_job_end(jobs->library, slot->id, &fenced, problem, &ended,
                         &store_problem)) {
        end_unstored(jobs, slot, &store_problem);
        return;
    }
    if (ended.was) {
        jobs_count_failed(jobs, problem);
        log_info("job_rejected", "job=%s tenant=%s detail=%s", slot->id, jobs->tenant,
                 log_quote(quoted, problem->detail));
    }
    keep_speed(jobs, slot);
    release_slot(jobs, slot, &ended);
    library_sync_many(jobs->library);
}

bool
jobs_write_failure(struct jobs *jobs, const struct job_slot *slot,
                   enum api_job_state from, const struct api_problem *problem,
                   struct store_ended *ret, struct api_problem *p)
{
    struct api_problem plain = {0};
    struct store_end end = {
        .state = API_JOB_FAILED, .error = problem, .fence = slot->fence};
    if (store_job_end(jobs->store, slot->id, from, &end, clock_wall_ms(), ret, p) ||
        p->code != API_INTERNAL)
        return !p->set;
    store_log_failure(p);
    *p = (struct api_problem){0};
    api_fail(&plain, problem->code,
             "the job failed, and the database refuses the text that says why");
    end.error = &plain;
    return store_job_end(jobs->store, slot->id, from, &end, clock_wall_ms(), ret, p);
}

void
jobs_fail(struct jobs *jobs, struct job_slot *slot, const struct api_problem *problem)
{
    struct api_problem store_problem = {0};
    struct store_ended ended = {0};
    char quoted[LOG_QUOTED];
    while (!jobs_write_failure(jobs, slot, API_JOB_RUNNING, problem, &ended,
                               &store_problem) &&
           wait_for_store(jobs, slot, &store_problem))
        store_problem = (struct api_problem){0};
    if (ended.was) {
        jobs_count_failed(jobs, problem);
        log_info("job_failed", "job=%s tenant=%s code=%s detail=%s", slot->id,
                 jobs->tenant, api_problem_slug(problem->code),
                 log_quote(quoted, problem->detail));
    }
    release_slot(jobs, slot, &ended);
}

/* Puts the job back into the queue, unless it was cancelled meanwhile. */
static void
requeue(struct jobs *jobs, struct job_slot *slot, int charge)
{
    struct api_problem store_problem = {0};
    bool was = false;
    while (!store_job_requeue(jobs->store, slot->id, slot->fence, charge, &was,
                              &store_problem) &&
           wait_for_store(jobs, slot, &store_problem))
        store_problem = (struct api_problem){0};
    if (was) {
        metrics_add(jobs->metrics, &metric_requeued, 0, 1);
        log_info("job_requeued", "job=%s tenant=%s", slot->id, jobs->tenant);
    }
    release_slot(jobs, slot, &(struct store_ended){0});
}

void
jobs_put_back(struct jobs *jobs, struct job_slot *slot)
{
    requeue(jobs, slot, 0);
}

void
jobs_lost(struct jobs *jobs, struct job_slot *slot, const struct store_job *job,
          const char *how)
{
    lock_acquire(&jobs->lock);
    bool is_blameless = jobs->stopping || jobs_has_lapsed(jobs, &slot->lease);
    lock_release(&jobs->lock);
    if (is_blameless) {
        requeue(jobs, slot, 0);
    } else if (job->attempts + 1 < jobs->settings->workers_attempts) {
        requeue(jobs, slot, 1);
    } else {
        struct api_problem problem = {0};
        api_problem_set(&problem, API_WORKER_DIED, QDQ_AT_NOTHING, NULL,
                        "the worker process %s, in attempt %lld of %lld", how,
                        (long long)job->attempts + 1,
                        (long long)jobs->settings->workers_attempts);
        jobs_fail(jobs, slot, &problem);
    }
}

void
jobs_lack_files(struct jobs *jobs, struct job_slot *slot, const struct store_job *job,
                const struct api_problem *problem)
{
    struct api_problem lacking = {0};
    if (job->attempts + 1 < jobs->settings->workers_attempts) {
        requeue(jobs, slot, 1);
        return;
    }
    api_fail(&lacking, API_UNAVAILABLE, "no daemon that tried has the job's files: %s",
             problem->detail);
    jobs_fail(jobs, slot, &lacking);
}
