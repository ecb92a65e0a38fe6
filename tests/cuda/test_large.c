/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors of more than 2^31 elements, beyond the range of 32-bit indices and counts.
 * They are float16, so that a device of 12 GB is enough; on smaller devices the test is
 * skipped. The data is a repeating pattern.
 */
#include "config.h"

#include "cuda.h"

enum { PATTERN = 1 << 20, OUTER = 716, CHANNELS = 3, INNER = 1000003, WINDOW = 70000 };
static const size_t N = (size_t)OUTER * CHANNELS * INNER;

static uint16_t pattern[PATTERN], window[WINDOW];
static float wide[PATTERN];
static uint16_t *memory;

static void
setup(void)
{
    make(QDQI_FLOAT16, RELU, 3, PATTERN, pattern, wide);
    memory = device_memory(N * sizeof *memory);
}

static void
teardown(void)
{
    fine(gpu->release(memory));
}

static void
fill(void)
{
    to_device(memory, pattern, sizeof pattern);
    for (size_t done = PATTERN, m; done < N; done += m) {
        m = done < N - done ? done : N - done;
        fine(gpu->copy(memory + done, memory, m * sizeof *memory, stream));
    }
    finish();
}

START_TEST(extremes_beyond_2_31_elements_are_found)
{
    const uint16_t high = 0x7800, low = 0xf900;
    struct qdqi_extremes *e = device_memory(sizeof *e), got;
    fill();
    to_device(memory + N - 1, &high, sizeof high);
    to_device(memory + ((size_t)1 << 31) + 3, &low, sizeof low);
    fine(gpu->extremes_init(e, 1, stream));
    fine(gpu->extremes_update(QDQI_FLOAT16, memory, N, e, stream));
    from_device(&got, e, sizeof got);
    ck_assert_float_eq(qdqi_float_of_key(got.max), qdqi_half_widened(high));
    ck_assert_float_eq(qdqi_float_of_key(got.min), qdqi_half_widened(low));
    fine(gpu->release(e));
}
END_TEST

START_TEST(all_elements_are_counted)
{
    static struct qdqi_histogram whole, rest;
    static struct qdqi_cuda_histogram got;
    struct qdqi_extremes e = QDQI_NO_EXTREMES;
    struct qdqi_cuda_histogram *h = device_memory(sizeof *h);
    qdqi_extremes_update(&e, wide, PATTERN);
    qdqi_histogram_init(&whole);
    qdqi_histogram_init(&rest);
    qdqi_histogram_update(&whole, qdqi_extremes_amax(&e), wide, PATTERN);
    qdqi_histogram_update(&rest, qdqi_extremes_amax(&e), wide, N % PATTERN);
    fill();
    fine(gpu->histogram_init(h, 1, stream));
    fine(gpu->histogram_update(QDQI_FLOAT16, memory, N, h, stream));
    from_device(&got, h, sizeof got);
    ck_assert_int_eq(got.histogram.exponent, whole.exponent);
    for (size_t j = 0; j < QDQI_BINS; j++)
        ck_assert_uint_eq(got.histogram.counts[j],
                          N / PATTERN * whole.counts[j] + rest.counts[j]);
    fine(gpu->release(h));
}
END_TEST

static void
check_window(const struct qdqi_grid *g, const float *scale, size_t first)
{
    from_device(window, memory + first, sizeof window);
    for (size_t i = 0; i < WINDOW; i++) {
        float x = wide[(first + i) % PATTERN];
        float s = scale[(first + i) / INNER % CHANNELS];
        uint16_t want = qdqi_half_narrowed(g->format == QDQI_TO_INT8
                                               ? qdqi_fake_integer(x, s, -128, 127)
                                               : qdqi_fake_float(x, s, 448, 3, -6));
        if (window[i] != want)
            ck_abort_msg("element %zu is wrong", first + i);
    }
}

START_TEST(channels_are_found)
{
    static const float scale[CHANNELS] = {0.5f, 0.013f, 0.1f};
    float *scales = device_memory(sizeof scale);
    const struct qdqi_grid g = {
        _i ? QDQI_TO_FLOAT8E4M3FN : QDQI_TO_INT8, OUTER, CHANNELS, INNER, scales, NULL};
    fill();
    to_device(scales, scale, sizeof scale);
    fine(gpu->fake(QDQI_FLOAT16, &g, memory, memory, stream));
    check_window(&g, scale, 0);
    check_window(&g, scale, INNER - WINDOW / 2);
    check_window(&g, scale, ((size_t)1 << 31) - WINDOW / 2);
    check_window(&g, scale, N - WINDOW);
    fine(gpu->release(scales));
}
END_TEST

START_TEST(all_elements_are_added)
{
    struct qdqi_noise *s = device_memory(sizeof *s), got;
    void *workspace = device_memory(gpu->sums_workspace());
    double whole = 0, rest = 0;
    for (size_t i = 0; i < PATTERN; i++) {
        whole += (double)wide[i] * (double)wide[i];
        rest += i < N % PATTERN ? (double)wide[i] * (double)wide[i] : 0;
    }
    double want = (double)(N / PATTERN) * whole + rest;
    fill();
    fine(gpu->sums_init(s, 1, stream));
    fine(gpu->sums_update(QDQI_FLOAT16, memory, memory, N, s, workspace, stream));
    from_device(&got, s, sizeof got);
    ck_assert(fabs(got.signal - want) <= 1e-10 * want);
    ck_assert_double_eq(got.noise, 0);
    fine(gpu->release(s));
    fine(gpu->release(workspace));
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("cuda/large");
    TCase *t = tcase_create("large");
    tcase_add_unchecked_fixture(t, setup, teardown);
    tcase_add_test(t, extremes_beyond_2_31_elements_are_found);
    tcase_add_test(t, all_elements_are_counted);
    tcase_add_loop_test(t, channels_are_found, 0, 2);
    tcase_add_test(t, all_elements_are_added);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return cuda_main(suite, (uint64_t)12 << 30);
}
