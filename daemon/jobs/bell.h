/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A counter with a condition variable, which all `jobs` and lanes share. It is
 * incremented ("rung") when there may be a job to claim, and when no more jobs will be
 * claimed. A second counter is for the carriers: it is incremented when there may be
 * something to fetch or to deliver.
 */
#ifndef QDQD_JOBS_BELL_H
#define QDQD_JOBS_BELL_H

#include "base/lock.h"
#include "jobs/gpus.h"

#include <stdint.h>

struct bell {
    struct lock lock;
    pthread_cond_t cond;
    pthread_cond_t carriers;
    uint64_t rung, carrier_rings; /* guarded by lock */
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

/* The same for the carriers. They wait until `deadline_ms` of clock_steady_ms() at most. */
void bell_ring_carriers(struct bell *bell);
uint64_t bell_heard_carriers(struct bell *bell);
void bell_wait_carriers(struct bell *bell, uint64_t heard, int64_t deadline_ms);

#endif
