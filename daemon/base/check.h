/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises that the program makes to itself, checked while it runs. They are not for what
 * comes from outside, which may be anything and is answered with a problem.
 *
 * A check that fails ends the process with one line in the log that names it: the daemon
 * is started again by the system, a worker costs its job one attempt.
 */
#ifndef QDQD_BASE_CHECK_H
#define QDQD_BASE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* Logs which check failed, and aborts. */
_Noreturn void check_failed(const char *expression, const char *file, int line);

/* For checks that cost next to nothing; in every build. */
#define QDQD_CHECK(expression) \
    ((expression) ? (void)0 : check_failed(#expression, __FILE__, __LINE__))

/* For checks that cost more; in builds of developers and with sanitizers. Elsewhere the
   expression is compiled and not evaluated. */
#ifdef QDQ_DEVELOPER_CHECKS
#define QDQD_DEVELOPER_CHECK(expression) QDQD_CHECK(expression)
#else
#define QDQD_DEVELOPER_CHECK(expression) ((void)sizeof(!(expression)))
#endif

/* Sums and products of sizes that limits have bounded before. */
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
