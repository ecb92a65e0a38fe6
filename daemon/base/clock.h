/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks: the wall clock, which users see, and the steady clock, which
   timeouts are measured by. */
#ifndef QDQD_BASE_CLOCK_H
#define QDQD_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns milliseconds since 1970 UTC. */
static inline int64_t
clock_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns milliseconds since some moment. This clock never goes back. */
static inline int64_t
clock_steady_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns microseconds of the steady clock. */
static inline int64_t
clock_steady_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif
