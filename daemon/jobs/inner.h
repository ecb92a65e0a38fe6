/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of `struct jobs`, and used by nobody else. */
#ifndef QDQD_JOBS_INNER_H
#define QDQD_JOBS_INNER_H

#include "base/lock.h"
#include "jobs/job.h"
#include "jobs/paces.h"

/* One who waits for a job's end, and lives on that thread's stack, or one who watches
   it. */
struct waiter {
    const char *id;
    pthread_cond_t cond;
    bool woken;
    int event; /* of one who watches: an eventfd; else -1 */
    struct waiter *next;
};

struct jobs {
    struct library *library;
    struct store *store;
    const struct settings *settings;
    const char *tenant;      /* as the log has it */
    struct metrics *metrics; /* NULL: nothing is counted */
    struct bell *bell;       /* a job was queued, or draining began */
    struct lock lock;
    /* guarded by lock: */
    struct job_slot *slots;
    struct waiter *waiters;
    bool draining, stopping;
    struct paces paces;
};

/* --- for callers that hold the lock --------------------------------------- */

/* The slot of a running job; NULL: it does not run. */
struct job_slot *jobs_find_slot(struct jobs *jobs, const char *id);
/* Notifies those who watch `id` that its state has changed; NULL: those of all jobs. */
void jobs_notify(struct jobs *jobs, const char *id);
/* The same, and wakes those who wait for its end. */
void jobs_wake(struct jobs *jobs, const char *id);
/* The slot's job is wanted no more: kills its process. */
void jobs_give_up(struct job_slot *slot);

#endif
