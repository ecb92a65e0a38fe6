/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks: what users see, and what timeouts are measured by. */
#ifndef QDQD_BASE_CLOCK_H
#define QDQD_BASE_CLOCK_H

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

#endif
