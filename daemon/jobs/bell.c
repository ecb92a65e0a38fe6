/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "jobs/bell.h"

void
bell_init(struct bell *bell, const char *devices)
{
    gpus_init(&bell->gpus, devices);
    pthread_mutex_init(&bell->lock, NULL);
    pthread_cond_init(&bell->cond, NULL);
    bell->rung = 0;
}

void
bell_fini(struct bell *bell)
{
    gpus_fini(&bell->gpus);
    pthread_cond_destroy(&bell->cond);
    pthread_mutex_destroy(&bell->lock);
}

void
bell_ring(struct bell *bell)
{
    pthread_mutex_lock(&bell->lock);
    bell->rung++;
    pthread_cond_broadcast(&bell->cond);
    pthread_mutex_unlock(&bell->lock);
}

uint64_t
bell_heard(struct bell *bell)
{
    pthread_mutex_lock(&bell->lock);
    uint64_t rung = bell->rung;
    pthread_mutex_unlock(&bell->lock);
    return rung;
}

void
bell_wait(struct bell *bell, uint64_t heard)
{
    pthread_mutex_lock(&bell->lock);
    while (bell->rung == heard)
        pthread_cond_wait(&bell->cond, &bell->lock);
    pthread_mutex_unlock(&bell->lock);
}
