/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that judge by a runtime (qdq/judge.h), as the programs that start them see them: how a
 * work gets one, what its end means, and how long it may take. A program starts its processes by a
 * struct judges_host; judges/process.h has one for programs without cages of their own.
 */
#ifndef JUDGES_JUDGES_H
#define JUDGES_JUDGES_H

#include <stdbool.h>
#include <stdint.h>

enum { JUDGES_WHY = 256 };

/* How the processes of a program are started and ended. Called on the thread that works. */
struct judges_host {
    /* Makes sure that a process is alive and serves, and returns a socket to it, which the caller
       closes; -1: there is none, and `why` says so. */
    int (*reach)(void *arg, char why[JUDGES_WHY]);
    /* Ends the process that the work had, if it is still there, and waits for it. Returns the
       signal that ended it, or 0. */
    int (*end)(void *arg);
};

/* The time that a process may take, in seconds, and the settings that say so to users. */
struct judges_limits {
    int64_t answer; /* of one answer */
    const char *answer_setting;
    int64_t cpu; /* of processor time; 0: it is not limited */
    const char *cpu_setting;
};

/* A runtime's processes. */
struct judges_link {
    const struct judges_host *host;
    void *arg;         /* of the host's functions */
    const char *title; /* of the runtime, as people call it */
    struct judges_limits limits;
};

/*
 * Gets a process for a work, as a qdq_connect_judge_fn does: returns a socket, or -1 with the
 * reason in `why`. With `again` the work's process has ended; where it crashed, `why` says how, and
 * where it took too long, there is none in its place, because that one would, too.
 */
int judges_connect(const struct judges_link *link, bool again, char why[JUDGES_WHY]);

/* --- in the process that judges ---------------------------------------------- */

/* Sets the seconds that an answer may take. */
void judges_set_patience(int64_t seconds);
/* A qdq_judge_watch_fn: has the kernel end the process (SIGALRM) where the runtime takes longer. */
void judges_watch(unsigned times);

#endif
