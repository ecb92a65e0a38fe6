/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps the libraries of all tenants every now and then; the main thread runs it. */
#ifndef QDQD_TENANTS_SWEEPER_H
#define QDQD_TENANTS_SWEEPER_H

#include <signal.h>
#include <stdint.h>

struct settings;
struct tenants;

/* What is done meanwhile, every `ms`; 0: nothing. */
struct sweeper_pulse {
    int64_t ms;
    void (*fn)(void *arg);
    void *arg;
};

/* Sweeps at once and then every now and then, for all tenants, until one of the signals
   comes: which. */
int sweeper_run(struct tenants *tenants, const struct settings *settings,
                const sigset_t *signals, const struct sweeper_pulse *pulse);

#endif
