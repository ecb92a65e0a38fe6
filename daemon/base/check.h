/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of the promises that the program makes to itself. They are not for input from
 * outside, which may be anything: bad input is answered with a problem.
 *
 * A check that fails ends the process with one line in the log that names it. The
 * system starts the daemon again; a worker that ends costs its job one attempt.
 */
#ifndef QDQD_BASE_CHECK_H
#define QDQD_BASE_CHECK_H

/* Logs the check that failed, and aborts. */
_Noreturn void check_failed(const char *expression, const char *file, int line);

/* Checks a promise in every build. For expressions that cost next to nothing. */
#define QDQD_CHECK(expression) \
    ((expression) ? (void)0 : check_failed(#expression, __FILE__, __LINE__))

#endif
