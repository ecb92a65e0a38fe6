/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of the CUDA kernels on one element (cuda/element.h), compiled for the host
 * and compared with the CPU's arithmetic. tests/cuda shows that the kernels do this for
 * every element on a device.
 */
#include "config.h"

#include "numbers/cuda/element.h"
#include "stages/evaluate/metrics.h"
#include "numbers/arithmetic/fake.h"
#include "numbers/arithmetic/half.h"
#include "grid.h"
#include "unit.h"

#include <math.h>

/* --- numbers -------------------------------------------------------------- */

/* All signs and exponents, with fractions at both ends and in between. */
static const uint32_t fractions[] = {0,        1,        2,        0x1fff,
                                     0x2000,   0x2001,   0x3fffff, 0x400000,
                                     0x400001, 0x5a5a5a, 0x7ffffe, 0x7fffff};
enum {
    N_FRACTIONS = sizeof fractions / sizeof *fractions,
    N_NUMBERS = 512 * N_FRACTIONS
};

static float
number(unsigned i)
{
    return qdqi_float_of_bits((i / N_FRACTIONS) << 23 | fractions[i % N_FRACTIONS]);
}

static bool
is_finite(float x)
{
    return (qdqi_float_bits(x) & 0x7f800000) != 0x7f800000;
}

UNIT_TEST(halves_are_widened_as_the_cpu_does)
{
    static uint16_t halves[1 << 16];
    static float floats[1 << 16];
    for (unsigned h = 0; h <= 0xffff; h++)
        halves[h] = (uint16_t)h;
    qdqi_floats_of_halves(floats, halves, 1 << 16);
    for (unsigned h = 0; h <= 0xffff; h++)
        ck_assert(isnan(floats[h])
                      ? isnan(qdqi_cuda_widened((uint16_t)h))
                      : qdqi_float_bits(floats[h]) ==
                            qdqi_float_bits(qdqi_cuda_widened((uint16_t)h)));
}

/* --- extremes ------------------------------------------------------------- */

UNIT_TEST(keys_are_those_of_the_cpu)
{
    for (unsigned i = 0; i < N_NUMBERS; i++) {
        uint32_t bits = qdqi_float_bits(number(i));
        ck_assert_int_eq(qdqi_cuda_key_of_bits(bits), qdqi_key_of(bits));
    }
}

/* The keys of two float16 numbers compare as the keys of the same numbers in float32
   do. */
UNIT_TEST(keys_of_halves_become_those_of_floats)
{
    for (unsigned h = 0; h <= 0xffff; h++) {
        int32_t key = qdqi_cuda_key_of_half((uint16_t)h);
        uint32_t wide = qdqi_float_bits(qdqi_half_widened((uint16_t)h));
        ck_assert_int_eq(qdqi_cuda_key_widened(key), qdqi_key_of(wide));
    }
    int32_t last = qdqi_cuda_key_widened(-0x8000);
    for (int32_t key = -0x7fff; key <= 0x7fff; key++) {
        ck_assert_int_gt(qdqi_cuda_key_widened(key), last);
        last = qdqi_cuda_key_widened(key);
    }
}

UNIT_TEST(finite_and_amax_are_those_of_the_cpu)
{
    for (unsigned i = 0; i < N_NUMBERS; i += 5)
        for (unsigned j = 0; j < N_NUMBERS; j += 7) {
            float x[] = {number(i), number(j)};
            struct qdqi_extremes e = QDQI_NO_EXTREMES;
            qdqi_extremes_update(&e, x, 2);
            bool finite = qdqi_extremes_finite(&e);
            if (qdqi_cuda_keys_finite(e.min, e.max) != finite)
                ck_abort_msg("finite: %a, %a", (double)x[0], (double)x[1]);
            if (finite && qdqi_cuda_amax_bits(e.min, e.max) !=
                              qdqi_float_bits(qdqi_extremes_amax(&e)))
                ck_abort_msg("amax: %a, %a", (double)x[0], (double)x[1]);
        }
}

/* --- histograms ----------------------------------------------------------- */

static size_t
bin_of_one(const struct qdqi_histogram *h)
{
    size_t bin = 0;
    while (h->counts[bin] == 0)
        bin++;
    return bin;
}

/* Tests each number alone, and beside a larger one that determines the bins' width. */
UNIT_TEST(widths_and_bins_are_those_of_the_cpu)
{
    for (unsigned i = 0; i < N_NUMBERS; i++) {
        float x = number(i);
        for (int more = 0; is_finite(x) && more <= 16; more++) {
            float amax = fabsf(x) * (float)(1 << more);
            struct qdqi_histogram h;
            qdqi_histogram_init(&h);
            if (!is_finite(amax))
                break;
            qdqi_histogram_update(&h, amax, &x, 1);
            int exponent = qdqi_cuda_exponent_for(qdqi_float_bits(amax));
            ck_assert_int_eq(exponent, h.exponent);
            uint32_t bin = qdqi_cuda_bin_of(x, qdqi_cuda_per_width(exponent));
            ck_assert_uint_eq(bin, bin_of_one(&h));
        }
    }
}

UNIT_TEST(the_number_of_bins_is_the_cpus)
{
    ck_assert_int_eq(1 << QDQI_CUDA_BINS_LOG2, QDQI_BINS);
    struct qdqi_histogram h;
    qdqi_histogram_init(&h);
    ck_assert_int_eq(h.exponent, QDQI_CUDA_MIN_EXPONENT);
}

/* --- formats -------------------------------------------------------------- */

/*
 * Here int8 is compared with the arithmetic of what-ifs;
 * tests/e2e/quantize/test_formats.py compares all formats with other implementations.
 */
UNIT_TEST(int8_is_what_fake_quantizers_make)
{
    enum { CHANNELS = 3, INNER = N_NUMBERS / CHANNELS };
    static float in[N_NUMBERS], fake[N_NUMBERS], grid[N_NUMBERS];
    static const float scales[] = {1, 0.037f, 3e-5f};
    for (unsigned i = 0; i < N_NUMBERS; i++)
        in[i] = number(i);
    const struct qdqi_fake f = {.on = true,
                                .format = QDQI_TO_INT8,
                                .scales = scales,
                                .channels = CHANNELS,
                                .inner = INNER};
    const struct qdqi_grid g = {QDQI_TO_INT8, 1, CHANNELS, INNER, scales, NULL};
    qdqi_fake_quantize(&f, in, fake, 0, N_NUMBERS);
    grid_apply(&g, QDQI_FLOAT32, in, grid);
    ck_assert_mem_eq(grid, fake, sizeof fake);
}

/* --- error sums ----------------------------------------------------------- */

/* Uses whole numbers, so that no sum is rounded and the order does not matter. */
UNIT_TEST(sums_are_those_of_the_metrics)
{
    enum { N = 1000 };
    float f[N], q[N];
    struct qdqi_noise s = {0}, parts[3] = {{0}};
    for (int i = 0; i < N; i++) {
        f[i] = (float)(i * 37 % 255 - 127);
        q[i] = f[i] + (float)(i % 7 - 3);
        qdqi_cuda_noise_add(&parts[i % 3], f[i], q[i]);
    }
    for (int i = 0; i < 3; i++)
        qdqi_cuda_noise_merge(&s, &parts[i]);
    struct qdqi_metrics m = {0};
    const int64_t dims[] = {N, 1};
    const struct qdqi_output_shape shape = {dims, 2};
    qdqi_metrics_update(&m, f, q, N, 1, &shape);
    ck_assert_double_eq(s.signal, m.signal);
    ck_assert_double_eq(s.noise, m.noise);
}

/* --- indices -------------------------------------------------------------- */

UNIT_TEST(a_span_covers_everything_once)
{
    for (size_t size = 2; size <= 4; size *= 2)
        for (uintptr_t address = 4096; address < 4128; address += size)
            for (size_t n = 0; n < 40; n++) {
                struct qdqi_cuda_span s = qdqi_cuda_span_of(address, n, size);
                size_t width = 16 / size;
                ck_assert_uint_eq(s.head + s.vectors * width + s.tail, n);
                ck_assert_uint_lt(s.head, width);
                ck_assert_uint_lt(s.tail, width);
                if (s.vectors)
                    ck_assert_uint_eq((address + s.head * size) % 16, 0);
            }
}

static void
check_division(uint32_t n, uint32_t d)
{
    if (qdqi_cuda_divide(n, qdqi_cuda_divider_of(d)) != n / d)
        ck_abort_msg("%u / %u", n, d);
}

UNIT_TEST(a_divider_divides)
{
    uint64_t state = 5;
    for (uint32_t d = 1; d < 300; d++)
        for (uint32_t n = 0; n < 3000; n++)
            check_division(n, d);
    for (int i = 0; i < 2000000; i++) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        uint32_t d = (uint32_t)(state >> 33) >> (state >> 8 & 31);
        uint32_t n = (uint32_t)(state >> 20) & 0x7fffffff;
        d = d ? d : 1;
        check_division(n, d);
        /* numbers next to a multiple, where rounding errors would show */
        check_division(n / d * d, d);
        check_division(n >= d ? n / d * d - 1 : 0, d);
        check_division(0x7fffffff, d);
    }
}

UNIT_SUITE("kernels")
