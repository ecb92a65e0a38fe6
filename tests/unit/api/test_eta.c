/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate of the time left, with a clock that the test sets. */
#include "config.h"
#include "api.h"

#include "api/eta.h"

static struct api_eta eta;
static uint64_t asked; /* later stages of unknown work */

static int64_t
left_at(int64_t now, enum qdq_stage stage, uint64_t done, uint64_t total,
        uint64_t later)
{
    const struct qdq_progress progress = {stage, done, total, later, asked};
    api_eta_update(&eta, &progress, now);
    return api_eta_left(&eta, now);
}

/*
 * There is no estimate before the first samples have given a speed. Until the
 * evaluation has counted samples of its own, it is estimated at two runs for each
 * sample.
 */
UNIT_TEST(first_run)
{
    api_eta_start(&eta, NULL);
    ck_assert_int_eq(api_eta_left(&eta, 0), -1);
    ck_assert_int_eq(left_at(0, QDQ_STAGE_LOAD, 0, 0, 0), -1);
    ck_assert_int_eq(left_at(10, QDQ_STAGE_PLAN, 0, 0, 50), -1);
    ck_assert_int_eq(left_at(20, QDQ_STAGE_CALIBRATE, 0, 0, 50), -1);
    ck_assert_int_eq(left_at(9000, QDQ_STAGE_CALIBRATE, 0, 100, 50), -1);
    ck_assert_int_eq(left_at(9400, QDQ_STAGE_CALIBRATE, 4, 100, 50), -1);
    ck_assert_int_eq(left_at(10000, QDQ_STAGE_CALIBRATE, 10, 100, 50), 9 + 10);
    /* the estimate decreases between two counts */
    ck_assert_int_eq(api_eta_left(&eta, 14000), 15);
    ck_assert_int_eq(api_eta_left(&eta, 99000), 0);
    ck_assert_int_eq(left_at(20000, QDQ_STAGE_CALIBRATE, 10, 100, 50), 99 + 110);
    ck_assert_int_eq(left_at(20000, QDQ_STAGE_CALIBRATE, 100, 100, 0), -1);
    ck_assert_int_eq(left_at(19000, QDQ_STAGE_CALIBRATE, 100, 100, 50), 10);
    ck_assert_int_eq(left_at(19100, QDQ_STAGE_WRITE, 0, 0, 50), 10);
    ck_assert_int_eq(left_at(19200, QDQ_STAGE_EVALUATE, 0, 0, 0), -1);
    ck_assert_int_eq(left_at(20000, QDQ_STAGE_EVALUATE, 0, 50, 0), 10);
    ck_assert_int_eq(left_at(21000, QDQ_STAGE_EVALUATE, 10, 50, 0), 4);
    ck_assert(eta.speed.evaluate == 0.1 && eta.speed.calibrate == 0.1);
}

/* The speed of an earlier run gives an estimate at the first count, until this run
   has its own. */
UNIT_TEST(later_run)
{
    const struct api_speed earlier = {.calibrate = 0.5, .evaluate = 0.25};
    api_eta_start(&eta, &earlier);
    ck_assert_int_eq(left_at(0, QDQ_STAGE_PLAN, 0, 0, 8), -1);
    ck_assert_int_eq(left_at(0, QDQ_STAGE_CALIBRATE, 0, 10, 8), 5 + 2);
    ck_assert_int_eq(left_at(1000, QDQ_STAGE_CALIBRATE, 1, 10, 8), 9 + 2);
    ck_assert_int_eq(left_at(1000, QDQ_STAGE_WRITE, 0, 0, 8), 2);
}

/* With given ranges nothing is calibrated, so there is no estimate before the
   evaluation counts samples. */
UNIT_TEST(no_calibration)
{
    api_eta_start(&eta, NULL);
    ck_assert_int_eq(left_at(0, QDQ_STAGE_CALIBRATE, 0, 0, 10), -1);
    ck_assert_int_eq(left_at(0, QDQ_STAGE_WRITE, 0, 0, 10), -1);
    ck_assert_int_eq(left_at(0, QDQ_STAGE_EVALUATE, 0, 10, 0), -1);
    ck_assert_int_eq(left_at(1000, QDQ_STAGE_EVALUATE, 5, 10, 0), 1);
}

/* Counts that no real run reports break nothing. */
UNIT_TEST(odd_counts)
{
    api_eta_start(&eta, &(struct api_speed){.calibrate = 1e300, .evaluate = 1e300});
    ck_assert_int_eq(left_at(0, QDQ_STAGE_CALIBRATE, 0, UINT64_MAX, UINT64_MAX), -1);
    ck_assert_int_eq(left_at(0, QDQ_STAGE_CALIBRATE, 9, 3, 0), -1);
    ck_assert_int_eq(left_at(0, QDQ_STAGE_EVALUATE, 9, 3, 0), -1);
}

/* Stages whose work is not known leave no estimate, until they are over or count samples of one length. */
UNIT_TEST(unknown_stages)
{
    const uint64_t recipe = UINT64_C(1) << QDQ_STAGE_RECIPE,
                   sensitivity = UINT64_C(1) << QDQ_STAGE_SENSITIVITY;
    api_eta_start(&eta, NULL);
    asked = recipe | sensitivity;
    ck_assert_int_eq(left_at(0, QDQ_STAGE_CALIBRATE, 0, 100, 50), -1);
    ck_assert_int_eq(left_at(1000, QDQ_STAGE_CALIBRATE, 50, 100, 50), -1);
    asked = recipe;
    ck_assert_int_eq(left_at(2000, QDQ_STAGE_SENSITIVITY, 0, 100, 50), -1);
    ck_assert_int_eq(left_at(3000, QDQ_STAGE_SENSITIVITY, 50, 100, 50), -1);
    ck_assert_int_eq(left_at(3500, QDQ_STAGE_SENSITIVITY, 90, 100, 50), -1);
    asked = 0;
    /* a recipe ends when it has found what it looks for */
    ck_assert_int_eq(left_at(4000, QDQ_STAGE_RECIPE, 0, 100, 50), -1);
    ck_assert_int_eq(left_at(5000, QDQ_STAGE_RECIPE, 50, 100, 50), -1);
    ck_assert_int_eq(left_at(6000, QDQ_STAGE_WRITE, 0, 0, 50), 2);

    /* rounding against outputs takes as long for each sample */
    api_eta_start(&eta, NULL);
    asked = UINT64_C(1) << QDQ_STAGE_RECONSTRUCT;
    ck_assert_int_eq(left_at(1000, QDQ_STAGE_CALIBRATE, 0, 100, 50), -1);
    ck_assert_int_eq(left_at(2000, QDQ_STAGE_CALIBRATE, 100, 100, 50), -1);
    asked = 0;
    ck_assert_int_eq(left_at(3000, QDQ_STAGE_RECONSTRUCT, 0, 100, 50), -1);
    ck_assert_int_eq(left_at(4000, QDQ_STAGE_RECONSTRUCT, 50, 100, 50), 1 + 1);
}

/* The stages of an earlier run with the same spec tell those of this one from its begin on, at the load of
   this one. */
UNIT_TEST(stages_of_an_earlier_run)
{
    api_eta_start(&eta, NULL);
    asked = UINT64_C(1) << QDQ_STAGE_RECIPE;
    left_at(0, QDQ_STAGE_LOAD, 0, 0, 0);
    left_at(1000, QDQ_STAGE_CALIBRATE, 0, 100, 50);
    left_at(3000, QDQ_STAGE_CALIBRATE, 100, 100, 50);
    left_at(3000, QDQ_STAGE_RECIPE, 0, 0, 50);
    left_at(9000, QDQ_STAGE_EVALUATE, 0, 50, 0);
    left_at(10000, QDQ_STAGE_ADVISE, 0, 0, 0);
    api_eta_end(&eta, 10500);
    ck_assert(eta.speed.whole);
    const struct api_speed earlier = eta.speed;

    api_eta_start(&eta, &earlier);
    ck_assert_int_eq(left_at(0, QDQ_STAGE_LOAD, 0, 0, 0), 11);
    ck_assert_int_eq(left_at(1000, QDQ_STAGE_CALIBRATE, 0, 100, 50), 10);
    /* this run is slower by half */
    ck_assert_int_eq(left_at(2500, QDQ_STAGE_CALIBRATE, 50, 100, 50), 2 + 11);
    ck_assert_int_eq(left_at(4000, QDQ_STAGE_CALIBRATE, 100, 100, 50), 12);
    ck_assert_int_eq(left_at(4000, QDQ_STAGE_RECIPE, 0, 0, 50), 12);
    ck_assert_int_eq(left_at(7000, QDQ_STAGE_RECIPE, 5, 9, 50), 9);
    /* its search takes longer than the same work would */
    ck_assert_int_eq(left_at(14000, QDQ_STAGE_RECIPE, 5, 9, 50), 3);
    ck_assert_int_eq(left_at(18000, QDQ_STAGE_RECIPE, 5, 9, 50), -1);
    /* a ranking of layers is faster than it was */
    struct api_speed slow = {.whole = true, .stages = {[QDQ_STAGE_SENSITIVITY] = 60}};
    api_eta_start(&eta, &slow);
    ck_assert_int_eq(left_at(0, QDQ_STAGE_SENSITIVITY, 0, 100, 0), 60);
    ck_assert_int_eq(left_at(6000, QDQ_STAGE_SENSITIVITY, 5, 100, 0), 54);
    ck_assert_int_eq(left_at(10000, QDQ_STAGE_SENSITIVITY, 50, 100, 0), 10);
    /* a run with another spec has the speed of samples alone */
    struct api_speed other = earlier;
    other.whole = false;
    api_eta_start(&eta, &other);
    ck_assert_int_eq(left_at(0, QDQ_STAGE_LOAD, 0, 0, 0), -1);
    ck_assert_int_eq(left_at(1000, QDQ_STAGE_CALIBRATE, 0, 100, 50), -1);
    asked = 0;
    ck_assert_int_eq(left_at(1000, QDQ_STAGE_CALIBRATE, 0, 100, 50), 2 + 2);
}

UNIT_SUITE("api/eta")
