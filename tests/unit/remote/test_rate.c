/* SPDX-License-Identifier: Apache-2.0 */
/* The lowest rate of a transfer. */
#include "config.h"
#include "base/rate.h"
#include "unit.h"

static struct rate rate;

static void
setup(void)
{
    rate_init(&rate, 100, 2000);
}

UNIT_TEST(silence_before_the_first_byte)
{
    for (int64_t now = 1; now < 100000; now += 1000)
        ck_assert(rate_is_kept(&rate, now, 0));
}

UNIT_TEST(the_lowest_rate)
{
    ck_assert(rate_is_kept(&rate, 50000, 1000));
    ck_assert(rate_is_kept(&rate, 51999, 1000));
    ck_assert(rate_is_kept(&rate, 52000, 1200));
    ck_assert_int_eq(rate.measured, 600);
    ck_assert(rate_is_kept(&rate, 54000, 1400));
    ck_assert_int_eq(rate.measured, 100);
    ck_assert(rate_is_kept(&rate, 55999, 1400));
    ck_assert(!rate_is_kept(&rate, 56000, 1599));
    ck_assert_int_eq(rate.measured, 99);
}

UNIT_TEST(bytes_of_a_window_count_once)
{
    ck_assert(rate_is_kept(&rate, 1000, 1 << 20));
    ck_assert(rate_is_kept(&rate, 3000, 1 << 20));
    ck_assert(!rate_is_kept(&rate, 5000, (1 << 20) + 1));
    ck_assert_int_eq(rate.measured, 0);
}

UNIT_TEST(any_rate)
{
    rate_init(&rate, 0, 2000);
    ck_assert(rate_is_kept(&rate, 1000, 1));
    ck_assert(rate_is_kept(&rate, 100000, 1));
}

UNIT_SUITE("rate", .setup = setup)
