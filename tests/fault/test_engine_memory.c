/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Out of memory, everywhere: the Nth allocation of a whole quantization fails, for each
 * N until it succeeds. The linker's --wrap puts these functions in the way of the
 * engine's, so the engine itself carries no hook.
 */
#include "config.h"

#include "quantized.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static long fail_at; /* 0: never; else counts down */

static bool
fails_now(void)
{
    return fail_at > 0 && --fail_at == 0;
}

void *
__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
    return fails_now() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
    return fails_now() ? NULL : __real_realloc(p, size);
}

static void
two_convs(struct builder *b)
{
    builder_two_convs(b, 13);
}

/* All that allocates for a weight that nodes make. */
static void
computed_weight(struct builder *b)
{
    builder_computed_weight(b);
    builder_ints(b, builder_node(b, "Constant", "c", "", "c"), "value_ints", 1,
                 (const int64_t[]){4});
    builder_node(b, "Shape", "shape", "c", "s");
    builder_node(b, "ConstantOfShape", "fill", "c", "f");
}

static void (*const models[])(struct builder *b) = {two_convs, computed_weight};

START_TEST(every_allocation_may_fail)
{
    struct builder b;
    models[_i](&b);
    int fd = builder_file(&b);
    enum qdq_code code = QDQ_NO_MEMORY;
    long n = 0;
    while (code != QDQ_OK && ++n < 10000) {
        struct qdq_model *result = NULL;
        struct qdq_error err = {0};
        fail_at = n;
        code = quantize_fd(fd, &result, &err);
        bool reached = fail_at == 0;
        fail_at = 0;
        ck_assert_msg(code == (reached ? QDQ_NO_MEMORY : QDQ_OK),
                      "allocation %ld: code %d, %s", n, code, err.text);
        ck_assert_int_eq(result != NULL, code == QDQ_OK);
        qdq_model_free(&result);
    }
    ck_assert_int_gt(n, 5);
    ck_assert_int_lt(n, 10000);
    close(fd);
    builder_fini(&b);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("memory");
    TCase *t = tcase_create("memory");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, every_allocation_may_fail, 0,
                        sizeof models / sizeof *models);
    suite_add_tcase(s, t);
    return s;
}

UNIT_MAIN(suite)
