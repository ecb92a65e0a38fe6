/* SPDX-License-Identifier: Apache-2.0 */
/* What goes, and when: what is older than the settings say, or has no room any more. */
#ifndef QDQD_LIBRARY_SWEEP_H
#define QDQD_LIBRARY_SWEEP_H

#include "library/library.h"

struct settings;

/* Tells the library for how long things are kept, and how much. Also
   while other threads use it. */
void sweep_set_up(struct library *library, const struct settings *settings);

/*
 * Removes some of what is too old at `now`. *ret_more: there is more. What a job needs
 * that has not ended stays.
 */
bool sweep_round(struct library *library, const struct settings *settings, int64_t now,
                 bool *ret_more, struct api_problem *p);

/* Logs that a round failed. */
void sweep_log_failure(struct library *library, const struct api_problem *problem);

#endif
