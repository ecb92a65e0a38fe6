/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The times and figures that jobs measured (struct qdq_work.times) are kept in a folder of the user's: times/ in
 * $XDG_CACHE_HOME/qdq or ~/.cache/qdq, a file for each model, target, processor, threads and batch. The 200
 * files that were used last stay. Without such a folder, and where it cannot be written, no times are
 * kept.
 */
#ifndef CLI_KEPT_TIMES_H
#define CLI_KEPT_TIMES_H

#include "files.h"
#include "pending_id.h"
#include "qdq/quantize.h"

struct kept_times {
    const struct qdq_spec *spec;
    struct pending_id *model_id;
    struct output file; /* OUTPUT_NONE until times_open() */
};

/* Opens a copy of the file of the job's model, which may be empty. The argument is the struct
   kept_times, which owns the descriptor. Returns -1 where there is none. */
int times_open(void *arg);

/* Puts the copy in the place of the file where a job that succeeded has changed it, and removes the
   files beyond those that stay. A failure is no failure of the command. */
void times_keep(struct kept_times *times, bool succeeded);

#endif
