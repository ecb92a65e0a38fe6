/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One worker process and the socket to it.
 *
 * A process belongs to the thread that starts it, which must live on: the process ends
 * with that thread (PR_SET_PDEATHSIG looks at the thread, not at the process). Only
 * process_kill() may be called by others.
 */
#ifndef QDQD_WORKERS_PROCESS_H
#define QDQD_WORKERS_PROCESS_H

#include "base/lock.h"
#include "api/problem.h"

#include <sys/types.h>

struct settings;

struct metrics;

struct process {
    const struct settings *settings;
    struct metrics *metrics;
    int socket; /* -1 when there is no process */
    int jobs;   /* work that it has been given */
    int device; /* the GPU that it was started for; GPUS_NONE */
    struct lock lock;
    pid_t pid;   /* guarded by lock; 0 when there is none */
    bool killed; /* guarded by lock; by process_kill() */
    bool spent;  /* the last one took more than workers.cpu_time */
};

void process_init(struct process *process, const struct settings *settings,
                  struct metrics *metrics);

/* Makes sure that there is a living process for that GPU, or for none: starts one if need
   be. */
bool process_start(struct process *process, int device, struct api_problem *p);
/* From now on it may take workers.cpu_time, for one piece of work. */
void process_allow(const struct process *process);
/*
 * Ends the process, if there is one, and waits for it: closing the socket tells it to
 * leave, `force` does not ask. Writes how it ended ("was killed by signal 9",
 * "ended with status 1") to `how`, if not NULL.
 */
void process_end(struct process *process, bool force, char how[64]);
/* Kills the process; its owner finds out by the end of file. Any thread. */
void process_kill(struct process *process);

void process_fini(struct process *process);

#endif
