/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the unit programs for api/. */
#ifndef TESTS_UNIT_API_H
#define TESTS_UNIT_API_H

#include "unit.h"

#include <string.h>

#include "base/json.h"

#define N_ROWS(table) ((int)(sizeof(table) / sizeof *(table)))

/* Expects that the text is JSON and equals `wanted`, with members in any order.
   Frees it. */
static inline void
expect_json(char *text, const char *wanted)
{
    ck_assert_ptr_nonnull(text);
    json_t *left = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    json_t *right = json_loads(wanted, JSON_DECODE_ANY, NULL);
    ck_assert_msg(left != NULL, "this is no JSON: %s", text);
    ck_assert_msg(right != NULL, "the test itself is wrong: %s", wanted);
    ck_assert_msg(json_equal(left, right), "got %s\nwanted %s", text, wanted);
    json_decref(left);
    json_decref(right);
    free(text);
}

/* number of allocations that succeed; all later ones fail */
static int unit_allocations_left;
static bool unit_allocations_fail;

static inline void *
unit_failing_malloc(size_t size)
{
    return unit_allocations_left-- > 0 ? malloc(size) : NULL;
}

typedef char *(*unit_encode_fn)(void);

/*
 * Runs an encoder with the first, the second, … of jansson's allocations failing, until
 * all succeed. A program may subject its own allocations to this, too: see
 * api/test_lists.c. Each answer must be NULL or the whole text; sanitizers find leaks
 * and invalid accesses.
 */
static inline void
expect_survives_no_memory(unit_encode_fn encode)
{
    char *wanted = encode();
    ck_assert_ptr_nonnull(wanted);
    char *text = NULL;
    int n = 0;
    for (; !text; n++) {
        ck_assert_int_lt(n, 100000);
        unit_allocations_left = n;
        unit_allocations_fail = true;
        json_set_alloc_funcs(unit_failing_malloc, free);
        text = encode();
        json_set_alloc_funcs(malloc, free);
        unit_allocations_fail = false;
        if (text)
            ck_assert_str_eq(text, wanted);
        /* the encoder answered although an allocation failed */
        if (text && unit_allocations_left < 0) {
            free(text);
            ck_abort_msg("allocation %d failed and nobody noticed", n);
        }
    }
    ck_assert_int_gt(n, 1);
    free(text);
    free(wanted);
}

#endif
