/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of libcheck that the programs of tests/cuda use, for machines that have only
 * a device and a compiler (tools/check-gpu). All tests run in one process; the first
 * failure ends a test.
 */
#ifndef TESTS_CUDA_BARE_CHECK_H
#define TESTS_CUDA_BARE_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fork_status { CK_FORK_GETENV, CK_NOFORK };
enum print_output { CK_SILENT, CK_ENV };

typedef void (*bare_function)(int);
typedef void (*bare_fixture)(void);

struct bare_test {
    bare_function function;
    const char *name;
    int from, to;
};

typedef struct bare_case {
    struct bare_test tests[32];
    int n_tests;
    bare_fixture setup, teardown;
} TCase;

typedef struct bare_suite {
    const char *name;
    TCase *cases[4];
    int n_cases;
} Suite;

typedef struct bare_runner {
    Suite *suite;
    int run, failed;
} SRunner;

static jmp_buf bare_out;

#define START_TEST(name)                                             \
    static void name##_body(int _i);                                 \
    static const struct bare_test name = {name##_body, #name, 0, 1}; \
    static void name##_body(int _i __attribute__((unused)))
#define END_TEST

static inline __attribute__((format(printf, 3, 4), noreturn)) void
bare_fail(const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    longjmp(bare_out, 1);
}

#define ck_abort_msg(...) bare_fail(__FILE__, __LINE__, __VA_ARGS__)
#define ck_assert_msg(condition, ...)                   \
    do {                                                \
        if (!(condition))                               \
            bare_fail(__FILE__, __LINE__, __VA_ARGS__); \
    } while (0)
#define ck_assert(condition) ck_assert_msg(condition, "%s", #condition)
#define ck_assert_int_eq(a, b) ck_assert((a) == (b))
#define ck_assert_int_ge(a, b) ck_assert((a) >= (b))
#define ck_assert_int_gt(a, b) ck_assert((a) > (b))
#define ck_assert_uint_eq(a, b) ck_assert((a) == (b))
#define ck_assert_uint_gt(a, b) ck_assert((a) > (b))
#define ck_assert_float_eq(a, b) ck_assert((a) == (b))
#define ck_assert_double_eq(a, b) ck_assert((a) == (b))
#define ck_assert_ptr_nonnull(p) ck_assert((p) != NULL)
#define ck_assert_mem_eq(a, b, n) ck_assert(memcmp(a, b, n) == 0)

static inline void *
bare_new(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        exit(EXIT_FAILURE);
    return memory;
}

static inline Suite *
suite_create(const char *name)
{
    Suite *s = bare_new(sizeof *s);
    s->name = name;
    return s;
}

static inline TCase *
tcase_create(const char *name)
{
    (void)name;
    return bare_new(sizeof(TCase));
}

static inline void
suite_add_tcase(Suite *s, TCase *t)
{
    s->cases[s->n_cases++] = t;
}

static inline void
tcase_add_unchecked_fixture(TCase *t, bare_fixture setup, bare_fixture teardown)
{
    t->setup = setup;
    t->teardown = teardown;
}

static inline void
bare_add(TCase *t, const struct bare_test *test, int from, int to)
{
    t->tests[t->n_tests] = *test;
    t->tests[t->n_tests].from = from;
    t->tests[t->n_tests++].to = to;
}

#define tcase_add_test(t, test) bare_add(t, &(test), 0, 1)
#define tcase_add_loop_test(t, test, from, to) bare_add(t, &(test), from, (int)(to))

static inline SRunner *
srunner_create(Suite *s)
{
    SRunner *r = bare_new(sizeof *r);
    r->suite = s;
    return r;
}

static inline void
srunner_set_fork_status(SRunner *r, enum fork_status status)
{
    (void)r;
    (void)status;
}

static inline void
bare_run_test(SRunner *r, const struct bare_test *test, int i)
{
    r->run++;
    if (setjmp(bare_out) == 0) {
        test->function(i);
        return;
    }
    r->failed++;
    fprintf(stderr, "FAIL: %s:%s:%d\n", r->suite->name, test->name, i);
}

static inline void
bare_run_case(SRunner *r, const TCase *t)
{
    if (setjmp(bare_out) != 0) {
        r->failed++;
        fprintf(stderr, "FAIL: %s: its setup\n", r->suite->name);
        return;
    }
    if (t->setup)
        t->setup();
    for (int k = 0; k < t->n_tests; k++)
        for (int i = t->tests[k].from; i < t->tests[k].to; i++)
            bare_run_test(r, &t->tests[k], i);
    if (t->teardown && setjmp(bare_out) == 0)
        t->teardown();
}

static inline void
srunner_run_all(SRunner *r, enum print_output mode)
{
    (void)mode;
    for (int i = 0; i < r->suite->n_cases; i++)
        bare_run_case(r, r->suite->cases[i]);
    printf("%s: %d tests, %d failed\n", r->suite->name, r->run, r->failed);
}

static inline int
srunner_ntests_failed(const SRunner *r)
{
    return r->failed;
}

static inline void
srunner_free(SRunner *r)
{
    for (int i = 0; i < r->suite->n_cases; i++)
        free(r->suite->cases[i]);
    free(r->suite);
    free(r);
}

#endif
