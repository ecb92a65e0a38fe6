/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a function that may end its process, by a failed check, in a process of its
   own. */
#ifndef TESTS_UNIT_APART_H
#define TESTS_UNIT_APART_H

#include "unit.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns the exit status of the process, and writes its standard error to `ret`. */
static inline int
apart_run(void (*run)(void), char *ret, size_t size)
{
    int ends[2], status;
    size_t n = 0;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        run();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t got; (got = read(ends[0], ret + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    ret[n] = '\0';
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

/* Expects that a check ends the process and that one line names the check with its
   file and line; NULL: that the process ends normally and prints nothing. */
static inline void
apart_expect(void (*run)(void), const char *check)
{
    char said[4096];
    int status = apart_run(run, said, sizeof said);
    if (!check) {
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", said);
        ck_assert_str_eq(said, "");
        return;
    }
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%s", said);
    ck_assert_msg(strstr(said, check) != NULL, "%s", said);
    ck_assert_ptr_nonnull(strstr(said, "error event=check_failed check="));
    ck_assert_ptr_nonnull(strstr(said, " file="));
    ck_assert_ptr_nonnull(strstr(said, " line="));
    /* Exactly one line names a check; a sanitizer may print more lines. */
    const char *line = strstr(said, "event=check_failed");
    ck_assert(line && !strstr(line + 1, "event=check_failed"));
}

#endif
