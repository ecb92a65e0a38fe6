/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "jobs/bell.h"

void
bell_init(struct bell *bell, const char *devices)
{
    gpus_init(&bell->gpus, devices);
    lock_init(&bell->lock, LOCK_BELL);
    pthread_cond_init(&bell->cond, NULL);
    lock_cond_init(&bell->carriers);
    bell->rung = bell->carrier_rings = 0;
}

void
bell_fini(struct bell *bell)
{
    gpus_fini(&bell->gpus);
    pthread_cond_destroy(&bell->cond);
    pthread_cond_destroy(&bell->carriers);
    lock_fini(&bell->lock);
}

void
bell_ring(struct bell *bell)
{
    lock_acquire(&bell->lock);
    bell->rung++;
    pthread_cond_broadcast(&bell->cond);
    lock_release(&bell->lock);
}

uint64_t
bell_heard(struct bell *bell)
{
    lock_acquire(&bell->lock);
    uint64_t rung = bell->rung;
    lock_release(&bell->lock);
    return rung;
}

void
bell_wait(struct bell *bell, uint64_t heard)
{
    lock_acquire(&bell->lock);
    while (bell->rung == heard)
        lock_wait(&bell->lock, &bell->cond);
    lock_release(&bell->lock);
}

void
bell_ring_carriers(struct bell *bell)
{
    lock_acquire(&bell->lock);
    bell->carrier_rings++;
    pthread_cond_broadcast(&bell->carriers);
    lock_release(&bell->lock);
}

uint64_t
bell_heard_carriers(struct bell *bell)
{
    lock_acquire(&bell->lock);
    uint64_t carrier_rings = bell->carrier_rings;
    lock_release(&bell->lock);
    return carrier_rings;
}

void
bell_wait_carriers(struct bell *bell, uint64_t heard, int64_t deadline_ms)
{
    lock_acquire(&bell->lock);
    while (bell->carrier_rings == heard &&
           lock_wait_until(&bell->lock, &bell->carriers, deadline_ms))
        continue;
    lock_release(&bell->lock);
}
