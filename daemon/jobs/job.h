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
 *            |  jobs_put_back|
 *            |               |
 *            +---------------+------------------------------> cancelled
 *                               jobs_cancel
 *
 * A job that was asked before is not run again: jobs_submit makes it succeeded at once, or
 * lets it stand in the queue, without a place, until the job that it joined has ended
 * (store_job_add, store_job_end).
 *
 * The record is the store: a state is true when it is committed, and whoever comes too
 * late (a lane whose job was cancelled meanwhile) is told that nothing was changed.
 * Beside it stands what need not survive: progress, the pace of earlier runs, and who
 * waits for what.
 *
 * Any thread may call. The order of locks: base/locks.h.
 */
#ifndef QDQD_JOBS_JOB_H
#define QDQD_JOBS_JOB_H

#include "jobs/bell.h"
#include "library/library.h"
#include "api/eta.h"

struct jobs;
struct metrics;
struct process;
struct settings;

/* A job as it can be shown. */
struct job_view {
    struct store_job row;
    const char *stage; /* NULL when it is not running or has not said anything */
    uint64_t done, total;
    int64_t eta_s;    /* seconds that are left; -1: not known */
    int64_t position; /* in the queue; 0: not queued */
    bool
        waits_for_gpu; /* it is queued, and no GPU is free that it wants; or it runs, and
                         * has lent its GPU */
};

/* A lane's place in the list of running jobs, while it has one. Guarded by the lock of
   jobs. */
struct job_slot {
    struct process *process; /* what runs the job; set by the lane before its start */
    char id[JOB_ID_SIZE];    /* "" when idle */
    int device;              /* the GPU that is the job's while it runs; GPUS_NONE */
    bool lends;              /* it has lent its GPU, and waits for its turn */
    struct gpus_turn turn;   /* of that */
    bool unwanted;           /* the job was cancelled, or the daemon stops */
    const char *stage;
    uint64_t done, total;
    struct api_eta eta;
    char model[DIGEST_SIZE]; /* whose pace this is */
    struct job_slot *next;
};

/* Puts running jobs of an earlier life back into the queue. All but `ret` is borrowed. */
bool jobs_open(struct library *library, const struct settings *settings,
               struct bell *bell, struct jobs **ret, struct api_problem *p);
void jobs_close(struct jobs **jobs);
/* Whose they are, for the log, and where they are counted. Borrowed; to be said before
   other threads call. */
void jobs_name(struct jobs *jobs, const char *tenant, struct metrics *metrics);

/* --- for those who ask ---------------------------------------------------- */

/* Would a job be taken now? DRAINING, QUEUE_FULL. */
bool jobs_check_room(struct jobs *jobs, struct api_problem *p);
bool jobs_is_draining(struct jobs *jobs);
/*
 * Queues a job of `request`'s model, calibration, spec, labels, priority and fresh; the id
 * is written to `id`. Where the same was asked before, it is answered from what is there,
 * or ends when the job ends that is on its way to the same result; with the same key it is
 * that very job. It is durable when this returns. IDEMPOTENCY_MISMATCH.
 */
bool jobs_submit(struct jobs *jobs, const struct store_job *request,
                 const struct store_asking *asking, char id[JOB_ID_SIZE],
                 struct api_problem *p);
/*
 * The job that was submitted with a key, if any. IDEMPOTENCY_MISMATCH when something else
 * was asked with it than `asked`; NULL: that does not matter.
 */
bool jobs_find_key(struct jobs *jobs, const char *key, const char *asked,
                   char id[JOB_ID_SIZE], bool *ret_any, struct api_problem *p);
bool jobs_get(struct jobs *jobs, const char *id, struct job_view *ret,
              struct api_problem *p);
/*
 * The same, but waits for the job's end, at most `seconds`; while the daemon drains
 * only for a job that runs.
 */
bool jobs_wait(struct jobs *jobs, const char *id, int seconds, struct job_view *ret,
               struct api_problem *p);
/* Adds what the store does not know to a row, which is taken over. */
bool jobs_view(struct jobs *jobs, struct store_job *row, struct job_view *ret,
               struct api_problem *p);
/* What of a view the store does not know, at this moment; nothing of a job that does not
   run. */
void jobs_view_progress(struct jobs *jobs, const char *id, struct job_view *ret);
/* ENDED when it is too late, NOT_FOUND. */
bool jobs_cancel(struct jobs *jobs, const char *id, struct api_problem *p);
void job_view_fini(struct job_view *view);

/* --- for those who watch -------------------------------------------------- */

/* One who is told of each change of a job's state. Used by one thread at a time. */
struct job_watch;

bool jobs_watch(struct jobs *jobs, const char *id, struct job_watch **ret,
                struct api_problem *p);
/* Readable when the job may have changed since job_watch_clear(); borrowed. */
int job_watch_fd(const struct job_watch *watch);
/*
 * To be called before the job is looked at, so that no change is missed. False: there is
 * no use in waiting after that look, because the daemon drains and the job does not run.
 */
bool job_watch_clear(struct jobs *jobs, struct job_watch *watch);
void jobs_unwatch(struct jobs *jobs, struct job_watch **watch);

/* --- for the lanes that run jobs ------------------------------------------ */

/* Takes the next job that can run into an idle slot, with a GPU when it wants one.
   *ret_any is false when there is none to take. One thread at a time of those that share
   a bell. */
bool jobs_claim(struct jobs *jobs, struct job_slot *slot, struct store_job *ret,
                bool *ret_any, struct api_problem *p);
void jobs_progress(struct jobs *jobs, struct job_slot *slot,
                   const struct qdq_progress *progress);
/*
 * Is the slot's job to be given up? To be asked when its process is there: from then on
 * the process is killed as well.
 */
bool jobs_is_unwanted(struct jobs *jobs, const struct job_slot *slot);
/* Is the slot's GPU to be lent, for a while, to another job? */
bool jobs_gpu_is_wanted(struct jobs *jobs, const struct job_slot *slot);
/* Lends it. Until it was regained the slot has none; the job may end meanwhile. */
void jobs_lend_gpu(struct jobs *jobs, struct job_slot *slot);
/* To be asked again and again: is it the slot's now? */
bool jobs_regain_gpu(struct jobs *jobs, struct job_slot *slot);
/* Each ends the slot's job one way, or finds it cancelled, and leaves the slot idle. */
void jobs_succeed(struct jobs *jobs, struct job_slot *slot,
                  const struct job_result *result);
/* Failed for what was made: model and report are kept, for those who ask for them. */
void jobs_reject(struct jobs *jobs, struct job_slot *slot,
                 const struct job_result *result, const struct api_problem *problem);
void jobs_fail(struct jobs *jobs, struct job_slot *slot,
               const struct api_problem *problem);
/* The job could not be begun, for what may pass: it waits again. */
void jobs_put_back(struct jobs *jobs, struct job_slot *slot);
/* The worker died; `how` says in what way. */
void jobs_lost(struct jobs *jobs, struct job_slot *slot, const struct store_job *job,
               const char *how);

/* --- the end -------------------------------------------------------------- */

/* From now on no job is taken or started. */
void jobs_drain(struct jobs *jobs);
/* Do no jobs run? */
bool jobs_are_idle(struct jobs *jobs);
/* After jobs_drain(): ends the workers of running jobs, which go back to the queue. */
void jobs_stop(struct jobs *jobs);

#endif
