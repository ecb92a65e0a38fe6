/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that judges by a runtime for one program: that program again, as `PROGRAM --judge`. A
 * model that has the runtime crash, or run for ever, ends that process and not the program. It has
 * the rights of the program.
 */
#ifndef JUDGES_PROCESS_H
#define JUDGES_PROCESS_H

#include "judges/judges.h"

#include <sys/types.h>

struct judges_process {
    const char *runtime, *title; /* name and title of the runtime's row; borrowed */
    const char *library;         /* path of its library; borrowed */
    const char *runner; /* encoded, which judges instead; borrowed; NULL: none */
    int64_t patience;   /* the seconds that one answer may take */
    pid_t pid;          /* 0: there is no process */
};

/* Starts a struct judges_process, one for each work. */
extern const struct judges_host judges_process_host;

/* Ends the process, which has nothing to finish, if there is one. */
void judges_process_end(struct judges_process *process);

/* Runs the process: `argv` begins behind --judge. Returns the exit status. */
int judges_process_main(int argc, char **argv);

#endif
