/* SPDX-License-Identifier: Apache-2.0 */
/* Fake quantization on the device gives the same bits as number/format.c; a NaN may
   be any NaN. */
#include "config.h"

#include "cuda.h"
#include "grid.h"

enum { GUARD = 64, MAX_CHANNELS = 4096 };

static float wide[MAX_SIZE];
static _Alignas(16) uint8_t data[MAX_SIZE * sizeof(float)];
static _Alignas(16) uint8_t want[sizeof data];
static _Alignas(16) uint8_t got[sizeof data + 2 * GUARD];
static uint8_t *in, *out; /* `out` has guard bytes on both sides */
static float *scales, host_scales[MAX_CHANNELS];
static int32_t *points, host_points[MAX_CHANNELS];

static void
setup(void)
{
    in = device_memory(sizeof data);
    out = device_memory(sizeof got);
    scales = device_memory(sizeof host_scales);
    points = device_memory(sizeof host_points);
}

static void
teardown(void)
{
    fine(gpu->release(in));
    fine(gpu->release(out));
    fine(gpu->release(scales));
    fine(gpu->release(points));
}

/* --- comparing ------------------------------------------------------------ */

struct layout {
    size_t outer, channels, inner;
    size_t from, to; /* elements behind a 16-byte boundary */
    bool in_place;
};

static bool
same(int type, const uint8_t *a, const uint8_t *b, size_t i)
{
    if (type == QDQI_FLOAT16) {
        uint16_t x, y;
        memcpy(&x, a + i * 2, 2);
        memcpy(&y, b + i * 2, 2);
        return x == y || ((x & 0x7fff) > 0x7c00 && (y & 0x7fff) > 0x7c00);
    }
    uint32_t x, y;
    memcpy(&x, a + i * 4, 4);
    memcpy(&y, b + i * 4, 4);
    return x == y || ((x & 0x7fffffff) > 0x7f800000 && (y & 0x7fffffff) > 0x7f800000);
}

static void
compare(int type, const struct qdqi_grid *g, const struct layout *l)
{
    size_t n = l->outer * l->channels * l->inner;
    for (size_t i = 0; i < n; i++)
        if (!same(type, got + GUARD, want, i))
            ck_abort_msg("%s to %s, %zu x %zu x %zu, from %zu to %zu, %s: element %zu "
                         "is wrong (was %a)",
                         qdqi_dtype_name(type), qdqi_format_row((int)g->format)->name,
                         l->outer, l->channels, l->inner, l->from, l->to,
                         l->in_place ? "in place" : "apart", i, (double)wide[i]);
}

/* Checks that no byte before or behind the output was written. */
static void
check_guards(size_t bytes)
{
    for (size_t i = 0; i < GUARD; i++)
        if (got[i] != 0xa5 || got[GUARD + bytes + i] != 0xa5)
            ck_abort_msg("written outside of %zu bytes", bytes);
}

static void
run(int type, enum qdqi_format format, const struct layout *l, bool with_points)
{
    size_t n = l->outer * l->channels * l->inner, size = size_of(type);
    struct qdqi_grid g = {format,   l->outer,    l->channels,
                          l->inner, host_scales, with_points ? host_points : NULL};
    grid_apply(&g, (enum qdqi_dtype)type, data, want);
    g.scales = scales;
    g.zero_points = with_points ? points : NULL;
    uint8_t *to = out + GUARD + l->to * size;
    uint8_t *from = l->in_place ? to : in + l->from * size;
    memset(got, 0xa5, n * size + 2 * GUARD);
    to_device(to - GUARD, got, n * size + 2 * GUARD);
    to_device(from, data, n * size);
    fine(gpu->fake(type, &g, from, to, stream));
    from_device(got, to - GUARD, n * size + 2 * GUARD);
    compare(type, &g, l);
    check_guards(n * size);
}

/* Makes scales of all magnitudes that a type has, and uses each zero point of a
   format in turn. */
static void
make_scales(enum qdqi_format format, size_t channels, uint64_t seed)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)format);
    uint32_t span = (uint32_t)(row->highest - row->lowest) + 1;
    for (size_t c = 0; c < channels; c++) {
        uint32_t bits = next_random(&seed);
        int exponent = (int)(bits & 31) - (bits & 32 ? 24 : 8);
        host_scales[c] = ldexpf(1 + (float)(bits >> 8) * 0x1p-24f, exponent);
        host_points[c] = (int32_t)row->lowest + (int32_t)((bits + c) % span);
    }
    to_device(scales, host_scales, channels * sizeof *scales);
    to_device(points, host_points, channels * sizeof *points);
}

static bool
has_points(enum qdqi_format format)
{
    return qdqi_format_row((int)format)->fraction_bits == 0;
}

/* --- tests ---------------------------------------------------------------- */

START_TEST(tensors_get_the_bits_of_the_cpu)
{
    for (size_t t = 0; t < 2; t++)
        for (int format = 0; format < QDQI_N_FORMATS; format++)
            for (size_t o = 0; o < N_OFFSETS; o++) {
                enum qdqi_format f = (enum qdqi_format)format;
                struct layout l = {1,          1,          sizes[_i],
                                   offsets[o], offsets[o], (format + (int)o) % 2};
                make(types[t], (enum kind)((size_t)format + o) % N_KINDS, o, sizes[_i],
                     data, wide);
                make_scales(f, 1, (uint64_t)(_i + format));
                run(types[t], f, &l, has_points(f) && o % 2);
            }
}
END_TEST

START_TEST(kinds_of_data_get_the_bits_of_the_cpu)
{
    const struct layout l = {1, 1, is_brief() ? 20003 : 100003, 1, 1, false};
    for (size_t t = 0; t < 2; t++)
        for (int kind = 0; kind < N_KINDS; kind++)
            for (uint64_t seed = 0; seed < (is_brief() ? 2 : 12); seed++) {
                make(types[t], (enum kind)kind, seed, l.inner, data, wide);
                make_scales((enum qdqi_format)_i, 1, seed);
                run(types[t], (enum qdqi_format)_i, &l, false);
                if (has_points((enum qdqi_format)_i))
                    run(types[t], (enum qdqi_format)_i, &l, true);
            }
}
END_TEST

/* Tests every float16 with scales whose results are subnormal or overflow. */
START_TEST(every_half_gets_the_bits_of_the_cpu)
{
    static const float some[] = {1, 0x1p-24f, 0x1.8p-22f, 3e-7f, 0.7f, 513.7f, 70000};
    const struct layout l = {1, 1, 65536, 0, 0, false};
    for (size_t i = 0; i < l.inner; i++) {
        ((uint16_t *)data)[i] = (uint16_t)i;
        wide[i] = qdqi_half_widened((uint16_t)i);
    }
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        host_scales[0] = some[k];
        to_device(scales, host_scales, sizeof *scales);
        run(QDQI_FLOAT16, (enum qdqi_format)_i, &l, false);
    }
}
END_TEST

static const size_t inners[] = {1, 2, 3, 4, 7, 8, 9, 16, 49, 64, 1000, 65537};
static const size_t channels[] = {2, 3, 8, 17, 1000};
enum {
    N_INNERS = sizeof inners / sizeof *inners,
    N_CHANNELS = sizeof channels / sizeof *channels
};

START_TEST(channels_get_the_bits_of_the_cpu)
{
    for (size_t t = 0; t < 2; t++)
        for (size_t c = 0; c < N_CHANNELS; c++)
            for (size_t outer = 1; outer <= 5; outer += 2) {
                enum qdqi_format f = (enum qdqi_format)((outer + c) % QDQI_N_FORMATS);
                struct layout l = {outer, channels[c], inners[_i], c % 4, c % 4, false};
                l.to = outer == 5 ? (c + 1) % 4 : l.to;
                l.in_place = outer == 3 && t == 0;
                size_t n = l.outer * l.channels * l.inner;
                if (n > (is_brief() ? 300000 : MAX_SIZE - 16))
                    continue;
                make(types[t], (enum kind)(c % N_KINDS), c, n, data, wide);
                make_scales(f, l.channels, outer + c);
                run(types[t], f, &l, has_points(f) && outer > 1);
            }
}
END_TEST

/* Tensors with different alignments cannot be read and written by vectors. */
START_TEST(any_two_alignments_work)
{
    for (size_t t = 0; t < 2; t++)
        for (size_t from = 0; from < 8; from++)
            for (size_t to = 0; to < 8; to++) {
                const struct layout l = {2, 5, 401, from, to, false};
                make(types[t], NORMAL, from, 4010, data, wide);
                make_scales(QDQI_TO_INT8, 5, to);
                run(types[t], QDQI_TO_INT8, &l, false);
            }
}
END_TEST

START_TEST(an_empty_tensor_is_left_alone)
{
    static const struct layout none[] = {
        {0, 3, 4, 0, 0, false}, {2, 0, 4, 0, 0, false}, {2, 3, 0, 0, 0, false}};
    for (size_t i = 0; i < 3; i++)
        run(QDQI_FLOAT32, QDQI_TO_INT8, &none[i], false);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("cuda/fake");
    TCase *t = tcase_create("fake");
    tcase_add_unchecked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, tensors_get_the_bits_of_the_cpu, 0, n_sizes());
    tcase_add_loop_test(t, kinds_of_data_get_the_bits_of_the_cpu, 0, QDQI_N_FORMATS);
    tcase_add_loop_test(t, every_half_gets_the_bits_of_the_cpu, 0, QDQI_N_FORMATS);
    tcase_add_loop_test(t, channels_get_the_bits_of_the_cpu, 0, N_INNERS);
    tcase_add_test(t, any_two_alignments_work);
    tcase_add_test(t, an_empty_tensor_is_left_alone);
    suite_add_tcase(s, t);
    return s;
}

CUDA_MAIN(suite)
