/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/rate.h"

#include <time.h>

int64_t
rate_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void
rate_init(struct rate *rate, int64_t lowest, int64_t window_ms)
{
    *rate = (struct rate){.lowest = lowest, .window = window_ms};
}

bool
rate_is_kept(struct rate *rate, int64_t now_ms, int64_t bytes)
{
    if (!rate->since && bytes > 0)
        rate->since = now_ms;
    int64_t ms = now_ms - rate->since;
    if (!rate->lowest || !rate->since || ms < 1 || ms < rate->window)
        return true;
    rate->measured = (bytes - rate->before) * 1000 / ms;
    rate->since = now_ms;
    rate->before = bytes;
    return rate->measured >= rate->lowest;
}
