/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "jobs/gpus.h"
#include "unit.h"

static struct gpus gpus;
static struct gpus_turn a, b;

static void
set_up(void)
{
    gpus_init(&gpus, "3");
    ck_assert_int_eq(gpus_claim(&gpus), 3);
}

static void
tear_down(void)
{
    gpus_fini(&gpus);
}

UNIT_TEST(a_gpu_that_nobody_wants_is_not_lent)
{
    ck_assert(!gpus_is_wanted(&gpus, 3));
    gpus_give_back(&gpus, 3);
    ck_assert_int_eq(gpus_claim(&gpus), 3);
}

/* A lent GPU goes to one queued job, and then back to the job that lent it. */
UNIT_TEST(a_gpu_is_lent_for_one_job)
{
    gpus_want(&gpus);
    ck_assert(gpus_is_wanted(&gpus, 3));
    gpus_lend(&gpus, 3, &a);
    ck_assert(!gpus_regain(&gpus, &a));
    ck_assert_int_eq(gpus_claim(&gpus), 3);
    gpus_keep(&gpus, 3);
    ck_assert(!gpus_regain(&gpus, &a));
    ck_assert(gpus_is_wanted(&gpus, 3)); /* the job that lent it wants it */
    gpus_give_back(&gpus, 3);
    ck_assert_int_eq(gpus_claim(&gpus), GPUS_NONE);
    ck_assert(gpus_regain(&gpus, &a));
    ck_assert(gpus_are_claimed(&gpus));
    ck_assert(!gpus_is_wanted(&gpus, 3));
}

/* A lane that claims the GPU, finds no job for it and gives it back has not ended
   the offer: another lane may look at another tenant's queue. */
UNIT_TEST(a_claim_given_back_leaves_the_offer)
{
    gpus_want(&gpus);
    gpus_lend(&gpus, 3, &a);
    ck_assert_int_eq(gpus_claim(&gpus), 3);
    gpus_give_back(&gpus, 3);
    ck_assert(!gpus_regain(&gpus, &a));
    ck_assert_int_eq(gpus_claim(&gpus), 3);
}

UNIT_TEST(an_offer_without_a_claim_expires)
{
    gpus_want(&gpus);
    gpus_lend(&gpus, 3, &a);
    int64_t until = gpus.offered[0];
    ck_assert_int_gt(until, 0);
    gpus.offered[0] = 1; /* long ago */
    ck_assert_int_eq(gpus_claim(&gpus), GPUS_NONE);
    ck_assert(gpus_regain(&gpus, &a));
}

/* Two long jobs use the GPU in turns, and no other claim succeeds in between. */
UNIT_TEST(two_long_jobs_take_turns)
{
    gpus_want(&gpus);
    gpus_lend(&gpus, 3, &a);
    ck_assert_int_eq(gpus_claim(&gpus), 3);
    gpus_keep(&gpus, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert(gpus_is_wanted(&gpus, 3));
        gpus_lend(&gpus, 3, &b);
        ck_assert(!gpus_regain(&gpus, &b));
        ck_assert(gpus_regain(&gpus, &a));
        ck_assert(gpus_is_wanted(&gpus, 3));
        gpus_lend(&gpus, 3, &a);
        ck_assert(!gpus_regain(&gpus, &a));
        ck_assert(gpus_regain(&gpus, &b));
    }
}

UNIT_TEST(a_job_that_ended_has_no_turn)
{
    gpus_want(&gpus);
    gpus_lend(&gpus, 3, &a);
    ck_assert_int_eq(gpus_claim(&gpus), 3);
    gpus_keep(&gpus, 3);
    gpus_forgo(&gpus, &a);
    ck_assert(!gpus_is_wanted(&gpus, 3));
    gpus_give_back(&gpus, 3);
    ck_assert_int_eq(gpus_claim(&gpus), 3);
}

/* Lending one device does not affect the other. */
UNIT_TEST(each_device_has_its_turns)
{
    struct gpus two;
    gpus_init(&two, "0,5");
    ck_assert_int_eq(gpus_claim(&two), 0);
    ck_assert_int_eq(gpus_claim(&two), 5);
    gpus_want(&two);
    gpus_lend(&two, 5, &a);
    ck_assert(!gpus_is_wanted(&two, 0));
    ck_assert(gpus_is_wanted(&two, 5));
    gpus_give_back(&two, 0);
    ck_assert_int_eq(gpus_claim(&two), 0);
    gpus_keep(&two, 0);
    ck_assert_int_eq(gpus_claim(&two), 5);
    gpus_fini(&two);
}

UNIT_TEST(without_devices_nothing_is_wanted)
{
    struct gpus none;
    gpus_init(&none, "");
    gpus_want(&none);
    ck_assert(!gpus_is_wanted(&none, 0));
    ck_assert_int_eq(gpus_claim(&none), GPUS_NONE);
    gpus_fini(&none);
}

UNIT_SUITE("daemon/gpus", .setup = set_up, .teardown = tear_down)
