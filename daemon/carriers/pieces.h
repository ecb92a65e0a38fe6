/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of work that a carrier's thread does: it fetches the inputs of a job, delivers results
   and events, or asks a remote for new versions of models, where no message tells of them. */
#ifndef QDQD_CARRIERS_PIECES_H
#define QDQD_CARRIERS_PIECES_H

#include "carriers/ask.h"
#include "store/outbox.h"

struct hook;
/* Fetches the inputs that the job in the slot of `work` lacks, checks them like an
   upload, and stores them; then ends the fetch in one of the ways of jobs/job.h. */
void fetch_inputs(struct carrier_work *work, const struct store_job *job);

/* Makes one attempt of a claimed delivery and records how it ended. */
void deliver_one(struct carrier_work *work, const struct store_delivery *delivery);

struct polls; /* when each hook asks next */
struct remotes;
struct tenants;

/* Returns NULL when out of memory. */
struct polls *polls_new(void);
void polls_free(struct polls **polls);

/* A hook that is due. */
struct poll {
    struct remotes *remotes; /* has the hook */
    const struct hook *hook;
    int64_t since; /* older versions are known */
};

/*
 * Claims the hook that is due first; the caller then calls poll_hook(). Returns false when none
 * is: *ret_ms is then the time until one is, -1: never, or not before another poll has ended.
 * One remote is asked for one hook at a time.
 */
bool poll_claim(struct polls *polls, struct tenants *tenants, struct poll *ret,
                int64_t *ret_ms);
/* Asks the remote and submits jobs for what is new. */
void poll_hook(struct polls *polls, struct tenants *tenants, struct carrier_work *work,
               struct poll *poll);

#endif
