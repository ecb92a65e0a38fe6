/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by all unit programs: a main() that runs one suite and prints TAP.
 *
 *     static Suite *
 *     suite(void) { ... }
 *     UNIT_MAIN(suite)
 *
 * make check sets CK_TAP_LOG_FILE_NAME=-; run by hand, the program prints libcheck's
 * own lines. UNIT_MAIN_NOFORK runs all tests in one process, for programs that load
 * ONNX Runtime, whose threads do not survive a fork.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* An assertion that holds costs nothing. libcheck's own reports its place to the parent
   process each time, by system calls, and loops assert millions of times. A test that
   crashes is named without the line of its last assertion. The replacement of libcheck for
   tools/check-gpu makes no system calls. */
#ifndef TESTS_CUDA_BARE_CHECK_H
#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                   \
    (expr) ? (void)0                                                               \
           : _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", \
                               ##__VA_ARGS__)
#endif

/* Sets a time limit of a minute instead of libcheck's 4 seconds, because the machine
   may be busy. */
static inline void
unit_begin(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "60", 0);
}

static inline int
unit_run(Suite *suite, enum fork_status fork_status)
{
    SRunner *runner = srunner_create(suite);
    if (fork_status == CK_NOFORK)
        srunner_set_fork_status(runner, CK_NOFORK);
    bool tap = getenv("CK_TAP_LOG_FILE_NAME") != NULL;
    srunner_run_all(runner, tap ? CK_SILENT : CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define UNIT_MAIN(suite)                          \
    int main(void)                                \
    {                                             \
        unit_begin();                             \
        return unit_run(suite(), CK_FORK_GETENV); \
    }
#define UNIT_MAIN_NOFORK(suite)              \
    int main(void)                           \
    {                                        \
        unit_begin();                        \
        return unit_run(suite(), CK_NOFORK); \
    }

/* Makes a new folder in TMPDIR, or in /tmp without that, and stores its path. */
static inline void
unit_make_folder(char *path, size_t size)
{
    const char *parent = getenv("TMPDIR");
    int length = snprintf(path, size, "%s/qdqd-unit-XXXXXX", parent ? parent : "/tmp");
    ck_assert_msg(length > 0 && (size_t)length < size, "TMPDIR is too long");
    ck_assert_ptr_nonnull(mkdtemp(path));
}

/* Returns the path of a file below the root of the source tree, in a static buffer. */
static inline const char *
unit_path(const char *relative)
{
    static char path[4096];
    const char *root = getenv("srcdir");
    snprintf(path, sizeof path, "%s/%s", root != NULL ? root : ".", relative);
    return path;
}

#endif
