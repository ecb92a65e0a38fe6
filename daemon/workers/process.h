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
    int jobs;   /* pieces of work that it was given */
    int device; /* the GPU that it was started for, or GPUS_NONE */
    struct lock lock;
    pid_t pid;   /* guarded by lock; 0 when there is none */
    bool killed; /* guarded by lock; process_kill() was called */
    bool spent;  /* the last process exceeded workers.cpu_time */
};

void process_init(struct process *process, const struct settings *settings,
                  struct metrics *metrics);

/* Makes sure that a process for that GPU (or for none) is alive; starts one if
   necessary. */
bool process_start(struct process *process, int device, struct api_problem *p);
/* Allows workers.cpu_time for one piece of work, from now on. */
void process_allow(const struct process *process);
/*
 * Ends the process, if there is one, and waits for it. Closing the socket asks it to
 * end; `force` kills it. Writes how it ended ("was killed by signal 9", "ended with
 * status 1") to `how`, if not NULL.
 */
void process_end(struct process *process, bool force, char how[64]);
/* Kills the process; its owner notices by the end of file. Any thread may call. */
void process_kill(struct process *process);

void process_fini(struct process *process);

#endif
