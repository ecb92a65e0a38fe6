/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A counter with a condition variable, which all `jobs` and lanes share. It is
 * incremented ("rung") when there may be a job to claim, and when no more jobs will be
 * claimed.
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

/* `devices` is the text of the setting gpu.devices. */
void bell_init(struct bell *bell, const char *devices);
void bell_fini(struct bell *bell);
void bell_ring(struct bell *bell);
/* Returns how often the bell has rung. A lane asks before it looks for a job, so
   that it misses no later one. */
uint64_t bell_heard(struct bell *bell);
/* Waits until the bell has rung more often than `heard` times. */
void bell_wait(struct bell *bell, uint64_t heard);

#endif
