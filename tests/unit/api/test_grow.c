/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow. */
#include "config.h"
#include "unit.h"

#include "api/grow.h"

#include <stdint.h>
#include <stdlib.h>

/* Elements are added one by one; now and then some are removed again. The sanitizer would
   see a write behind the room. */
UNIT_TEST(elements_stay)
{
    static const size_t removed[] = {0, 1, 5, 300};
    uint32_t *list = NULL;
    size_t n = 0, moves = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t *grown = api_grow(list, n, 1, sizeof *list);
        ck_assert_ptr_nonnull(grown);
        moves += grown != list;
        list = grown;
        list[n] = (uint32_t)n;
        n++;
        if (i % 500 == 499)
            n -= removed[i / 500];
    }
    ck_assert_uint_eq(n, 2000 - 306);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(list[i], i);
    ck_assert_uint_lt(moves, 20);
    free(list);
}

/* Texts are added with their terminators, which the next text overwrites. */
UNIT_TEST(texts_are_joined)
{
    char *text = NULL;
    size_t len = 0;
    for (size_t more = 0; more < 100; more++) {
        char *grown = api_grow(text, len, more + 1, 1);
        ck_assert_ptr_nonnull(grown);
        text = grown;
        memset(text + len, 'a' + (int)(more % 26), more);
        len += more;
        text[len] = '\0';
    }
    ck_assert_uint_eq(strlen(text), 99 * 100 / 2);
    ck_assert_int_eq(text[0], 'b');
    ck_assert_int_eq(text[len - 1], 'a' + 99 % 26);
    free(text);
}

UNIT_TEST(no_elements)
{
    void *array = api_grow(NULL, 0, 0, 16);
    ck_assert_ptr_nonnull(array);
    free(array);
}

/* A size that overflows is refused, and the array stays. */
UNIT_TEST(sizes_that_overflow)
{
    int *list = api_grow(NULL, 0, 1, sizeof *list);
    ck_assert_ptr_nonnull(list);
    *list = 7;
    ck_assert_ptr_null(api_grow(list, 1, SIZE_MAX, sizeof *list));
    ck_assert_ptr_null(api_grow(list, 1, SIZE_MAX - 1, sizeof *list));
    ck_assert_ptr_null(api_grow(list, 1, SIZE_MAX / 2, 1));
    ck_assert_ptr_null(api_grow(list, 1, SIZE_MAX / 4, sizeof *list));
    ck_assert_int_eq(*list, 7);
    free(list);
}

UNIT_SUITE("api/grow")
