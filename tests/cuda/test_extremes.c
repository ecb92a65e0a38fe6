/* SPDX-License-Identifier: Apache-2.0 */
/* The extremes that the device finds equal those of number/minmax.c, also with NaN
   and infinities. */
#include "config.h"

#include "cuda.h"

static float wide[MAX_SIZE];
static _Alignas(16) uint8_t data[MAX_SIZE * sizeof(float)];
static uint8_t *memory;
static struct qdqi_extremes *extremes;

static void
setup(void)
{
    memory = device_memory(sizeof data);
    extremes = device_memory(2 * sizeof *extremes);
}

static void
teardown(void)
{
    fine(gpu->release(memory));
    fine(gpu->release(extremes));
}

static struct qdqi_extremes
result(void)
{
    struct qdqi_extremes got;
    from_device(&got, extremes, sizeof got);
    return got;
}

static void
check(const struct qdqi_extremes *want, const char *what, size_t n, size_t offset)
{
    struct qdqi_extremes got = result();
    if (got.min != want->min || got.max != want->max)
        ck_abort_msg("%s, %zu elements at %zu: %d … %d, not %d … %d", what, n, offset,
                     got.min, got.max, want->min, want->max);
}

static void
compare(int type, enum kind kind, size_t n, size_t offset)
{
    struct qdqi_extremes want = QDQI_NO_EXTREMES;
    uint8_t *at = memory + offset * size_of(type);
    make(type, kind, n + offset, n, data, wide);
    qdqi_extremes_update(&want, wide, n);
    to_device(at, data, n * size_of(type));
    fine(gpu->extremes_init(extremes, 1, stream));
    fine(gpu->extremes_update(type, at, n, extremes, stream));
    check(&want, qdqi_dtype_name(type), n, offset);
    fine(gpu->extremes_update(type, at, n, extremes, stream));
    check(&want, "again", n, offset);
}

START_TEST(extremes_are_those_of_the_cpu)
{
    for (size_t t = 0; t < 2; t++)
        for (size_t o = 0; o < N_OFFSETS; o++)
            for (int kind = 0; kind < N_KINDS; kind++)
                compare(types[t], (enum kind)kind, sizes[_i], offsets[o]);
}
END_TEST

/* Puts the extreme element at each place in turn, so that a kernel that skips an
   element fails. */
START_TEST(no_element_is_left_out)
{
    enum { N = 2100 };
    static float x[N];
    for (size_t i = 0; i < N; i++) {
        struct qdqi_extremes want = QDQI_NO_EXTREMES;
        memset(x, 0, sizeof x);
        x[i] = i % 2 ? 3 : -3;
        qdqi_extremes_update(&want, x, N);
        to_device(memory + 4, x, sizeof x);
        fine(gpu->extremes_init(extremes, 1, stream));
        fine(gpu->extremes_update(QDQI_FLOAT32, memory + 4, N, extremes, stream));
        check(&want, "one", N, i);
    }
}
END_TEST

START_TEST(tensors_add_up)
{
    struct qdqi_extremes want = QDQI_NO_EXTREMES;
    fine(gpu->extremes_init(extremes, 2, stream));
    for (int i = 0; i < 5; i++) {
        size_t n = sizes[20 + i];
        make(QDQI_FLOAT32, SIZES, 77 + (uint64_t)i, n, data, wide);
        qdqi_extremes_update(&want, wide, n);
        to_device(memory, data, n * sizeof(float));
        fine(gpu->extremes_update(QDQI_FLOAT32, memory, n, extremes, stream));
    }
    check(&want, "tensors", 5, 0);
    struct qdqi_extremes beside;
    from_device(&beside, extremes + 1, sizeof beside);
    ck_assert(qdqi_extremes_empty(&beside));
}
END_TEST

/* Samples of any size, which begin at any place, get the extremes of their elements alone. */
START_TEST(each_sample_has_its_own)
{
    enum { MOST = 9 };
    static const size_t lengths[] = {1, 3, 8, 255, 1001, 5000};
    size_t n = lengths[_i / 2], samples = _i % 2 ? MOST : 2;
    struct qdqi_extremes got[MOST + 1], *each = device_memory(sizeof got);
    for (size_t t = 0; t < 2; t++)
        for (int kind = 0; kind < N_KINDS; kind++) {
            uint8_t *at = memory + size_of(types[t]);
            make(types[t], (enum kind)kind, n + t, n * samples, data, wide);
            to_device(at, data, n * samples * size_of(types[t]));
            fine(gpu->extremes_init(each, MOST + 1, stream));
            fine(gpu->extremes_each(types[t], at, n, samples, each, stream));
            from_device(got, each, sizeof got);
            for (size_t k = 0; k < samples; k++) {
                struct qdqi_extremes want = QDQI_NO_EXTREMES;
                qdqi_extremes_update(&want, wide + k * n, n);
                ck_assert_mem_eq(&got[k], &want, sizeof want);
            }
            ck_assert(qdqi_extremes_empty(&got[samples]));
        }
    fine(gpu->release(each));
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("cuda/extremes");
    TCase *t = tcase_create("extremes");
    tcase_add_unchecked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, extremes_are_those_of_the_cpu, 0, n_sizes());
    tcase_add_test(t, no_element_is_left_out);
    tcase_add_test(t, tensors_add_up);
    tcase_add_loop_test(t, each_sample_has_its_own, 0, 12);
    suite_add_tcase(s, t);
    return s;
}

CUDA_MAIN(suite)
