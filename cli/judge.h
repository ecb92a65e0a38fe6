/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process in which a command runs OpenVINO: this program again, as `qdq --judge`. A model
 * that has OpenVINO crash, or run for ever, ends that process and not the command.
 */
#ifndef CLI_JUDGE_H
#define CLI_JUDGE_H

#include <signal.h>
#include <sys/types.h>

struct qdq_engine;

struct judge {
    const char *library;   /* borrowed */
    const char *patience;  /* the seconds that one answer may take; borrowed */
    pid_t pid;             /* 0: there is no process */
    struct sigaction pipe; /* what SIGPIPE did before */
};

/* Has the engine judge by such a process, which is started when the engine needs it. SIGPIPE is
   ignored from now on. */
void judge_init(struct judge *judge, const char *library, const char *patience,
                struct qdq_engine *engine);
/* Ends the process, if there is one, and restores SIGPIPE. A zeroed judge is accepted. */
void judge_fini(struct judge *judge);

/* Runs the process; `argv` begins behind --judge. Returns the exit status. */
int judge_main(int argc, char **argv);

#endif
