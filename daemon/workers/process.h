/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One worker or carrier process, the socket to it, and the pipe to which it writes what would go to
 * standard error: a worker has no descriptor of the daemon's log.
 *
 * A process belongs to the thread that starts it, which must live on: the process ends
 * with that thread (PR_SET_PDEATHSIG looks at the thread, not at the process). Only
 * process_kill() may be called by others.
 */
#ifndef QDQD_WORKERS_PROCESS_H
#define QDQD_WORKERS_PROCESS_H

#include "base/lock.h"
#include "workers/message.h"

#include <sys/types.h>

struct settings;

struct metrics;

struct process {
    const char
        *role; /* "worker"; "carrier", "judge" or "signer" (set after process_init()) */
    const char *runtime; /* name of the one that a judge judges by; "": it is none */
    const struct settings *settings;
    struct metrics *metrics;
    int socket;  /* -1 when there is no process */
    int said;    /* the read end of the pipe; -1 when there is no process */
    int jobs;    /* pieces of work that it was given */
    int device;  /* the GPU that it was started for, or GPUS_NONE */
    bool ready;  /* the last process that was started has reached its first request */
    int n_notes; /* lines and notes of the process that are in the log */
    int n_files; /* temporary files that it got for the current work */
    char line[256]; /* the beginning of a line, which is not whole yet */
    size_t line_len;
    char *extra; /* a further argument of the process; NULL: none */
    struct lock lock;
    pid_t pid;   /* guarded by lock; 0 when there is none */
    bool killed; /* guarded by lock; process_kill() was called */
    bool spent;  /* the last process exceeded workers.cpu_time */
    int signal;  /* the signal that ended the last process; 0: none did */
};

void process_init(struct process *process, const struct settings *settings,
                  struct metrics *metrics);

/* Sets a further argument, for a process that judges by a runner the runner, and for a worker the runtimes
   that have one. A process that was started with another one ends. Returns false when out of
   memory. */
bool process_set_extra(struct process *process, const char *extra);

enum process_started {
    PROCESS_RUNS,
    PROCESS_FAILED, /* no process could be started; the problem is set */
    PROCESS_DIED,   /* it ended, or took too long, before it could serve a request */
};

/* Makes sure that a process for that GPU (or for none) is alive and serves requests;
   starts one if necessary. After DIED process_end() must be called. */
enum process_started process_start(struct process *process, int device,
                                   struct api_problem *p);
/* Begins one piece of work: allows workers.cpu_time for it, and temporary files. */
void process_allow(struct process *process);
/* Returns whether somebody has stopped the process (SIGSTOP). */
bool process_is_stopped(const struct process *process);
/* Logs what the process lacks. */
void process_note(struct process *process, const struct message *note);
/* Logs what the process has written to its standard error. */
void process_relay(struct process *process);
/* Opens an empty file without a name for the process, on the disk of the state folder.
   Returns -1 when that fails, or when the process has too many. */
int process_open_temporary(struct process *process);
/*
 * Ends the process, if there is one, and waits for it. Closing the socket asks it to
 * end; it is killed when it does not do so soon, or at once with `force`. Writes how it ended
 * ("was killed by signal 9", "ended with status 1", "was ended by the daemon") to `how`, if not
 * NULL.
 */
void process_end(struct process *process, bool force, char how[64]);
/* Kills the process; its owner notices by the end of file. Any thread may call. */
void process_kill(struct process *process);
/* Returns whether that was called for the process that runs. Any thread may call. */
bool process_was_killed(struct process *process);

void process_fini(struct process *process);

#endif
