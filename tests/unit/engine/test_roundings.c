/* SPDX-License-Identifier: Apache-2.0 */
/* Rounded weights that are kept while plans are tried. */
#include "config.h"

#include "stages/attempt/roundings.h"
#include "failing.h"
#include "unit.h"

static const float scales[] = {1, 2}, others[] = {1, 3}, after[] = {4, 5};
static const int32_t zeros[] = {0, 7};
static const int16_t integers[] = {3, -4, 5};

static const struct qdqi_rounded_key one = {.format = QDQI_TO_INT4,
                                            .axis = 1,
                                            .block = 2,
                                            .by_gptq = true,
                                            .n = 2,
                                            .scales = scales};
static const struct qdqi_rounded_weight result = {3, integers, after, NULL,
                                                  "for a reason"};

UNIT_TEST(an_equal_rounding_is_found)
{
    struct qdqi_layer_moments m = {.why = NULL};
    const float same[] = {1, 2};
    struct qdqi_rounded_key key = one;
    uint64_t left = 1 << 20;
    ck_assert_ptr_null(qdqi_roundings_find(&m, &one));
    qdqi_roundings_keep(&m, &one, &result, &left);
    key.scales = same;
    const struct qdqi_rounded_weight *found = qdqi_roundings_find(&m, &key);
    ck_assert_ptr_nonnull(found);
    ck_assert_uint_eq(found->n, 3);
    ck_assert_mem_eq(found->integers, integers, sizeof integers);
    ck_assert_mem_eq(found->scales, after, sizeof after);
    ck_assert_str_eq(found->why, "for a reason");
    ck_assert_ptr_ne(found->integers, integers);
    ck_assert_uint_lt(left, 1 << 20);
    qdqi_roundings_free(&m);
    ck_assert_ptr_null(qdqi_roundings_find(&m, &one));
}

UNIT_TEST(any_difference_is_another_rounding)
{
    struct qdqi_rounded_key keys[] = {one, one, one, one, one, one, one, one, one};
    struct qdqi_layer_moments m = {.why = NULL};
    uint64_t left = 1 << 20;
    size_t n = 0;
    qdqi_roundings_keep(&m, &one, &result, &left);
    keys[n++].format = QDQI_TO_INT8;
    keys[n++].axis = 0;
    keys[n++].block = 0;
    keys[n++].is_reduced = true;
    keys[n++].is_centred = true;
    keys[n++].by_gptq = false;
    keys[n++].n = 1;
    keys[n++].scales = others;
    keys[n++].zero_points = zeros;
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(!qdqi_roundings_find(&m, &keys[i]), "key %zu", i);
    for (size_t i = 0; i < n; i++) {
        qdqi_roundings_keep(&m, &keys[i], &result, &left);
        ck_assert_ptr_nonnull(qdqi_roundings_find(&m, &keys[i]));
    }
    ck_assert_ptr_nonnull(qdqi_roundings_find(&m, &one));
    qdqi_roundings_free(&m);
}

UNIT_TEST(the_bound_holds)
{
    struct qdqi_layer_moments m = {.why = NULL};
    uint64_t left = 16;
    qdqi_roundings_keep(&m, &one, &result, &left);
    ck_assert_ptr_null(qdqi_roundings_find(&m, &one));
    ck_assert_uint_eq(left, 16);
}

UNIT_TEST(without_memory_nothing_is_kept)
{
    for (long i = 1; i <= 5; i++) {
        struct qdqi_layer_moments m = {.why = NULL};
        struct qdqi_rounded_key key = one;
        uint64_t left = 1 << 20;
        key.zero_points = zeros;
        fail_at = i;
        qdqi_roundings_keep(&m, &key, &result, &left);
        fail_at = 0;
        ck_assert_ptr_null(qdqi_roundings_find(&m, &key));
        ck_assert_uint_eq(left, 1 << 20);
    }
}

UNIT_SUITE("roundings")
