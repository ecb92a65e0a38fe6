/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings when there may be a job to take, or none will be taken any more: what several
 * `jobs` and the lanes that run them have in common.
 */
#ifndef QDQD_JOBS_BELL_H
#define QDQD_JOBS_BELL_H

#include "base/lock.h"
#include "jobs/gpus.h"

#include <stdint.h>

struct bell {
    struct lock lock;
    pthread_cond_t cond;
    uint64_t rung; /* guarded by lock */
    struct gpus gpus;
};

/* `devices`: as gpu.devices says. */
void bell_init(struct bell *bell, const char *devices);
void bell_fini(struct bell *bell);
void bell_ring(struct bell *bell);
/* How often it has rung: to be asked before looking for a job. */
uint64_t bell_heard(struct bell *bell);
/* Waits until it has rung more often than that. */
void bell_wait(struct bell *bell, uint64_t heard);

#endif
