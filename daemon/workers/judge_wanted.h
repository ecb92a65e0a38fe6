/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of a judging process: it asks the daemon for a socket to one. */
#ifndef QDQD_WORKERS_JUDGE_WANTED_H
#define QDQD_WORKERS_JUDGE_WANTED_H

#include <stdbool.h>

#include "qdq/judge.h"

/* Has the engine get judging processes from the daemon: for the runtimes that need one, and for those
   with a runner, which `runners` names with commas between. *gone is set when the daemon is. The
   caller frees the result with free() behind the engine; NULL when out of memory. */
struct judge_wanted *judge_wanted_new(struct qdq_engine *engine, const char *runners,
                                      bool *gone);

#endif
