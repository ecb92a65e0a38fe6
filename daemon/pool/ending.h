/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of a lane's jobs. Most of the end of a job is waiting for the disk, which needs no
 * worker. So the lane gives the end to another thread and runs the next job meanwhile, and
 * ends that wait at the same time share the syncs of the record. A job counts as running
 * until it has ended.
 *
 * Unless stated otherwise, these functions are called by the lane's own thread.
 */
#ifndef QDQD_POOL_ENDING_H
#define QDQD_POOL_ENDING_H

#include "base/lock.h"
#include "jobs/job.h"
#include "pool/lane.h"
#include "pool/model_fds.h"

/* The files of one job while it runs. */
struct work {
    struct message request;
    struct model_fds model;
    int dataset, evaluation, metric; /* -1: none */
    struct spool *output, *report, *frozen, *data;
    struct spool *observed; /* NULL: nothing is observed */
    char kept[DIGEST_SIZE]; /* blob with the observations of earlier jobs; "": none */
    struct spool *times;    /* NULL: no times are measured, or kept */
    char times_key[DIGEST_SIZE], kept_times[DIGEST_SIZE]; /* likewise */
    int journal;                                          /* -1: none */
    char journaled
        [JOB_ID_SIZE]; /* the job that it is of, also after it was closed; "": none */
};

/* The files of a job that its worker writes. */
enum {
    LENT_OUTPUT,
    LENT_REPORT,
    LENT_FROZEN,
    LENT_DATA,
    LENT_OBSERVED,
    LENT_TIMES,
    N_LENT
};

enum ending_state { ENDING_IDLE, ENDING_TAKEN, ENDING_GIVEN };

/* One job of a lane, from its claim to its end. The lane uses it until the end is given to
   the thread, which uses it from then on. */
struct ending {
    struct job_slot slot;
    struct work work;
    /* Only the worker processes of this lane get them, one after the other, so none can
       change what another one writes. -1: there is none. */
    int lent[N_LENT];
    const struct service *lent_by; /* whose folder they are in */
    const struct service *service;
    enum outcome outcome; /* DONE or REJECTED */
    char *summary;        /* owned */
    struct api_problem problem;
    struct endings *endings;
    pthread_t thread;
    bool started;
    pthread_cond_t given;
    enum ending_state state; /* guarded by the lock of `endings` */
};

enum { MOST_ENDINGS = 3 };

struct endings {
    struct process *process; /* the lane's */
    struct lock lock;
    pthread_cond_t idle;
    bool closing; /* guarded by lock */
    struct ending each[MOST_ENDINGS];
};

/* Called before the lane's thread starts. The process is borrowed. */
void endings_init(struct endings *endings, struct process *process);
/* Waits for all ends that were given, and for their threads. */
void endings_fini(struct endings *endings);

/* Returns an idle one for the next job; waits until there is one. */
struct ending *endings_take(struct endings *endings);
/* Gives one back whose job has ended, or that got none. */
void ending_leave(struct ending *ending);
/* Ends the job with its outcome, here and now, but does not give `ending` back. */
void ending_finish(struct ending *ending);
/* Has another thread do both; without a thread it happens here. */
void ending_give(struct ending *ending);

/* Names the full disk as the reason of an I/O error, because the engine only knows that a
   write failed. */
void ending_report_full_disk(const struct ending *ending, struct api_problem *p);

/* Opens the file that a job's worker writes, empty, as a spool. */
bool ending_lend(struct ending *ending, size_t which, struct spool **ret,
                 struct api_problem *p);
/* Closes the files of the job. */
void ending_close(struct ending *ending);
/* Removes the journal of the job, if it has ended. */
void ending_settle_journal(struct ending *ending);

#endif
