/* SPDX-License-Identifier: Apache-2.0 */
/* The processes in which a command runs the runtimes that judge (judges/process.h). */
#ifndef CLI_JUDGE_H
#define CLI_JUDGE_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

struct api_problem;
struct qdq_engine;
struct judge_runtime;
struct runner_config;

struct runners;

struct judge {
    struct runners *runners; /* NULL: none */
    struct judge_runtime
        *runtimes; /* with a process each, which starts when it is needed */
    size_t n;
    struct sigaction pipe; /* what SIGPIPE did before */
};

/*
 * Has the engine judge by such processes, for all runtimes that are to have one and whose library
 * is configured, and for those that have a runner in the file `runners` (NULL: none). An answer
 * may take so many seconds. SIGPIPE is ignored from now on, if there is one.
 */
bool judge_init(struct judge *judge, int64_t patience, const char *runners,
                struct qdq_engine *engine, struct api_problem *problem);
/* Returns the runner that judges for that runtime; NULL: there is none, or another one judges. */
const struct runner_config *judge_runner(const struct judge *judge,
                                         const char *runtime);
/* Ends the processes and restores SIGPIPE. A zeroed judge is accepted. */
void judge_fini(struct judge *judge);

/* The environment variable of the path of a runtime's library: QDQD_ENGINE_ and its name. */
enum { JUDGE_VARIABLE = 64 };
void judge_variable(const char *runtime, char ret[JUDGE_VARIABLE]);

#endif
