/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that are sent to a device ahead of their run. The device is the emulator's. */
#include "config.h"

#include "emulated.h"
#include "numbers/cuda/device.h"
#include "run/operators/staging.h"

#include <string.h>

#define BYTES "EMULATED_CUDA_BYTES"

static struct qdqi_cuda *cuda;
static struct qdqi_device device;
static struct qdqi_staging *staging;

static void
open_staging(void)
{
    struct qdq_error err = {0};
    ck_assert_int_eq(qdqi_cuda_open(module, &cuda, &err), QDQ_OK);
    device = (struct qdqi_device){cuda, 0, false};
    ck_assert_int_eq(qdqi_staging_open(&device, &staging, &err), QDQ_OK);
}

static void
close_staging(void)
{
    qdqi_staging_close(&staging);
    ck_assert_uint_eq(in_use(), 0);
    qdqi_cuda_close(&cuda);
}

/* Uploads n floats that count up from `first`, and one integer. Then overwrites both
   buffers, because the upload must have copied them. */
static enum qdq_code
put(size_t n, float first, struct qdq_error *err)
{
    float floats[64];
    int64_t integer = (int64_t)first, shape[2] = {1, (int64_t)n};
    for (size_t i = 0; i < n; i++)
        floats[i] = first + (float)i;
    const struct qdqi_input inputs[] = {
        {"x", QDQI_FLOAT32, 2, shape, floats, n * sizeof *floats},
        {"k", QDQI_INT64, 0, NULL, &integer, sizeof integer}};
    enum qdq_code code = qdqi_staging_upload(staging, inputs, 2, err);
    memset(floats, 0xff, sizeof floats);
    shape[1] = integer = -1;
    return code;
}

static void
expect_next(size_t n, float first)
{
    struct qdq_error err = {0};
    const struct qdqi_input *inputs;
    ck_assert_int_eq(qdqi_staging_next(staging, &inputs, &err), QDQ_OK);
    ck_assert(qdqi_staging_owns(staging, inputs));
    ck_assert_int_eq(inputs[0].shape[0], 1);
    ck_assert_int_eq(inputs[0].shape[1], (int64_t)n);
    for (size_t i = 0; i < n; i++)
        ck_assert_float_eq(((const float *)inputs[0].data)[i], first + (float)i);
    ck_assert_int_eq(*(const int64_t *)inputs[1].data, (int64_t)first);
    ck_assert_uint_eq((uintptr_t)inputs[1].data % 256, 0);
}

START_TEST(inputs_are_sent_ahead)
{
    struct qdq_error err = {0};
    ck_assert_int_eq(put(64, 0, &err), QDQ_OK);
    ck_assert_int_eq(put(64, 100, &err), QDQ_OK);
    size_t bytes = in_use();
    for (int i = 0; i < 5; i++) {
        expect_next(64, (float)i * 100);
        ck_assert_int_eq(put(i < 4 ? 64 : 3, (float)(i + 2) * 100, &err), QDQ_OK);
        /* nothing is allocated again */
        ck_assert_uint_eq(in_use(), bytes);
    }
    expect_next(64, 500);
    expect_next(3, 600);
}
END_TEST

START_TEST(larger_inputs_get_more_room)
{
    struct qdq_error err = {0};
    ck_assert_int_eq(put(2, 0, &err), QDQ_OK);
    expect_next(2, 0);
    size_t bytes = in_use();
    ck_assert_int_eq(put(64, 100, &err), QDQ_OK);
    ck_assert_int_eq(put(64, 200, &err), QDQ_OK);
    expect_next(64, 100);
    expect_next(64, 200);
    ck_assert_uint_gt(in_use(), bytes);
}
END_TEST

START_TEST(inputs_that_were_sent_are_used_once)
{
    struct qdq_error err = {0};
    const struct qdqi_input *inputs;
    ck_assert_int_eq(qdqi_staging_next(staging, &inputs, &err), QDQ_INTERNAL);
    ck_assert_int_eq(put(1, 0, &err), QDQ_OK);
    ck_assert_int_eq(put(1, 1, &err), QDQ_OK);
    ck_assert_int_eq(put(1, 2, &err), QDQ_INTERNAL);
    expect_next(1, 0);
    expect_next(1, 1);
}
END_TEST

START_TEST(sending_without_device_memory_fails)
{
    struct qdq_error err = {0};
    setenv(BYTES, "700", 1);
    ck_assert_int_eq(put(64, 0, &err), QDQ_OK);
    ck_assert_int_eq(put(64, 0, &err), QDQ_DEVICE_MEMORY);
    unsetenv(BYTES);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("staging");
    TCase *t = tcase_create("ahead");
    tcase_add_checked_fixture(t, open_staging, close_staging);
    tcase_add_test(t, inputs_are_sent_ahead);
    tcase_add_test(t, larger_inputs_get_more_room);
    tcase_add_test(t, inputs_that_were_sent_are_used_once);
    tcase_add_test(t, sending_without_device_memory_fails);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return run_emulated(suite);
}
