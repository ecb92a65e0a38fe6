/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane: a thread with one worker process. It starts the process when it first needs
 * one, keeps it warm, and replaces it when it dies or has done workers.max_jobs. No
 * process works for two tenants, so that a process that one tenant took over cannot
 * reach another's work.
 *
 * Unless stated otherwise, these functions are called by the lane's own thread.
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
    const struct settings *settings; /* the daemon's; a tenant has its own */
    struct process process;
    struct process judge;          /* the worker's judging process (judging.h) */
    char judged_by[64];            /* the runtime of that process */
    const struct service *service; /* the tenant of the current or last work */
    /* processes in a row that could not be started, or died before their first work */
    atomic_int failures;
    atomic_bool closing; /* the lane is ending, so it must not wait for anything */
    pthread_t thread;
    bool started;
};

/* Starts the lane's thread, which runs `run` with `arg`. Any thread may call. */
bool lane_start(struct lane *lane, const struct settings *settings,
                struct metrics *metrics, void *(*run)(void *arg), void *arg,
                struct api_problem *p);
/* Waits for the end of the lane's thread, if it was started. Any thread may call. */
void lane_join(struct lane *lane);

/* Ends the lane's processes, if there are any, and waits for them. */
void lane_end(struct lane *lane);

/* Sets the tenant of the next work; another tenant's work gets another process. */
void lane_set_service(struct lane *lane, const struct service *service);

/* --- one request and its answers ------------------------------------------ */

enum outcome { OUTCOME_DONE, OUTCOME_REJECTED, OUTCOME_FAILED, OUTCOME_DIED };

/* Callbacks for the messages of a working process. */
struct lane_events {
    void (*on_progress)(void *arg, const struct message_progress *progress);
    /* Returns whether another job wants the GPU. */
    bool (*gpu_is_wanted)(void *arg);
    /* Lends the GPU and waits until it is back, for *ret_waited ms. Returns false
       when the work must be given up. */
    bool (*lend_gpu)(void *arg, int64_t *ret_waited);
    void *arg;
};

/* Makes sure that the lane has a process with this GPU (GPUS_NONE: none): DONE; FAILED with
   the problem set; or DIED, as below. */
enum outcome lane_start_process(struct lane *lane, int gpu, struct api_problem *p);
/*
 * Sends the request to the lane's process, which must be running, and handles its
 * messages until the work ends: DONE with the text in *ret, which the caller frees;
 * REJECTED with text and problem; FAILED with the problem set; or DIED, after which
 * lane_end_dead() must be called. `events` is NULL for work without a GPU whose
 * progress is not needed.
 */
enum outcome lane_ask(struct lane *lane, const struct message *request,
                      const struct lane_events *events, char **ret,
                      struct api_problem *p);
/*
 * Ends a process after DIED, and writes how it ended to `how`. Returns FAILED with the
 * problem set when it ran out of processor time, because another attempt would, too.
 */
enum outcome lane_end_dead(struct lane *lane, char how[64], struct api_problem *p);

/* --- back-off after failures --------------------------------------------- */

/*
 * Counts a process that died or could not be started: one that died during work is the
 * matter of the tenant whose work it was, whose further work waits; any other is the matter
 * of the machine, and the lane waits.
 */
void lane_count_failure(struct lane *lane);
/* Resets both counts of failures after work was done. */
void lane_count_success(struct lane *lane);
/* The same for the tenant's count alone, where the files of the work could not be kept for
   now, and where they were kept. Any thread may call. */
void lane_count_unfinished(const struct service *service);
void lane_count_finished(const struct service *service);
/* Returns whether the last few processes could not even begin. Any thread may call. */
bool lane_is_failing(const struct lane *lane);
/* Waits before the next process is started when the lane is failing; the delay
   doubles with each failure. Ends early when the daemon stops. */
void lane_back_off(struct lane *lane);

#endif
