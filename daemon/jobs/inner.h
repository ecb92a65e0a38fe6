/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `struct jobs` that its own files share. No other file includes this
   header. */
#ifndef QDQD_JOBS_INNER_H
#define QDQD_JOBS_INNER_H

#include "base/lock.h"
#include "jobs/job.h"
#include "jobs/speeds.h"
#include "store/hints.h"

/* A thread that waits for a job's end, or a watcher of a job's state. A waiter lives
   on the stack of its thread. */
struct waiter {
    const char *id;
    pthread_cond_t cond;
    bool woken;
    int event; /* a watcher's eventfd; -1 for a thread that waits */
    /* Where daemons share the record: the job's version at the last look; "": there was none.
       `looked_at`: the look that is under way is at this waiter's job, too. */
    char version[sizeof((struct store_glance *)0)->version];
    bool looked_at;
    struct waiter *next;
};

struct jobs {
    struct library *library;
    struct store *store;
    const struct settings *settings;
    const char *tenant;      /* the tenant's name in the log */
    struct metrics *metrics; /* NULL: nothing is counted */
    struct bell *bell;       /* rung when a job was queued or draining began */
    struct lock lock;
    /* Held while a lease is looked at, and never while the record is asked. */
    struct lock leases;
    /* Changed with both locks held, so that one of them is enough to look. */
    struct job_slot *slots;
    struct delivery_slot *deliveries;
    bool unanswered; /* the last renewal; only the thread that renews uses it */
    /* guarded by lock: */
    struct waiter *waiters;
    bool draining, stopping;
    struct speeds speeds;
};

/* --- for callers that hold the lock --------------------------------------- */

/* Returns the slot of a running job, or that of a target of it, or NULL when the job does not run.
   The lock of leases is enough. */
struct job_slot *jobs_find_slot(struct jobs *jobs, const char *id);
/* Notifies the watchers of `id` that its state has changed; NULL: the watchers of
   all jobs. */
void jobs_notify(struct jobs *jobs, const char *id);
/* Notifies likewise, and also wakes the threads that wait for the job's end. */
void jobs_wake(struct jobs *jobs, const char *id);
/* Writes that a job in the state `from` has failed. Where the record refuses the problem's text for
   good, a plain one with the same code stands for it. INTERNAL: it refuses that, too. */
bool jobs_write_failure(struct jobs *jobs, const struct job_slot *slot,
                        enum api_job_state from, const struct api_problem *problem,
                        struct store_ended *ret, struct api_problem *p);
/* Counts a job that ended as failed, with or without the lock. */
void jobs_count_failed(struct jobs *jobs, const struct api_problem *problem);
/* Marks the slot's job as unwanted and kills its worker process. The caller holds the
   lock. */
void jobs_give_up(struct jobs *jobs, struct job_slot *slot);
/* Adds an idle slot to the list of jobs that run, with a claim that began at `begun` of the
   steady clock. */
void jobs_add_slot(struct jobs *jobs, struct job_slot *slot,
                   const struct store_job *job, int64_t begun);
/* Returns whether a claim was given up, with or without the lock. */
bool jobs_has_lapsed(struct jobs *jobs, const struct job_lease *lease);
/* Takes a slot off the list, and leaves it idle. */
void jobs_remove_slot(struct jobs *jobs, struct job_slot *slot);

#endif
