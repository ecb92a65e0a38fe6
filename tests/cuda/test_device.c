/* SPDX-License-Identifier: Apache-2.0 */
/* Each failure of a real device has its own error code. The last test makes the
   device unusable. */
#include "config.h"

#include "cuda.h"

START_TEST(the_device_is_described)
{
    const struct qdqi_cuda_device *d = qdqi_cuda_device(cuda, 0);
    ck_assert_uint_gt(strlen(d->name), 0);
    ck_assert_int_ge(d->major, QDQI_CUDA_MIN_MAJOR);
    ck_assert_int_gt(d->multiprocessors, 0);
    ck_assert_uint_gt(d->memory, (uint64_t)1 << 28);
    printf("# %s, compute capability %d.%d, %d multiprocessors, %llu MiB\n", d->name,
           d->major, d->minor, d->multiprocessors,
           (unsigned long long)(d->memory >> 20));
}
END_TEST

START_TEST(a_device_that_is_not_there_is_refused)
{
    struct qdq_error err = {0};
    ck_assert_int_eq(qdqi_cuda_use(cuda, 4711, &err), QDQ_NO_DEVICE);
    int status = gpu->use(4711);
    err = (struct qdq_error){0};
    ck_assert_int_eq(qdqi_cuda_check(cuda, status, "device", &err), QDQ_NO_DEVICE);
    fine(gpu->use(0));
}
END_TEST

/* The call fails, and the next call succeeds. */
START_TEST(too_much_memory_is_its_own_error)
{
    struct qdq_error err = {0};
    void *memory = NULL;
    int status = gpu->alloc((size_t)1 << 50, &memory);
    ck_assert_int_eq(qdqi_cuda_check(cuda, status, "memory", &err), QDQ_DEVICE_MEMORY);
    fine(gpu->alloc(1 << 20, &memory));
    struct qdqi_extremes *e = memory;
    fine(gpu->extremes_init(e, 1, stream));
    finish();
    fine(gpu->release(memory));
}
END_TEST

START_TEST(other_types_are_refused)
{
    struct qdq_error err = {0};
    const float one = 1;
    const struct qdqi_grid g = {QDQI_TO_INT8, 1, 1, 4, &one, NULL};
    const struct qdqi_grid unknown = {QDQI_N_FORMATS, 1, 1, 4, &one, NULL};
    int status[] = {
        gpu->extremes_update(QDQI_INT8, NULL, 4, NULL, stream),
        gpu->histogram_update(QDQI_FLOAT64, NULL, 4, NULL, stream),
        gpu->sums_update(QDQI_BFLOAT16, NULL, NULL, 4, NULL, NULL, stream),
        gpu->fake(QDQI_UNKNOWN, &g, NULL, NULL, stream),
        gpu->fake(QDQI_FLOAT32, &unknown, NULL, NULL, stream),
    };
    for (size_t i = 0; i < sizeof status / sizeof *status; i++)
        ck_assert_int_eq(qdqi_cuda_check(cuda, status[i], "kernel", &err),
                         QDQ_INTERNAL);
    finish();
}
END_TEST

/* Uses pinned memory, a second stream, and a stream that waits for another. */
START_TEST(streams_wait_for_each_other)
{
    enum { N = 1 << 20 };
    void *memory = device_memory(N * sizeof(float)), *pinned, *second, *event;
    struct qdqi_extremes *e = device_memory(sizeof *e), got;
    fine(gpu->alloc_host(N * sizeof(float), &pinned));
    fine(gpu->stream_open(&second));
    fine(gpu->event_open(&event));
    for (int i = 0; i < 50; i++) {
        ((float *)pinned)[N - 1] = (float)i;
        fine(gpu->upload(memory, pinned, N * sizeof(float), second));
        fine(gpu->event_record(event, second));
        fine(gpu->event_await(event, stream));
        fine(gpu->extremes_init(e, 1, stream));
        fine(gpu->extremes_update(QDQI_FLOAT32, memory, N, e, stream));
        from_device(&got, e, sizeof got);
        ck_assert_float_eq(qdqi_float_of_key(got.max), (float)i);
    }
    fine(gpu->event_close(event));
    fine(gpu->stream_close(second));
    fine(gpu->release_host(pinned));
    fine(gpu->release(memory));
    fine(gpu->release(e));
}
END_TEST

/* A kernel reads an invalid address. CUDA then treats the device as lost. */
START_TEST(a_lost_device_is_its_own_error)
{
    struct qdq_error err = {0};
    struct qdqi_extremes *e = device_memory(sizeof *e);
    const void *nowhere = (const void *)(uintptr_t)4096;
    int status = gpu->extremes_update(QDQI_FLOAT32, nowhere, 1 << 20, e, stream);
    if (!status)
        status = gpu->stream_wait(stream);
    ck_assert_int_eq(qdqi_cuda_check(cuda, status, "waiting", &err), QDQ_DEVICE_LOST);
    err = (struct qdq_error){0};
    ck_assert_int_eq(qdqi_cuda_check(cuda, gpu->release(e), "later", &err),
                     QDQ_DEVICE_LOST);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("cuda/device");
    TCase *t = tcase_create("device");
    tcase_add_test(t, the_device_is_described);
    tcase_add_test(t, a_device_that_is_not_there_is_refused);
    tcase_add_test(t, too_much_memory_is_its_own_error);
    tcase_add_test(t, other_types_are_refused);
    tcase_add_test(t, streams_wait_for_each_other);
    /* compute-sanitizer would report it, and the emulator would crash. */
    if (!is_brief())
        tcase_add_test(t, a_lost_device_is_its_own_error);
    suite_add_tcase(s, t);
    return s;
}

CUDA_MAIN(suite)
