/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: a thread with one worker process. It starts the process when it first needs one,
 * keeps it warm and replaces it when it dies or has done workers.max_jobs. No process
 * works for two tenants: what one has done to it is no matter of another's.
 *
 * The lane's own thread calls these functions, if nothing else is said.
 */
#ifndef QDQD_POOL_LANE_H
#define QDQD_POOL_LANE_H

#include "workers/message.h"
#include "workers/process.h"

#include <stdatomic.h>

struct metrics;
struct service;
struct settings;

struct lane {
    const struct settings *settings; /* those of the daemon; a tenant has its own */
    struct process process;
    const struct service *service; /* the tenant whose work it does, or did last */
    atomic_int failures; /* in a row: processes that died, or could not be started */
    atomic_bool closing; /* the lane is to end, so it waits for nothing */
    pthread_t thread;
    bool started;
};

/* Any thread. Starts the lane's thread, which runs `run` with `arg`. */
bool lane_start(struct lane *lane, const struct settings *settings,
                struct metrics *metrics, void *(*run)(void *arg), void *arg,
                struct api_problem *p);
/* Any thread. Waits for the end of the lane's thread, if it was started. */
void lane_join(struct lane *lane);

/* The next work is that of `service`: another tenant's gets another process. */
void lane_set_service(struct lane *lane, const struct service *service);

/* --- one request and its answers ------------------------------------------ */

enum outcome { OUTCOME_DONE, OUTCOME_REJECTED, OUTCOME_FAILED, OUTCOME_DIED };

/* Answers to what a worker says and asks while it works. */
struct lane_events {
    void (*on_progress)(void *arg, const struct message_progress *progress);
    /* Is the worker to lend its GPU? */
    bool (*gpu_is_wanted)(void *arg);
    /* Lends the GPU and waits until it is back, for *ret_waited ms. False: the work is to
       be given up. */
    bool (*lend_gpu)(void *arg, int64_t *ret_waited);
    void *arg;
};

/*
 * Sends the request to the lane's process, which has been started, and follows it to its
 * end: DONE with the text in *ret, which the caller frees; REJECTED with text and problem;
 * FAILED with the problem set; or DIED, when lane_end_dead() is to be called. `events`
 * is NULL for work that has no GPU and whose progress is of no interest.
 */
enum outcome lane_ask(struct lane *lane, const struct message *request,
                      const struct lane_events *events, char **ret,
                      struct api_problem *p);
/*
 * Ends a process after DIED, and writes how it ended to `how`. FAILED with the problem set
 * when it was out of processor time: another try would take as long.
 */
enum outcome lane_end_dead(struct lane *lane, char how[64], struct api_problem *p);

/* --- when one process after the other dies -------------------------------- */

/* Counts that a process died, or could not be started. */
void lane_count_failure(struct lane *lane);
/* Work was done: from now on failures are counted from the first again. */
void lane_count_success(struct lane *lane);
/* Any thread. Have the last few processes died, one after the other? */
bool lane_is_failing(const struct lane *lane);
/* Waits before the next process when the lane is failing, each time longer. Ends early when
   the daemon stops. */
void lane_back_off(struct lane *lane);

#endif
