/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls that a runner's program may not make. */
#ifndef JUDGES_RUNNER_FILTER_H
#define JUDGES_RUNNER_FILTER_H

#include "judges/walls.h"

/* The exceptions that the section of a runner asks for. */
struct filter_allows {
    bool devices; /* sockets and mappings that drivers need */
    bool exec;    /* memory may become code */
    bool
        around; /* it is the process that starts programs: it may also signal and place them */
    bool processes; /* processes may be started */
};

/*
 * Has the kernel refuse (EPERM) calls by which a program would reach beyond its files, threads and
 * memory: sockets, other processes, signals, tracing, rights and times of files, memory that no
 * limit counts. All other calls are allowed, because programs of unknown runtimes make
 * many. Holds for the calling thread, for what it starts, and for programs that it executes.
 * PR_SET_NO_NEW_PRIVS must be set. Returns false and says in `lacking` why it failed.
 */
bool filter_enter(const struct filter_allows *allows, char lacking[WALL_TEXT]);

#endif
