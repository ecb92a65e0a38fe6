/* SPDX-License-Identifier: Apache-2.0 */
/* A runner as the operator configures it: a program that judges results by the protocol of
   docs/runners.md, and what it may use. */
#ifndef JUDGES_RUNNER_H
#define JUDGES_RUNNER_H

#include "qdq/judge.h"

enum { RUNNER_WORDS = 64, RUNNER_OPTIONS = 64, RUNNER_PATHS = 32 };

enum runner_walls {
    RUNNER_WALLS_OFF,  /* none */
    RUNNER_WALLS_AUTO, /* those that the kernel offers */
    RUNNER_WALLS_ON,   /* all of them, or no program */
};

struct runner_option {
    char *key, *value;
};

/* Sizes are in bytes, times in seconds. The texts are on the heap. */
struct runner_config {
    char *name; /* of its section */
    char *words[RUNNER_WORDS +
                1]; /* the program and its arguments, NULL behind the last */
    char *paths[RUNNER_PATHS + 1]; /* that `allow` names, NULL behind the last */
    bool may_make_code, may_start_processes;
    int64_t timeout, memory, disk; /* 0: no limit of the memory */
    char *folder; /* for the folders of its processes; NULL: not known yet */
    enum runner_walls walls;
    size_t n_options;
    struct runner_option options[RUNNER_OPTIONS];
};

/* Sets the words of a command: spaces stand between them, and a word in double quotes may
   have some. INVALID_SPEC with the reason; NO_MEMORY. */
enum qdq_code runner_set_command(struct runner_config *runner, const char *command,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
/* Sets what `allow` allows: exec, processes and absolute paths, with commas between. */
enum qdq_code runner_set_allow(struct runner_config *runner, const char *allow,
                               struct qdq_error *err) QDQ_MUST_CHECK;
enum qdq_code runner_add_option(struct runner_config *runner, const char *key,
                                const char *value,
                                struct qdq_error *err) QDQ_MUST_CHECK;
/* Returns whether a path of `allow` names devices. */
bool runner_is_device(const char *path);
/* Returns whether the program could read a file below the path, or one above. */
bool runner_may_read(const struct runner_config *runner, const char *path);
void runner_fini(struct runner_config *runner);

/* Encodes a runner for the process that will start it, as JSON, which the caller frees; NULL when out of
   memory. */
char *runner_encode(const struct runner_config *runner);
/* INVALID_SPEC, NO_MEMORY. */
enum qdq_code runner_decode(const char *text, struct runner_config *ret,
                            struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Makes a judge that serves a runtime of that name by the runner, which is borrowed, in this
 * process. It takes a folder of its own in the folder `above`, where it also removes those of
 * processes that were killed, and puts this process behind walls that leave it little more than the programs
 * get. The process has one thread. RUNNER_FAILED, IO, NO_MEMORY.
 */
enum qdq_code runner_judge_new(const struct runner_config *runner, const char *runtime,
                               const char *above, struct qdq_judge **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
