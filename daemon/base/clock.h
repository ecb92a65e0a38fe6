/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks: what users see, and what timeouts are measured by. */
#ifndef QDQD_BASE_CLOCK_H
#define QDQD_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Milliseconds since 1970 UTC. */
static inline int64_t
clock_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Milliseconds since some moment; never goes back. */
static inline int64_t
clock_steady_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The same in microseconds. */
static inline int64_t
clock_steady_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A condition whose timed waits go by clock_steady_ms(). */
static inline void
clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

/* Waits until `deadline_ms` at most; 0, or ETIMEDOUT. */
static inline int
clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t deadline_ms)
{
    struct timespec until = {deadline_ms / 1000, deadline_ms % 1000 * 1000000};
    return pthread_cond_timedwait(cond, lock, &until);
}

#endif
