/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runner's program: started behind walls in a folder of its own, asked by lines, and ended with
 * everything that it has started. One thread uses it, and ignores SIGPIPE; the program ends with
 * that thread.
 */
#ifndef JUDGES_RUNNER_PROGRAM_H
#define JUDGES_RUNNER_PROGRAM_H

#include "runner/folder.h"
#include "judges/runner.h"

#include <sys/types.h>

struct program {
    const struct runner_config *runner;
    struct runner_folder folder;
    bool failed;      /* it can only be ended */
    pid_t pid;        /* also of its process group; 0: it does not run */
    int in, out, log; /* our ends of its standard input, output and error; -1: closed */
    char *line;       /* the last answer; owned */
    size_t line_len, line_room;
    size_t logged;      /* bytes of its log that were passed on */
    char log_line[256]; /* the last line of the log, or its beginning */
    size_t log_len;
    bool log_ended; /* the next byte begins another line */
};

/*
 * Starts the program in a new folder in the folder `above`. Its log goes to standard error. Call
 * program_end() also after a failure. RUNNER_FAILED, with the reason: it cannot be executed, or a wall
 * cannot be had; IO, NO_MEMORY.
 */
enum qdq_code program_start(const struct runner_config *runner, const char *above,
                            struct program *ret, struct qdq_error *err) QDQ_MUST_CHECK;
/*
 * Sends a line, to which a line feed is added, and waits `seconds` for one line of answer, which
 * ->line has then, without the line feed and with a NUL behind it. RUNNER_FAILED: it has ended, takes too long,
 * wrote too much, or has too many files; after that it can only be ended. NO_MEMORY.
 */
enum qdq_code program_ask(struct program *program, const char *line, int64_t seconds,
                          struct qdq_error *err) QDQ_MUST_CHECK;
/* Sets RUNNER_FAILED, with the runner's name and the last line of its log, and ->failed. */
enum qdq_code program_fail(struct program *program, struct qdq_error *err,
                           const char *fmt, ...) QDQ_PRINTF(3, 4);
/* Ends the program, its process group and its folder. A program that was asked to end
   gets two seconds for that, any other one none. */
void program_end(struct program *program, bool asked);

#endif
