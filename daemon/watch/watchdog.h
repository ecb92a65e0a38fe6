/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service manager's watchdog (WATCHDOG_USEC). It is told that the daemon lives while it
 * does: the main thread gets round, the databases answer it, and somebody who connects to
 * the listening socket is answered.
 */
#ifndef QDQD_WATCH_WATCHDOG_H
#define QDQD_WATCH_WATCHDOG_H

#include <stdint.h>
#include <sys/socket.h>

struct watchdog {
    int64_t every_ms; /* 0: nobody wants to be told */
    struct sockaddr_storage address;
    socklen_t len;
};

/* `listener` is the listening socket's descriptor. */
void watchdog_open(struct watchdog *ret, int listener);
/* To be called every every_ms; looks, which takes up to a second, and tells. `arg` is the
   watchdog. */
void watchdog_beat(void *arg);

#endif
