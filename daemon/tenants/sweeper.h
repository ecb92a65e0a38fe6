/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps the libraries of all tenants at intervals. The main thread runs it. */
#ifndef QDQD_TENANTS_SWEEPER_H
#define QDQD_TENANTS_SWEEPER_H

#include <signal.h>
#include <stdint.h>

struct settings;
struct tenants;

/* A function that is called every `ms` milliseconds while the sweeper waits; 0:
   none. */
struct sweeper_pulse {
    int64_t ms;
    void (*fn)(void *arg);
    void *arg;
};

/* Sweeps the libraries of all tenants at once and then at intervals, until one of
   the signals arrives. Returns that signal. */
int sweeper_run(struct tenants *tenants, const struct settings *settings,
                const sigset_t *signals, const struct sweeper_pulse *pulse);

#endif
