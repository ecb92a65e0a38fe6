/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by all unit programs: tests, and a main() that runs them and prints TAP.
 *
 *     UNIT_TEST(name) { ... }
 *     UNIT_ROWS(name, rows) { ... rows[_i] ... }
 *     UNIT_SUITE("title", .setup = set_up, .teardown = tear_down)
 *
 * A program whose tests need several fixtures has a function instead, which makes the suite, and
 * UNIT_MAIN(suite). make check sets CK_TAP_LOG_FILE_NAME=-; run by hand, the program prints
 * libcheck's own lines.
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

/* Builds with sanitizers have no walls, and need more memory than a walled process gets. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { UNIT_SANITIZED = 1 };
#else
enum { UNIT_SANITIZED = 0 };
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

#ifndef TESTS_CUDA_BARE_CHECK_H
/* A test, which adds itself to those of its program. */
struct unit_test {
    const TTest *const *test;
    int from, to;
    struct unit_test *next;
};

struct unit_tests {
    struct unit_test *first, **end;
};

static inline struct unit_tests *
unit_tests(void)
{
    static struct unit_tests tests = {.end = &tests.first};
    return &tests;
}

static inline void
unit_add(struct unit_test *test, int from, int to)
{
    test->from = from;
    test->to = to;
    *unit_tests()->end = test;
    unit_tests()->end = &test->next;
}

/* A test that runs for each _i from `first` to below `beyond`; tests run in the order of the
   file. */
#define UNIT_RANGE(name, first, beyond)                       \
    static const TTest *name;                                 \
    __attribute__((constructor)) static void name##_add(void) \
    {                                                         \
        static struct unit_test row = {.test = &name};        \
        unit_add(&row, (int)(first), (int)(beyond));          \
    }                                                         \
    START_TEST(name)
#define UNIT_LOOP(name, n) UNIT_RANGE(name, 0, n)
#define UNIT_ROWS(name, table) UNIT_LOOP(name, sizeof(table) / sizeof *(table))
#define UNIT_TEST(name) UNIT_LOOP(name, 1)

struct unit_suite {
    const char *title;
    SFun setup, teardown; /* before and after each test; NULL: nothing */
    double timeout;       /* seconds; 0: a minute */
    /* CK_NOFORK: all tests run in one process, for programs that load ONNX Runtime, whose
       threads do not survive a fork. */
    enum fork_status fork;
};

static inline int
unit_main(struct unit_suite with)
{
    unit_begin();
    Suite *suite = suite_create(with.title);
    TCase *tests = tcase_create(with.title);
    if (with.timeout > 0)
        tcase_set_timeout(tests, with.timeout);
    if (with.setup || with.teardown)
        tcase_add_checked_fixture(tests, with.setup, with.teardown);
    for (const struct unit_test *t = unit_tests()->first; t; t = t->next)
        tcase_add_loop_test(tests, *t->test, t->from, t->to);
    suite_add_tcase(suite, tests);
    return unit_run(suite, with.fork);
}

#define UNIT_SUITE(...)                                              \
    int main(void)                                                   \
    {                                                                \
        return unit_main((struct unit_suite){.title = __VA_ARGS__}); \
    }
#endif

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
