/* SPDX-License-Identifier: Apache-2.0 */
/* Finds devices with a module that claims to have them (cuda_module.c). */
#include "config.h"

#include "numbers/cuda/device.h"
#include "unit.h"

#include <string.h>

#define FAKE "tests/unit/engine/.libs/libcuda_module.so"

static struct qdqi_cuda *cuda;

static enum qdq_code
open_with(const char *name, const char *value, struct qdq_error *err)
{
    if (name)
        ck_assert_int_eq(setenv(name, value, 1), 0);
    return qdqi_cuda_open(FAKE, &cuda, err);
}

/* Reasons why there is no device: the environment, and the error's text. */
static const struct {
    const char *name, *value, *says;
    enum qdq_code code;
} lacks[] = {
    {"FAKE_CUDA_VERSION", "1", "is not the CUDA module of this version", QDQ_NO_DEVICE},
    {"FAKE_CUDA_STATUS", "1", "no NVIDIA driver is installed; one for CUDA 13 is",
     QDQ_NO_DRIVER},
    {"FAKE_CUDA_STATUS", "2", "the NVIDIA driver knows CUDA 12.4 at most; one for",
     QDQ_OLD_DRIVER},
    {"FAKE_CUDA_STATUS", "3", "no CUDA device can be used: broken", QDQ_NO_DEVICE},
    {"FAKE_CUDA_DEVICES", "", "no CUDA device can be used: there is none",
     QDQ_NO_DEVICE},
    {"FAKE_CUDA_DEVICES", "6.1", "'Fake 0' has compute capability 6.1, 7.5 is needed",
     QDQ_NO_DEVICE},
    {"FAKE_CUDA_DEVICES", "7.0 3.5", "'Fake 0' has compute capability 7.0",
     QDQ_NO_DEVICE},
};

UNIT_ROWS(an_error_says_what_is_missing, lacks)
{
    struct qdq_error err = {0};
    setenv("FAKE_CUDA_DRIVER", "12040", 1);
    ck_assert_int_eq(open_with(lacks[_i].name, lacks[_i].value, &err), lacks[_i].code);
    ck_assert_msg(strstr(err.text, lacks[_i].says), "%s", err.text);
    ck_assert_ptr_null(cuda);
}

UNIT_TEST(a_missing_module_is_named)
{
    struct qdq_error err = {0};
    ck_assert_int_eq(qdqi_cuda_open("nowhere/qdq_cuda.so", &cuda, &err), QDQ_NO_DEVICE);
    ck_assert_ptr_nonnull(strstr(err.text, "nowhere/qdq_cuda.so"));
}

/* A library without the table is refused. */
UNIT_TEST(another_library_is_no_module)
{
    struct qdq_error err = {0};
    ck_assert_int_eq(qdqi_cuda_open("libc.so.6", &cuda, &err), QDQ_NO_DEVICE);
    ck_assert_ptr_nonnull(strstr(err.text, "libc.so.6 is not the CUDA module"));
}

UNIT_TEST(devices_are_described)
{
    struct qdq_error err = {0};
    ck_assert_int_eq(open_with("FAKE_CUDA_DEVICES", "9.0 6.1 7.5 12.0", &err), QDQ_OK);
    ck_assert_int_eq(qdqi_cuda_count(cuda), 4);
    ck_assert_str_eq(qdqi_cuda_device(cuda, 3)->name, "Fake 3");
    ck_assert_int_eq(qdqi_cuda_device(cuda, 3)->major, 12);
    static const bool usable[] = {true, false, true, true};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(qdqi_cuda_use(cuda, i, NULL) != QDQ_NO_DEVICE, usable[i]);
    ck_assert_int_eq(qdqi_cuda_use(cuda, -1, NULL), QDQ_NO_DEVICE);
    ck_assert_int_eq(qdqi_cuda_use(cuda, 4, NULL), QDQ_NO_DEVICE);
    qdqi_cuda_close(&cuda);
    ck_assert_ptr_null(cuda);
}

static const struct {
    int device;
    enum qdq_code code;
    const char *says;
} uses[] = {
    {0, QDQ_OK, ""},
    {1, QDQ_NO_DEVICE, "compute capability 6.1"},
    {2, QDQ_DEVICE_MEMORY, "Fake 2: broken"},
    {3, QDQ_NO_DEVICE, "there is no CUDA device 3; 3 are here"},
    {-1, QDQ_NO_DEVICE, "there is no CUDA device -1"},
};

UNIT_ROWS(a_device_opens_or_the_error_says_why, uses)
{
    struct qdq_error err = {0};
    ck_assert_int_eq(open_with("FAKE_CUDA_DEVICES", "9.0 6.1 8.9", &err), QDQ_OK);
    ck_assert_int_eq(qdqi_cuda_use(cuda, uses[_i].device, &err), uses[_i].code);
    ck_assert_msg(strstr(err.text, uses[_i].says), "%s", err.text);
    qdqi_cuda_close(&cuda);
}

static const enum qdq_code codes[] = {
    QDQ_OK,          QDQ_NO_DRIVER,     QDQ_OLD_DRIVER, QDQ_NO_DEVICE,
    QDQ_DEVICE_LOST, QDQ_DEVICE_MEMORY, QDQ_INTERNAL,
};

UNIT_ROWS(each_fault_has_its_code, codes)
{
    struct qdq_error err = {0};
    ck_assert_int_eq(open_with(NULL, NULL, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_cuda_check(cuda, _i, "copying", &err), codes[_i]);
    if (codes[_i] == QDQ_DEVICE_LOST)
        ck_assert_str_eq(err.text, "copying: fell off the bus");
    qdqi_cuda_close(&cuda);
}

UNIT_SUITE("device")
