/* SPDX-License-Identifier: Apache-2.0 */
/* One piece of work of a carrier's thread: a process is started for it, asked, and ended. */
#ifndef QDQD_CARRIERS_ASK_H
#define QDQD_CARRIERS_ASK_H

#include "jobs/job.h"
#include "workers/process.h"

/* The state of a carrier's thread between two pieces of work and during one. `slot` is that
   of the job that it fetches for, and `delivery` that of the delivery that it makes. */
struct carrier_work {
    struct process process;
    struct job_slot slot;
    struct delivery_slot delivery;
    const struct service *service;
    int64_t retry_after; /* seconds that the remote asked to wait; 0: it said nothing */
    /* Steady clock in ms when the process has to have ended, which ends itself before unless
       somebody stopped it; 0: never. `most` is the setting, in seconds. */
    int64_t ends_at, most;
    /* Called now and then while the process works; false ends the work with its problem. NULL:
       nothing is watched. */
    bool (*watch)(void *arg, struct api_problem *p);
    void *watch_arg;
};

/* Prepares `work`, which starts no process yet; `metrics` may be NULL. */
void ask_init(struct carrier_work *work, const struct settings *settings,
              struct metrics *metrics);
/* Frees the members of `work`, whose process has ended. */
void ask_fini(struct carrier_work *work);

/* Starts the process of the next piece of work, which the remote's total_timeout bounds. */
bool ask_start(struct carrier_work *work, const struct message_remote *remote,
               struct api_problem *p);
/*
 * Sends a message and waits for an answer of type `wanted`, which the caller ends. Fails
 * with the carrier's problem, or REMOTE_UNAVAILABLE when the process died, says nothing any
 * more or outlives its time. CANCELLED when it was killed.
 */
bool ask_carrier(struct carrier_work *work, const struct message *request,
                 enum message_type wanted, struct message *ret, struct api_problem *p);
void ask_end(struct carrier_work *work);

/* Returns whether another attempt may succeed. */
bool ask_may_retry(enum api_code code);
/* Returns the milliseconds until the next attempt after `attempts` of them: exponential
   backoff with jitter, or what the remote asked for. */
int64_t ask_wait_ms(const struct carrier_work *work, int64_t attempts);

#endif
