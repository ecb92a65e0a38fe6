/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs that jobs may have (gpu.devices): each is one job's at a time. Any thread may
 * call.
 *
 * A long job lends its GPU between steps. Whoever waits in the queue then has the first
 * call on it, for one job; after that it is the turn of those who lent it, the one that
 * has waited longest first. So the queue does not wait for long jobs, nor they for ever
 * for the queue, and several long ones take turns.
 */
#ifndef QDQD_JOBS_GPUS_H
#define QDQD_JOBS_GPUS_H

#include "base/lock.h"
#include "settings/gpu_list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One who lent a GPU, and wants it back; lives with its owner. */
struct gpus_turn {
    int device;
    struct gpus_turn *next;
};

struct gpus {
    struct lock lock;
    size_t n;
    int devices[GPUS_MOST]; /* as CUDA counts */
    /* guarded by lock: */
    bool taken[GPUS_MOST];
    int64_t
        offered[GPUS_MOST]; /* until then, in steady ms, a new job has the first call */
    struct gpus_turn *turns; /* of all devices, who has waited longest is first */
    bool wanted;             /* see gpus_want() */
};

/* Of a text that can be read. */
void gpus_init(struct gpus *gpus, const char *text);
void gpus_fini(struct gpus *gpus);

/* A device that is free, and to be had by a new job, which is the caller's from then on;
   GPUS_NONE: there is none. */
int gpus_take(struct gpus *gpus);
/* There is a job for what was taken: it had the first call, if that was due. */
void gpus_keep(struct gpus *gpus, int device);
/* GPUS_NONE: nothing. */
void gpus_give_back(struct gpus *gpus, int device);
/* There are some, and none is free. */
bool gpus_are_taken(struct gpus *gpus);

/* A job waits for a device, and somebody is idle who would run it. Holds until a device
   is taken or lent. */
void gpus_want(struct gpus *gpus);
/* Is it to be lent, for that reason or to one who lent it before? */
bool gpus_is_wanted(struct gpus *gpus, int device);
/* Lends what the caller has taken. *turn must stay until it is over. */
void gpus_lend(struct gpus *gpus, int device, struct gpus_turn *turn);
/* Takes it again, when it is free and the caller's turn has come. */
bool gpus_regain(struct gpus *gpus, struct gpus_turn *turn);
/* The caller does not want it back any more. */
void gpus_forgo(struct gpus *gpus, struct gpus_turn *turn);

#endif
