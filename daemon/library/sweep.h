/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes jobs and files that are older than the settings allow, or that there is no
   room for. */
#ifndef QDQD_LIBRARY_SWEEP_H
#define QDQD_LIBRARY_SWEEP_H

#include "library/library.h"

struct settings;

/* Sets the library's retention and limits from the settings. Other threads may use
   the library meanwhile. */
void sweep_set_up(struct library *library, const struct settings *settings);

/* Removes some of the jobs and files that are too old at `now`. *ret_more is whether
   there are more. Keeps the files of unfinished jobs. */
bool sweep_round(struct library *library, const struct settings *settings, int64_t now,
                 bool *ret_more, struct api_problem *p);

/* Logs that a round failed. */
void sweep_log_failure(struct library *library, const struct api_problem *problem);

#endif
