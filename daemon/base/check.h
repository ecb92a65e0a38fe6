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

#include <stdbool.h>
#include <stddef.h>

/* Logs the check that failed, and aborts. */
_Noreturn void check_failed(const char *expression, const char *file, int line);

/* Checks a promise in every build. For expressions that cost next to nothing. */
#define QDQD_CHECK(expression) \
    ((expression) ? (void)0 : check_failed(#expression, __FILE__, __LINE__))

/* Checks a promise in builds of developers and with sanitizers. For expressions that
   cost more. Other builds compile the expression and do not evaluate it. */
#ifdef QDQ_DEVELOPER_CHECKS
#define QDQD_DEVELOPER_CHECK(expression) QDQD_CHECK(expression)
#else
#define QDQD_DEVELOPER_CHECK(expression) ((void)sizeof(!(expression)))
#endif

/* These add and multiply sizes that limits have bounded before. */
static inline size_t
checked_add(size_t a, size_t b)
{
    size_t sum;
    bool overflows = __builtin_add_overflow(a, b, &sum);
    QDQD_CHECK(!overflows);
    return sum;
}

static inline size_t
checked_multiply(size_t a, size_t b)
{
    size_t product;
    bool overflows = __builtin_mul_overflow(a, b, &product);
    QDQD_CHECK(!overflows);
    return product;
}

#endif
