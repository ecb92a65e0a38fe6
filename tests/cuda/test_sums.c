/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares error sums of the device with sums in long double. Each sum must agree to
 * 1e-12 of itself. The bits must not depend on the tensors' alignment or on repetition.
 */
#include "config.h"

#include "cuda.h"

static float wide[2][MAX_SIZE];
static _Alignas(16) uint8_t data[2][MAX_SIZE * sizeof(float)];
static uint8_t *memory[2], *workspace;
static struct qdqi_noise *sums;

static void
setup(void)
{
    for (int i = 0; i < 2; i++)
        memory[i] = device_memory(sizeof data[i]);
    workspace = device_memory(gpu->sums_workspace());
    sums = device_memory(2 * sizeof *sums);
}

static void
teardown(void)
{
    for (int i = 0; i < 2; i++)
        fine(gpu->release(memory[i]));
    fine(gpu->release(workspace));
    fine(gpu->release(sums));
}

static struct qdqi_noise
result(void)
{
    struct qdqi_noise got;
    from_device(&got, sums, sizeof got);
    return got;
}

/* Uploads n elements of each tensor, at the given numbers of elements behind a
   boundary, and returns the sums. */
static struct qdqi_noise
add_up(int type, size_t n, size_t first, size_t second)
{
    size_t size = size_of(type), at[] = {first * size, second * size};
    for (int i = 0; i < 2; i++)
        to_device(memory[i] + at[i], data[i], n * size);
    fine(gpu->sums_init(sums, 1, stream));
    fine(gpu->sums_update(type, memory[0] + at[0], memory[1] + at[1], n, sums,
                          workspace, stream));
    return result();
}

static void
make_two(int type, size_t n, uint64_t seed)
{
    make(type, NORMAL, seed, n, data[0], wide[0]);
    make(type, RELU, seed + 1, n, data[1], wide[1]);
}

static void
close_to(double got, long double want, const char *what, size_t n)
{
    if (!(fabsl((long double)got - want) <= 1e-12L * want))
        ck_abort_msg("%s of %zu elements: %.17g, not %.17Lg", what, n, got, want);
}

static void
check(const struct qdqi_noise *got, size_t n, int times)
{
    long double f2 = 0, e2 = 0;
    for (size_t i = 0; i < n; i++) {
        long double f = (long double)wide[0][i], q = (long double)wide[1][i];
        f2 += f * f;
        e2 += (f - q) * (f - q);
    }
    close_to(got->signal, f2 * times, "signal", n);
    close_to(got->noise, e2 * times, "noise", n);
}

START_TEST(sums_are_those_of_the_cpu)
{
    size_t n = sizes[_i];
    for (size_t t = 0; t < 2; t++) {
        make_two(types[t], n, (uint64_t)_i);
        struct qdqi_noise got = add_up(types[t], n, 0, 0);
        check(&got, n, 1);
    }
}
END_TEST

START_TEST(alignment_makes_no_difference)
{
    size_t n = sizes[_i];
    for (size_t t = 0; t < 2; t++) {
        make_two(types[t], n, (uint64_t)_i);
        struct qdqi_noise first = add_up(types[t], n, 0, 0);
        for (size_t o = 0; o < N_OFFSETS; o++)
            for (size_t p = 0; p < N_OFFSETS; p++) {
                struct qdqi_noise got = add_up(types[t], n, offsets[o], offsets[p]);
                ck_assert_mem_eq(&got, &first, sizeof got);
            }
    }
}
END_TEST

START_TEST(repeated_runs_give_the_same_bits)
{
    size_t n = is_brief() ? 200001 : 4000001;
    make_two(QDQI_FLOAT32, n, 5);
    struct qdqi_noise first = add_up(QDQI_FLOAT32, n, 0, 0);
    for (int i = 0; i < (is_brief() ? 3 : 20); i++) {
        struct qdqi_noise got = add_up(QDQI_FLOAT32, n, 0, 0);
        ck_assert_mem_eq(&got, &first, sizeof got);
    }
}
END_TEST

START_TEST(tensors_add_up)
{
    enum { N = 70001, TIMES = 5 };
    make_two(QDQI_FLOAT32, N, 8);
    add_up(QDQI_FLOAT32, N, 0, 0);
    for (int i = 1; i < TIMES; i++)
        fine(gpu->sums_update(QDQI_FLOAT32, memory[0], memory[1], N, sums, workspace,
                              stream));
    struct qdqi_noise got = result();
    check(&got, N, TIMES);
}
END_TEST

/* A NaN at any place shows in the sums. */
START_TEST(a_nan_is_not_lost)
{
    enum { N = 100000 };
    make_two(QDQI_FLOAT32, N, 8);
    static const size_t places[] = {0, 3, 17, 1024, 99999};
    float nan = NAN;
    memcpy(data[1] + places[_i] * sizeof nan, &nan, sizeof nan);
    struct qdqi_noise got = add_up(QDQI_FLOAT32, N, 0, 0);
    ck_assert(isnan(got.noise));
    ck_assert(isfinite(got.signal));
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("cuda/sums");
    TCase *t = tcase_create("sums");
    tcase_add_unchecked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, sums_are_those_of_the_cpu, 0, n_sizes());
    tcase_add_loop_test(t, alignment_makes_no_difference, 0, n_sizes());
    tcase_add_test(t, repeated_runs_give_the_same_bits);
    tcase_add_test(t, tensors_add_up);
    tcase_add_loop_test(t, a_nan_is_not_lost, 0, 5);
    suite_add_tcase(s, t);
    return s;
}

CUDA_MAIN(suite)
