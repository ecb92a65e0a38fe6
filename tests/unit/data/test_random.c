/* SPDX-License-Identifier: Apache-2.0 */
/* Random samples: the documented generator, its types, and the samples that the feed
   makes with it. */
#include "config.h"

#include "files/data/feed.h"
#include "files/data/random.h"
#include "files/data/reader.h"
#include "unit.h"

#include <math.h>
#include <string.h>

/* The first outputs of splitmix64 with the seed 0, from its authors' program. */
static const uint64_t outputs[] = {0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4,
                                   0x06c45d188009454f};

UNIT_TEST(generator)
{
    double f64[3];
    float f32[3];
    int8_t i8[3];
    uint64_t u64[3];
    uint8_t bits[3];
    qdqi_draw(&(struct qdqi_draw){QDQI_FLOAT64, 0, -2, 2}, 0, f64, 3);
    qdqi_draw(&(struct qdqi_draw){QDQI_FLOAT32, 0, 0, 1}, 0, f32, 3);
    qdqi_draw(&(struct qdqi_draw){QDQI_INT8, 0, -5, 94}, 0, i8, 3);
    qdqi_draw(&(struct qdqi_draw){QDQI_UINT64, 0, 7, 0x1p53}, 0, u64, 3);
    qdqi_draw(&(struct qdqi_draw){QDQI_BOOL, 0, 0, 1}, 0, bits, 3);
    for (int i = 0; i < 3; i++) {
        double u = (double)(outputs[i] >> 40) / 0x1p24;
        ck_assert(f64[i] == -2 + 4 * u);
        ck_assert((double)f32[i] == u);
        ck_assert_int_eq(i8[i], -5 + (int)(outputs[i] % 100));
        ck_assert_uint_eq(u64[i], 7 + outputs[i] % (((uint64_t)1 << 53) - 6));
        ck_assert_uint_eq(bits[i], outputs[i] >> 63);
    }
}

/* Constants are rounded to the nearest binary16, ties to even. */
static const struct {
    double value;
    unsigned bits;
} halves[] = {
    {0, 0},
    {1, 0x3c00},
    {-2, 0xc000},
    {65504, 0x7bff},
    {-65504, 0xfbff},
    {0x1p-14, 0x0400},
    {0x1p-24, 1},
    {0x1p-25, 0},
    {0x1.8p-24, 2},
    {0x1.8p-25, 1},
    {0x1p-60, 0},
    {1 + 0x1p-11, 0x3c00},
    {1 + 0x3p-11, 0x3c02},
    {0x1.ffep-15, 0x0400},
    {2047.9, 0x6800},
    {0.1, 0x2e66},
};

UNIT_ROWS(half, halves)
{
    uint16_t bits;
    double value = halves[_i].value;
    qdqi_draw(&(struct qdqi_draw){QDQI_FLOAT16, 3, value, value}, 5, &bits, 1);
    ck_assert_uint_eq(bits, halves[_i].bits);
}

/* --- datasets ------------------------------------------------------------- */

enum { MAX_RANK = 3 };

struct shapes {
    /* shapes of two inputs; -1 is the end, 0 a symbolic size */
    int dims[2][MAX_RANK + 1];
    int64_t n;
    int made[2][MAX_RANK + 2]; /* shapes of the arrays that are made */
};

static const struct shapes shapes[] = {
    {{{0, 3, -1}, {0, -1}}, 5, {{5, 3, -1}, {5, -1}}},
    {{{4, 3, -1}, {4, -1}}, 5, {{8, 3, -1}, {8, -1}}},
    {{{4, 3, -1}, {0, 2, -1}}, 8, {{8, 3, -1}, {8, 2, -1}}},
    {{{1, 3, -1}, {1, -1}}, 5, {{5, 3, -1}, {5, -1}}},
    {{{4, 3, -1}, {2, -1}}, 5, {{5, 4, 3, -1}, {5, 2, -1}}},
    {{{0, 3, -1}, {-1}}, 5, {{5, 1, 3, -1}, {5, -1}}},
};

struct model {
    struct qdq_dim dims[2][MAX_RANK];
    struct qdq_value inputs[2];
    struct qdq_model_info info;
};

static void
make_model(struct model *m, const int dims[2][MAX_RANK + 1])
{
    *m = (struct model){.info = {.n_inputs = 2, .inputs = m->inputs}};
    for (int i = 0; i < 2; i++) {
        struct qdq_value *value = &m->inputs[i];
        *value = (struct qdq_value){i ? "mask" : "x", i ? "bool" : "float32", true, 0,
                                    m->dims[i]};
        for (; dims[i][value->rank] >= 0; value->rank++)
            m->dims[i][value->rank].value =
                dims[i][value->rank] ? dims[i][value->rank] : -1;
    }
}

/* Reads all elements of x in runs of `batch`, and checks that they are the
   generator's, in its order. */
static int64_t
drain(const struct model *m, struct qdq_dataset *dataset, int64_t batch)
{
    const struct qdqi_feed_options options = {.batch = batch};
    struct qdqi_draw draw;
    struct qdqi_feed *feed;
    const struct qdqi_input *inputs;
    struct qdq_error err = {0};
    int64_t samples = 1, sum = 0;
    uint64_t at = 0;
    ck_assert_int_eq(qdqi_draw_init(&m->inputs[0], NULL, "", &draw, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_feed_open(&m->info, dataset, &options, &feed, &err), QDQ_OK);
    while (samples > 0) {
        ck_assert_int_eq(qdqi_feed_next(feed, &inputs, &samples, &err), QDQ_OK);
        for (size_t i = 0; samples > 0 && i < inputs[0].size / sizeof(float); i++) {
            float wanted;
            qdqi_draw(&draw, at++, &wanted, 1);
            ck_assert(((const float *)inputs[0].data)[i] == wanted);
        }
        sum += samples;
    }
    qdqi_feed_close(&feed);
    return sum;
}

UNIT_ROWS(shape, shapes)
{
    const struct shapes *s = &shapes[_i];
    const struct qdq_calibration_spec spec = {.random_samples = s->n};
    struct qdq_dataset *dataset;
    struct qdq_error err = {0};
    struct model m;
    make_model(&m, s->dims);
    ck_assert_int_eq(qdqi_random_open(&m.info, &spec, &dataset, &err), QDQ_OK);
    const struct qdq_dataset_info *info = qdq_dataset_info(dataset);
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < info->arrays[i].rank; k++)
            ck_assert_int_eq(info->arrays[i].shape[k], s->made[i][k]);
        ck_assert_int_eq(s->made[i][info->arrays[i].rank], -1);
    }
    ck_assert_int_eq(drain(&m, dataset, 1), info->samples);
    ck_assert_int_eq(drain(&m, dataset, 3), info->samples);
    qdq_dataset_free(&dataset);
}

UNIT_TEST(too_large)
{
    static const int dims[2][MAX_RANK + 1] = {{0, INT32_MAX, INT32_MAX, -1}, {0, -1}};
    const struct qdq_calibration_spec spec = {.random_samples = INT32_MAX};
    struct qdq_dataset *dataset = NULL;
    struct qdq_error err = {0};
    struct model m;
    make_model(&m, dims);
    ck_assert_int_eq(qdqi_random_open(&m.info, &spec, &dataset, &err),
                     QDQ_LIMIT_EXCEEDED);
    ck_assert_str_eq(err.where, "x");
    ck_assert_ptr_null(dataset);
}

/* Inputs that the model does not describe, or whose type has no random numbers, are
   refused. */
UNIT_TEST(not_drawable)
{
    struct qdqi_draw draw;
    struct qdq_error err = {0};
    struct qdq_value value = {.name = "x", .dtype = "float32"};
    ck_assert_int_eq(qdqi_draw_init(&value, NULL, "", &draw, &err), QDQ_INVALID_SPEC);
    ck_assert_ptr_nonnull(strstr(err.text, "does not say its shape"));
    err = (struct qdq_error){0};
    value.dtype = "string";
    ck_assert_int_eq(qdqi_draw_init(&value, NULL, "", &draw, &err), QDQ_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "of type string"));
}

UNIT_SUITE("data/random")
