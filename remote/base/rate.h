/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rate of one transfer, measured over windows of time that follow each other. libcurl's own
 * lowest speed looks at the last five seconds: a few bytes now and then would satisfy it.
 */
#ifndef REMOTE_BASE_RATE_H
#define REMOTE_BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct rate {
    int64_t lowest;   /* bytes a second; 0: any rate */
    int64_t window;   /* ms */
    int64_t since;    /* when this window began; 0: no byte has moved */
    int64_t before;   /* bytes that had moved then */
    int64_t measured; /* bytes a second of the last window that ended */
};

/* Returns the ms of the monotonic clock. */
int64_t rate_clock_ms(void);

void rate_init(struct rate *rate, int64_t lowest, int64_t window_ms);
/* Returns whether a transfer of which `bytes` have moved until `now_ms` keeps its lowest rate.
   The first window begins with the first byte. */
bool rate_is_kept(struct rate *rate, int64_t now_ms, int64_t bytes);

#endif
