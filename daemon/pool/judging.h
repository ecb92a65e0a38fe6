/* SPDX-License-Identifier: Apache-2.0 */
/* The judging process of a lane, which is started when the lane's worker first asks for
   it and ends with that worker. */
#ifndef QDQD_POOL_JUDGING_H
#define QDQD_POOL_JUDGING_H

#include "judges/judges.h"
#include "pool/lane.h"

struct qdq_runtime_row;

/* Answers the worker's question for a process that judges by a runtime: with a socket to it, or with the
   reason why there is none. `again`: the one that its work had has ended. Returns false when the
   worker is gone. */
bool judging_answer(struct lane *lane, const char *runtime, bool again, int within_ms);

/* Asks a judging process for its runtime, and ends it. Returns the backend's description, which
   the caller frees; NULL: there is none, and `why` says so. */
char *judging_describe(struct lane *lane, const struct qdq_runtime_row *row,
                       char why[JUDGES_WHY]);

/* Writes a digest of the runner that judges for that runtime, "" where there is none. Returns false when out of memory. */
bool judging_runner_digest(struct lane *lane, const char *runtime,
                           char ret[DIGEST_SIZE]);

/* Tells the lane's next worker which runtimes have runners; one that was told otherwise ends. Returns
   false when out of memory. */
bool judging_tell_worker(struct lane *lane);

#endif
