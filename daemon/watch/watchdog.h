/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service manager's watchdog (WATCHDOG_USEC). It is notified as long as the daemon
 * works: the main thread runs its loop, the databases answer it, and a connection to
 * the listening socket is answered.
 */
#ifndef QDQD_WATCH_WATCHDOG_H
#define QDQD_WATCH_WATCHDOG_H

#include <stdint.h>
#include <sys/socket.h>

struct watchdog {
    /* milliseconds between two checks; 0: no watchdog is configured */
    int64_t every_ms;
    struct sockaddr_storage address;
    socklen_t len;
};

/* `listener` is the listening socket's descriptor. */
void watchdog_open(struct watchdog *ret, int listener);
/* Checks the daemon, which takes up to a second, and notifies the watchdog. Called
   every every_ms; `arg` is the watchdog. */
void watchdog_beat(void *arg);

#endif
