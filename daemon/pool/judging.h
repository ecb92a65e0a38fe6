/* SPDX-License-Identifier: Apache-2.0 */
/* The judging process of a lane, which is started when the lane's worker first asks for
   it and ends with that worker. */
#ifndef QDQD_POOL_JUDGING_H
#define QDQD_POOL_JUDGING_H

#include "pool/lane.h"

enum { JUDGING_WHY = 256 };

/* Answers the worker's question for a process that judges: with a socket to it, or with the
   reason why there is none. `again`: the one that its work had has ended. Returns false when the
   worker is gone. */
bool judging_answer(struct lane *lane, bool again, int within_ms);

/* Asks a judging process for its runtime, and ends it. Returns the backend's description, which
   the caller frees; NULL: there is none, and `why` says so. */
char *judging_describe(struct lane *lane, char why[JUDGING_WHY]);

#endif
