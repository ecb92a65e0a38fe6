/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs that jobs may use (gpu.devices). Each is leased to one job at a time. Any
 * thread may call.
 *
 * A long job lends its GPU between its steps. A job that waits in the queue then gets
 * it first, for one job; after that the GPU returns to the jobs that lent it, the one
 * that has waited longest first. So the queue does not wait for long jobs, long jobs do
 * not wait for ever for the queue, and several long jobs alternate.
 */
#ifndef QDQD_JOBS_GPUS_H
#define QDQD_JOBS_GPUS_H

#include "base/lock.h"
#include "settings/gpu_list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A job that has lent a GPU and waits to get it back. Its owner keeps it in its own
   memory. */
struct gpus_turn {
    int device;
    struct gpus_turn *next;
};

struct gpus {
    struct lock lock;
    size_t n;
    int devices[GPUS_MOST]; /* numbers as CUDA counts devices */
    /* guarded by lock: */
    bool taken[GPUS_MOST];
    int64_t
        /* steady ms until which a new job gets the device before the jobs that lent
           it */
        offered[GPUS_MOST];
    /* the turns of all devices; the one that has waited longest is first */
    struct gpus_turn *turns;
    bool wanted; /* see gpus_want() */
};

/* `text` was checked by gpus_parse(). */
void gpus_init(struct gpus *gpus, const char *text);
void gpus_fini(struct gpus *gpus);

/* Claims a device that is free and that a new job may have. The device belongs to
   the caller from then on. Returns GPUS_NONE when there is none. */
int gpus_claim(struct gpus *gpus);
/* Confirms a claim: a job was found for the device, which ends the offer to new
   jobs. */
void gpus_keep(struct gpus *gpus, int device);
/* Releases a device. Does nothing for GPUS_NONE. */
void gpus_give_back(struct gpus *gpus, int device);
/* Returns whether there are devices and none of them is free. */
bool gpus_are_claimed(struct gpus *gpus);

/* Records that a job waits for a device and that an idle lane would run it. Holds
   until a device is claimed or lent. */
void gpus_want(struct gpus *gpus);
/* Returns whether a device should be lent: for gpus_want(), or to a job that has
   lent it before. */
bool gpus_is_wanted(struct gpus *gpus, int device);
/* Lends a device that the caller has claimed. *turn must stay in memory until
   gpus_regain() succeeds or gpus_forgo() is called. */
void gpus_lend(struct gpus *gpus, int device, struct gpus_turn *turn);
/* Claims the lent device again, if it is free and it is the caller's turn. Returns
   whether it did. */
bool gpus_regain(struct gpus *gpus, struct gpus_turn *turn);
/* Gives up the turn: the caller does not want the device back. */
void gpus_forgo(struct gpus *gpus, struct gpus_turn *turn);

#endif
