/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate of the time left, with a clock that the test sets. */
#include "config.h"
#include "api.h"

#include "api/eta.h"

static struct api_eta eta;

static int64_t
left_at(int64_t now, enum qdq_stage stage, uint64_t done, uint64_t total,
        uint64_t later)
{
    const struct qdq_progress progress = {stage, done, total, later};
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
    const struct api_speed earlier = {0.5, 0.25};
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
    api_eta_start(&eta, &(struct api_speed){1e300, 1e300});
    ck_assert_int_eq(left_at(0, QDQ_STAGE_CALIBRATE, 0, UINT64_MAX, UINT64_MAX), -1);
    ck_assert_int_eq(left_at(0, QDQ_STAGE_CALIBRATE, 9, 3, 0), -1);
    ck_assert_int_eq(left_at(0, QDQ_STAGE_EVALUATE, 9, 3, 0), -1);
}

UNIT_SUITE("api/eta")
