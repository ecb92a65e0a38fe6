/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of jobs. Every change of a job's state is made here, by these functions, and
 * the store makes no other (store_job_may_change()):
 *
 *                 jobs_claim                 jobs_succeed
 *   jobs_submit       |        +-----------------------------> succeeded
 *       |             v        |
 *       +--> queued ----> running ---------------------------> failed
 *            |    ^        | | |      jobs_fail, jobs_reject (the model missed the spec's
 *            |    |        | | |      accept: it and its report are kept), and jobs_lost
 *            |    |        | | |      after the last attempt
 *            |    |        | | |
 *            |    +--------+ | +----> (the daemon dies: queued again at jobs_open)
 *            |  jobs_lost,   |
 *            |  jobs_put_back, jobs_lack_files
 *            |               |
 *            +---------------+------------------------------> cancelled
 *                               jobs_cancel
 *
 * A job whose inputs come from a remote is queued, without a place, until a carrier has
 * fetched them (jobs_fetch_claim, jobs_fetch_done).
 *
 * A job that was asked before is not run again: jobs_submit makes it succeeded at once, or
 * lets it stand in the queue, without a place, until the job that it joined has ended
 * (store_job_add, store_job_end).
 *
 * A job with several targets is a row that no lane claims, with a job for each target; its state
 * follows theirs, by the record, in the transaction that changes them (store/several/targets.h).
 * jobs_cancel ends all of them.
 *
 * The record is the store: a state is true when it is committed, and whoever comes too
 * late (a lane whose job was cancelled meanwhile) is told that nothing was changed.
 * Beside it stands what need not survive: progress, the speed of earlier runs, and who
 * waits for what.
 *
 * Any thread may call. The order of locks: base/locks.h.
 */
#ifndef QDQD_JOBS_JOB_H
#define QDQD_JOBS_JOB_H

#include "jobs/bell.h"
#include "library/library.h"
#include "store/outbox.h"
#include "store/several/targets.h"
#include "api/eta.h"

struct jobs;
struct metrics;
struct process;
struct settings;

/* A job as it is shown to users. */
struct job_view {
    struct store_job row;
    /* NULL when the job does not run, or has not reported a stage yet */
    const char *stage;
    uint64_t done, total;
    int64_t eta_s;    /* estimated seconds that are left; -1: not known */
    int64_t position; /* place in the queue, from 1; 0: not queued */
    bool
        /* the job is queued and wants a GPU while none is free, or it runs and has
           lent its GPU */
        waits_for_gpu;
};

/* The lease of a claim, guarded by the lock of leases while the claim is in its list. */
struct job_lease {
    int64_t renewed_at; /* steady clock, in ms; when the lease began at the latest */
    bool lapsed;        /* the claim is given up: another daemon may have it */
};

/* A lane's entry in the list of running jobs. Guarded by the lock of `jobs` while it
   is in the list; `id` and `fence` do not change meanwhile, and `process` only with the lock of
   leases, too. */
struct job_slot {
    /* The worker that runs the job; set by the lane while the slot is idle. NULL: the worker
       is done with it (jobs_leave_worker()). */
    struct process *process;
    char id[JOB_ID_SIZE];     /* the running job; "" when the lane is idle */
    char parent[JOB_ID_SIZE]; /* the job of which it is one target; "": none */
    int device;               /* the GPU that is leased to the job; GPUS_NONE: none */
    bool lends;               /* the job has lent its GPU and waits to get it back */
    struct gpus_turn turn;    /* its place among the jobs that lent a GPU */
    int64_t fence;            /* the claim (store_job.fence) */
    struct job_lease lease;
    bool unwanted; /* the job was cancelled, or the daemon is stopping */
    const char *stage;
    uint64_t done, total;
    struct api_eta eta;
    char model[DIGEST_SIZE]; /* the model that `eta` is about */
    uint64_t spec;           /* and its spec: see speeds_spec() */
    struct job_slot *next;
};

/* A carrier's entry in the list of deliveries under way, which does not change while it is in
   the list, but for its lease. */
struct delivery_slot {
    /* the process that delivers; set by the carrier before its thread starts */
    struct process *process;
    char id[DELIVERY_ID_SIZE]; /* the delivery; "" when the carrier is idle */
    int64_t fence;             /* the claim (store_delivery.fence) */
    struct job_lease lease;
    struct delivery_slot *next;
};

/* Opens the jobs of a library and puts those back into the queue that ran when an
   earlier daemon ended. All arguments but `ret` are borrowed. */
bool jobs_open(struct library *library, const struct settings *settings,
               struct bell *bell, struct jobs **ret, struct api_problem *p);
void jobs_close(struct jobs **jobs);
/* Sets the tenant that the log names and the metrics that count its jobs. Both are
   borrowed. Called before other threads use `jobs`. */
void jobs_name(struct jobs *jobs, const char *tenant, struct metrics *metrics);

/* --- for requests -------------------------------------------------------- */

/* Checks whether a job would be accepted now. DRAINING, QUEUE_FULL. */
bool jobs_check_room(struct jobs *jobs, struct api_problem *p);
bool jobs_is_draining(struct jobs *jobs);
/*
 * Queues a job with the members of `request` that a client can set and those that
 * follow from them (store/derive.h), and writes its id to `id`. A job with the same key
 * is not queued again: `id` is then the earlier job's. Where an earlier job has the
 * same identity, the new one is answered with its result, or joins it and ends when it
 * ends. The job is durable when this returns. IDEMPOTENCY_MISMATCH.
 */
bool jobs_submit(struct jobs *jobs, const struct store_job *request,
                 const struct store_asking *asking, char id[JOB_ID_SIZE],
                 struct api_problem *p);
/* Queues a job with several targets (store/several/targets.h) in the same way: `targets` are as `request`,
   each with its spec and identity. The number of targets is what the queue has to have room for. */
bool jobs_submit_targets(struct jobs *jobs, const struct store_job *request,
                         const struct store_asking *asking,
                         const struct store_target *targets, size_t n,
                         char id[JOB_ID_SIZE], struct api_problem *p);
/* Finds the job that was submitted with a key, if there is one. IDEMPOTENCY_MISMATCH
   when the request of that job differs from `asked`; NULL skips this comparison. */
bool jobs_find_key(struct jobs *jobs, const char *key, const char *asked,
                   char id[JOB_ID_SIZE], bool *ret_any, struct api_problem *p);
bool jobs_get(struct jobs *jobs, const char *id, struct job_view *ret,
              struct api_problem *p);
/* Reads the job like jobs_get(), but waits at most `seconds` for its end. While the
   daemon drains it waits only for a job that runs. */
bool jobs_wait(struct jobs *jobs, const char *id, int seconds, struct job_view *ret,
               struct api_problem *p);
/* Adds the members that the store does not have to a row. *ret takes ownership of
   the row. */
bool jobs_view(struct jobs *jobs, struct store_job *row, struct job_view *ret,
               struct api_problem *p);
/* Fills the members of a view that change while the job runs. Returns false and changes
   nothing for a job that does not run here. */
bool jobs_view_progress(struct jobs *jobs, const char *id, struct job_view *ret);
/* Cancels a job. ENDED when the job has ended already, NOT_FOUND. */
bool jobs_cancel(struct jobs *jobs, const char *id, struct api_problem *p);
void job_view_fini(struct job_view *view);

/* --- for watchers -------------------------------------------------------- */

/* A watcher, which is notified of each change of a job's state. One thread at a time
   uses it. */
struct job_watch;

bool jobs_watch(struct jobs *jobs, const char *id, struct job_watch **ret,
                struct api_problem *p);
/* Returns a descriptor that is readable when the job may have changed since
   job_watch_clear(). It is borrowed. */
int job_watch_fd(const struct job_watch *watch);
/*
 * Clears the notification. Called before the job is read, so that no later change is
 * missed. Returns false when waiting is of no use after that read, because the daemon
 * drains and the job does not run.
 */
bool job_watch_clear(struct jobs *jobs, struct job_watch *watch);
void jobs_unwatch(struct jobs *jobs, struct job_watch **watch);

/* --- for the lanes that run jobs ------------------------------------------ */

/*
 * Claims the next job that can run into an idle slot, with a GPU when the job wants
 * one. *ret_any is false when there is no such job. Only one at a time of the threads that
 * share a bell may call.
 */
bool jobs_claim(struct jobs *jobs, struct job_slot *slot, struct store_job *ret,
                bool *ret_any, struct api_problem *p);
void jobs_progress(struct jobs *jobs, struct job_slot *slot,
                   const struct qdq_progress *progress);
/* Takes the slot's worker away, which is done with the job and may run another. From now on it
   is not killed when this job is cancelled. */
void jobs_leave_worker(struct jobs *jobs, struct job_slot *slot);
/* Returns whether the slot's job was cancelled or the daemon is stopping. The lane
   asks once its process has started; a later cancellation kills the process as well. */
bool jobs_is_unwanted(struct jobs *jobs, const struct job_slot *slot);
/* Asks the record whether the claim is still the slot's, before files are stored for it.
   CANCELLED: it is not, because the job was cancelled or the lease was lost. */
bool jobs_is_held(struct jobs *jobs, struct job_slot *slot, struct api_problem *p);
/* Returns whether the slot's GPU should be lent to another job for a while. */
bool jobs_gpu_is_wanted(struct jobs *jobs, const struct job_slot *slot);
/* Lends the slot's GPU. The slot has none until jobs_regain_gpu() succeeds; the job
   may end before that. */
void jobs_lend_gpu(struct jobs *jobs, struct job_slot *slot);
/* Tries to get the lent GPU back. The lane calls it repeatedly until it returns
   true. */
bool jobs_regain_gpu(struct jobs *jobs, struct job_slot *slot);
/* Each of these ends the slot's job in one way, or finds that it was cancelled, and
   leaves the slot idle. */
void jobs_succeed(struct jobs *jobs, struct job_slot *slot,
                  const struct job_result *result);
/* Ends the job as failed because its model missed the spec's accept. Model and
   report are kept. */
void jobs_reject(struct jobs *jobs, struct job_slot *slot,
                 const struct job_result *result, const struct api_problem *problem);
void jobs_fail(struct jobs *jobs, struct job_slot *slot,
               const struct api_problem *problem);
/* Puts the job back into the queue after a temporary problem kept it from starting. */
void jobs_put_back(struct jobs *jobs, struct job_slot *slot);
/* The job's files are not here, and other daemons share its record: it is queued again for them, or
   fails as UNAVAILABLE after its last attempt. */
void jobs_lack_files(struct jobs *jobs, struct job_slot *slot,
                     const struct store_job *job, const struct api_problem *problem);
/* The worker died; `how` says in what way. The job is queued again, or fails after
   its last attempt. */
void jobs_lost(struct jobs *jobs, struct job_slot *slot, const struct store_job *job,
               const char *how);

/* --- for the carriers ------------------------------------------------------ */

/* Claims the next job whose inputs are to be fetched into an idle slot. A job that is
   cancelled meanwhile has its carrier's process killed, as a worker's. */
bool jobs_fetch_claim(struct jobs *jobs, struct job_slot *slot, struct store_job *ret,
                      bool *ret_any, struct api_problem *p);
void jobs_fetch_progress(struct jobs *jobs, struct job_slot *slot, uint64_t done,
                         uint64_t total);
/* Each of these ends the fetch and leaves the slot idle. */
/* Stores what was fetched (store_fetch_done()): the job waits for a lane, or is answered. */
void jobs_fetch_done(struct jobs *jobs, struct job_slot *slot,
                     const struct store_job *job, const char *identity);
/* Ends the job as failed. */
void jobs_fetch_fail(struct jobs *jobs, struct job_slot *slot,
                     const struct api_problem *problem);
/* Tries again in `wait_ms`; `charge` is added to the attempts. */
void jobs_fetch_later(struct jobs *jobs, struct job_slot *slot, int charge,
                      int64_t wait_ms);
/* Claims the delivery that is due first into an idle slot. *ret_any is false when there
   is none. The delivery ends by store/outbox.h, before jobs_delivery_leave(). */
bool jobs_delivery_claim(struct jobs *jobs, struct delivery_slot *delivery,
                         struct store_delivery *ret, bool *ret_any,
                         struct api_problem *p);
/* Asks the record whether the claim is still valid, before bytes leave this machine.
   CANCELLED: it is not. */
bool jobs_delivery_is_held(struct jobs *jobs, struct delivery_slot *delivery,
                           struct api_problem *p);
/* Logs that a change of the delivery came too late. */
void jobs_delivery_refused(struct jobs *jobs, const struct delivery_slot *delivery);
/* Leaves the slot idle. */
void jobs_delivery_leave(struct jobs *jobs, struct delivery_slot *delivery);
/* Wakes the carriers, because there may be something to deliver. */
void jobs_wake_carriers(struct jobs *jobs);

/* --- where daemons share a record ------------------------------------------ */

/* Renews the leases of running jobs and deliveries, and gives those up that were cancelled by another
   daemon, or whose lease was lost. Requeues jobs of daemons that are gone. Returns false, and leaves
   off, when the record does not answer. */
bool jobs_renew(struct jobs *jobs);
/* Gives up the jobs and deliveries whose lease is about to end because it could not be renewed.
   Waits neither for the record nor for a thread that waits for it. */
void jobs_check_leases(struct jobs *jobs, int64_t lease_ms);
/* Returns the number of jobs that this daemon runs, or whose inputs it fetches. */
int64_t jobs_count_running(struct jobs *jobs);
/* Looks at what other daemons may have changed: wakes who waits for a job that has changed, and the
   lanes when a job waits for one. */
void jobs_look(struct jobs *jobs);

/* --- the end -------------------------------------------------------------- */

/* From now on no job is accepted and no queued job is claimed. */
void jobs_drain(struct jobs *jobs);
/* Returns whether no job runs. */
bool jobs_are_idle(struct jobs *jobs);
/* Kills the workers of running jobs, which go back to the queue. Called after
   jobs_drain(). */
void jobs_stop(struct jobs *jobs);

#endif
