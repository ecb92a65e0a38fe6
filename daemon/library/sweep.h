/* SPDX-License-Identifier: Apache-2.0 */
/* What goes, and when: what is older than the settings say, or has no room any more. */
#ifndef QDQD_SWEEP_H
#define QDQD_SWEEP_H

#include "library/library.h"

#include <signal.h>

struct settings;
struct tenants;

/* Tells the library for how long things are kept, and how much. Also
   while other threads use it. */
void sweep_set_up(struct library *library, const struct settings *settings);

/*
 * Removes some of what is too old at `now`. *ret_more: there is more. What a job needs
 * that has not ended stays.
 */
bool sweep_round(struct library *library, const struct settings *settings, int64_t now,
                 bool *ret_more, struct api_problem *p);

/* What is done meanwhile, every `ms`; 0: nothing. */
struct sweep_pulse {
    int64_t ms;
    void (*fn)(void *arg);
    void *arg;
};

/* Sweeps at once and then every now and then, for all tenants, until one of the signals
   comes: which. */
int sweep_until(struct tenants *tenants, const struct settings *settings,
                const sigset_t *signals, const struct sweep_pulse *pulse);

#endif
