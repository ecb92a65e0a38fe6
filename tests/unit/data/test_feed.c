/* SPDX-License-Identifier: Apache-2.0 */
/* The feed: arrays bound to inputs, cut into samples and cast. */
#include "config.h"

#include "files/data/cast.h"
#include "files/data/scaling.h"
#include "files/data/buffer.h"
#include "files/data/feed.h"
#include "data_files.h"

enum { MAX_RANK = 4 };

/* One array of the data and the input that it feeds. In a shape, -1 is the end and 0
   a symbolic size. */
struct port {
    const char *array, *descr;
    int shape[MAX_RANK + 1];
    const char *input, *dtype;
    int dims[MAX_RANK + 1];
};

struct feeding {
    const char *what;
    struct port ports[2];
    struct qdqi_feed_options options;
    enum qdq_code code;
    const char *text; /* a part of the error, or the code of the only warning */
    int64_t samples, runs, available;
    int64_t shape0; /* axis 0 of the first run's first input */
};

static const struct feeding feedings[] = {
    {"one a run",
     {{"x", "<f4", {5, 2, -1}, "x", "float32", {0, 2, -1}}},
     {1, 0, 0},
     QDQ_OK,
     NULL,
     5,
     5,
     5,
     1},
    {"batches, the last one short",
     {{"x", "<f4", {5, 2, -1}, "x", "float32", {0, 2, -1}}},
     {2, 0, 0},
     QDQ_OK,
     NULL,
     5,
     3,
     5,
     2},
    {"a batch larger than the data",
     {{"x", "<f4", {5, 2, -1}, "x", "float32", {0, 2, -1}}},
     {64, 0, 0},
     QDQ_OK,
     NULL,
     5,
     1,
     5,
     5},
    {"fewer samples asked for",
     {{"x", "<f4", {5, 2, -1}, "x", "float32", {0, 0, -1}}},
     {2, 1, 3},
     QDQ_OK,
     NULL,
     3,
     2,
     5,
     2},
    {"from behind the end",
     {{"x", "<f4", {5, 2, -1}, "x", "float32", {0, 2, -1}}},
     {2, 9, 0},
     QDQ_OK,
     NULL,
     0,
     0,
     5,
     0},
    {"a fixed batch",
     {{"x", "<f4", {6, 2, -1}, "x", "float32", {3, 2, -1}}},
     {1, 0, 0},
     QDQ_OK,
     NULL,
     6,
     2,
     6,
     3},
    {"a remainder",
     {{"x", "<f4", {5, 2, -1}, "x", "float32", {2, 2, -1}}},
     {1, 0, 0},
     QDQ_OK,
     "remainder_dropped",
     4,
     2,
     4,
     2},
    {"a fixed batch is cut whole",
     {{"x", "<f4", {8, 2, -1}, "x", "float32", {2, 2, -1}}},
     {1, 1, 5},
     QDQ_OK,
     NULL,
     4,
     2,
     8,
     2},
    {"no less than a fixed batch",
     {{"x", "<f4", {8, 2, -1}, "x", "float32", {4, 2, -1}}},
     {1, 0, 1},
     QDQ_OK,
     NULL,
     4,
     1,
     8,
     4},
    {"too few for the batch",
     {{"x", "<f4", {3, 2, -1}, "x", "float32", {4, 2, -1}}},
     {1, 0, 0},
     QDQ_CALIBRATION_MISMATCH,
     "wants float32 [4,2], the data has float32 [3,2]",
     0,
     0,
     0,
     0},
    {"one rank more",
     {{"x", "<f4", {3, 4, 2, -1}, "x", "float32", {4, 2, -1}}},
     {8, 0, 0},
     QDQ_OK,
     NULL,
     3,
     3,
     3,
     4},
    {"one rank more, symbolic",
     {{"x", "<f4", {3, 4, 2, -1}, "x", "float32", {0, 2, -1}}},
     {8, 0, 0},
     QDQ_OK,
     NULL,
     3,
     3,
     3,
     4},
    {"a scalar input",
     {{"x", "<f4", {3, -1}, "x", "float32", {-1}}},
     {8, 0, 0},
     QDQ_OK,
     NULL,
     3,
     3,
     3,
     -1},
    {"one rank more beside a batch",
     {{"x", "<f4", {3, 2, -1}, "x", "float32", {0, 2, -1}},
      {"size", "<i8", {3, 2, -1}, "size", "int64", {2, -1}}},
     {8, 0, 0},
     QDQ_OK,
     NULL,
     3,
     3,
     3,
     1},
    {"batches that differ",
     {{"x", "<f4", {6, 2, -1}, "x", "float32", {2, 2, -1}},
      {"y", "<f4", {6, 2, -1}, "y", "float32", {3, 2, -1}}},
     {1, 0, 0},
     QDQ_CALIBRATION_MISMATCH,
     "another number of samples",
     0,
     0,
     0,
     0},
    {"a shape that differs",
     {{"x", "<f4", {5, 3, -1}, "x", "float32", {0, 2, -1}}},
     {1, 0, 0},
     QDQ_CALIBRATION_MISMATCH,
     "wants float32 [?,2], the data has float32 [5,3]",
     0,
     0,
     0,
     0},
    {"a sample's shape differs",
     {{"x", "<f4", {5, 1, 3, -1}, "x", "float32", {0, 2, -1}}},
     {1, 0, 0},
     QDQ_CALIBRATION_MISMATCH,
     "the data has float32 [5,1,3]",
     0,
     0,
     0,
     0},
    {"a rank that differs",
     {{"x", "<f4", {4, -1}, "x", "float32", {0, 2, -1}}},
     {1, 0, 0},
     QDQ_CALIBRATION_MISMATCH,
     "the rank differs",
     0,
     0,
     0,
     0},
    {"another name",
     {{"images", "<f4", {4, 2, -1}, "x", "float32", {0, 2, -1}}},
     {1, 0, 0},
     QDQ_CALIBRATION_MISMATCH,
     "no array of that name (but 'images')",
     0,
     0,
     0,
     0},
    {"a cast that may lose",
     {{"x", "<i8", {4, 2, -1}, "x", "int32", {0, 2, -1}}},
     {1, 0, 0},
     QDQ_CALIBRATION_MISMATCH,
     "wants int32 [?,2], the data has int64 [4,2]",
     0,
     0,
     0,
     0},
    {"integers for floating point",
     {{"x", "|u1", {4, 2, -1}, "x", "float32", {0, 2, -1}}},
     {1, 0, 0},
     QDQ_CALIBRATION_MISMATCH,
     "\"calibration\": {\"cast\": true}",
     0,
     0,
     0,
     0},
    {"channels last",
     {{"x", "<f4", {4, 2, 5, 3, -1}, "x", "float32", {0, 3, 2, 5, -1}}},
     {1, 0, 0},
     QDQ_CALIBRATION_MISMATCH,
     "numpy.transpose(x, (0, 3, 1, 2))",
     0,
     0,
     0,
     0},
    {"a float for a whole number",
     {{"x", "<f4", {4, 2, -1}, "x", "int64", {0, 2, -1}}},
     {1, 0, 0},
     QDQ_CALIBRATION_MISMATCH,
     "may lose",
     0,
     0,
     0,
     0},
    {"float64",
     {{"x", "<f8", {4, 2, -1}, "x", "float32", {0, 2, -1}}},
     {1, 0, 0},
     QDQ_OK,
     "float64_cast",
     4,
     4,
     4,
     1},
    {"an unknown type is the data's",
     {{"x", "|u1", {4, 2, -1}, "x", "", {0, 2, -1}}},
     {1, 0, 0},
     QDQ_OK,
     NULL,
     4,
     4,
     4,
     1},
    {"an array too many",
     {{"x", "<f4", {4, 2, -1}, "x", "float32", {0, 2, -1}},
      {"labels", "<i8", {4, -1}, NULL, NULL, {-1}}},
     {1, 0, 0},
     QDQ_OK,
     "array_ignored",
     4,
     4,
     4,
     1},
};

/* Makes an array whose elements count up from 0, in the file's type. */
static struct bytes
counting(const char *descr, const int *shape)
{
    char text[64] = "(";
    size_t n = 1, size = (size_t)(descr[2] - '0');
    for (int i = 0; shape[i] >= 0; i++) {
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "%d,", shape[i]);
        n *= (size_t)shape[i];
    }
    size_t len = strlen(text);
    snprintf(text + len, sizeof text - len, ")");
    struct bytes data = {0};
    for (size_t i = 0; i < n; i++) {
        float f = (float)i;
        double d = (double)i;
        if (descr[1] == 'f')
            put(&data, size == 4 ? (const void *)&f : (const void *)&d, size);
        else
            put_number(&data, i, (int)size);
    }
    struct bytes file = npy_c(descr, text, data.p, data.n);
    free(data.p);
    return file;
}

/* A model with the inputs of the ports. */
struct model {
    struct qdq_dim dims[2][MAX_RANK];
    struct qdq_value inputs[2];
    struct qdq_model_info info;
};

static void
make_model(struct model *m, const struct port *ports)
{
    *m = (struct model){.info.inputs = m->inputs};
    for (size_t i = 0; i < 2 && ports[i].input; i++) {
        struct qdq_value *value = &m->inputs[m->info.n_inputs++];
        *value = (struct qdq_value){.name = ports[i].input,
                                    .dtype = ports[i].dtype,
                                    .has_shape = true,
                                    .dims = m->dims[i]};
        for (; ports[i].dims[value->rank] >= 0; value->rank++) {
            int dim = ports[i].dims[value->rank];
            m->dims[i][value->rank] =
                (struct qdq_dim){dim ? dim : -1, dim ? NULL : "n"};
        }
    }
}

static struct qdq_dataset *
make_dataset(const struct port *ports)
{
    struct zip z = {0};
    struct qdq_dataset *dataset;
    struct qdq_error err = {0};
    for (size_t i = 0; i < 2 && ports[i].array; i++)
        zip_add_how(&z, ports[i].array, counting(ports[i].descr, ports[i].shape),
                    (struct zip_how){.deflate = i == 1});
    int fd = zip_file_of(&z);
    ck_assert_msg(qdq_dataset_open(fd, &dataset, &err) == QDQ_OK, "%s", err.text);
    close(fd);
    return dataset;
}

/* Returns element i of an input as a number. */
static double
element(const struct qdqi_input *input, size_t i)
{
    switch (input->dtype) {
    case QDQI_FLOAT32:
        return (double)((const float *)input->data)[i];
    case QDQI_INT64:
        return (double)((const int64_t *)input->data)[i];
    case QDQI_UINT8:
        return (double)((const uint8_t *)input->data)[i];
    default:
        ck_abort_msg("type %d", input->dtype);
        return 0;
    }
}

/* Runs the feed to its end and checks that the elements count up from `first`
   without a gap. */
static void
drain(struct qdqi_feed *feed, const struct feeding *f)
{
    const struct qdqi_input *inputs;
    int64_t samples, sum = 0, runs = 0;
    struct qdq_error err = {0};
    double next = -1;
    for (;;) {
        ck_assert_int_eq(qdqi_feed_next(feed, &inputs, &samples, &err), QDQ_OK);
        if (samples == 0)
            break;
        size_t n = 1;
        for (size_t i = 0; i < inputs[0].rank; i++)
            n *= (size_t)inputs[0].shape[i];
        ck_assert_uint_eq(inputs[0].size, n * qdqi_dtype_size(inputs[0].dtype));
        if (runs == 0 && f->shape0 >= 0)
            ck_assert_msg(inputs[0].shape[0] == f->shape0, "%s", f->what);
        for (size_t i = 0; i < n; i++) {
            if (next < 0)
                next = element(&inputs[0], 0);
            ck_assert_msg(element(&inputs[0], i) == next, "%s", f->what);
            next++;
        }
        sum += samples;
        runs++;
    }
    ck_assert_int_eq(sum, f->samples);
    ck_assert_int_eq(runs, f->runs);
}

UNIT_ROWS(feeding, feedings)
{
    const struct feeding *f = &feedings[_i];
    struct qdq_dataset *dataset = make_dataset(f->ports);
    struct model m;
    struct qdqi_feed *feed = NULL;
    struct qdq_error err = {0};
    make_model(&m, f->ports);
    enum qdq_code code = qdqi_feed_open(&m.info, dataset, &f->options, &feed, &err);
    ck_assert_msg(code == f->code, "%s: %d %s", f->what, code, err.text);
    if (code != QDQ_OK) {
        ck_assert_msg(strstr(err.text, f->text) != NULL, "%s: %s", f->what, err.text);
        ck_assert_int_eq(err.kind, QDQ_AT_INPUT);
        ck_assert_ptr_null(feed);
    } else {
        const struct qdq_warning *warnings;
        size_t n = qdqi_feed_warnings(feed, &warnings);
        ck_assert_msg(n == (f->text ? 1 : 0), "%s", f->what);
        if (f->text)
            ck_assert_str_eq(warnings[0].code, f->text);
        ck_assert_msg(qdqi_feed_samples(feed) == f->samples, "%s", f->what);
        ck_assert_msg(qdqi_feed_runs(feed) == f->runs, "%s", f->what);
        ck_assert_msg(qdqi_feed_available(feed) == f->available, "%s", f->what);
        drain(feed, f);
    }
    qdqi_feed_close(&feed);
    qdq_dataset_free(&dataset);
}

/* A file of one array feeds a model of one input, whatever the input's name. */
UNIT_TEST(bare_array)
{
    static const struct port ports[2] = {
        {NULL, NULL, {-1}, "any", "float32", {0, 2, -1}},
        {NULL, NULL, {-1}, "more", "float32", {0, 2, -1}},
    };
    static const int shape[] = {70, 2, -1};
    const struct qdqi_feed_options options = {.batch = 8};
    struct bytes b = counting("<f4", shape);
    int fd = file_of(&b);
    struct qdq_dataset *dataset;
    struct qdqi_feed *feed;
    struct qdq_error err = {0};
    struct model m;
    make_model(&m, ports);
    ck_assert_int_eq(qdq_dataset_open(fd, &dataset, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_feed_open(&m.info, dataset, &options, &feed, &err),
                     QDQ_CALIBRATION_MISMATCH);
    ck_assert_ptr_nonnull(strstr(err.text, ".npz"));
    err = (struct qdq_error){0};
    m.info.n_inputs = 0;
    ck_assert_int_eq(qdqi_feed_open(&m.info, dataset, &options, &feed, &err),
                     QDQ_CALIBRATION_MISMATCH);
    err = (struct qdq_error){0};
    m.info.n_inputs = 1;
    m.inputs[0].has_shape = false; /* without a shape, axis 0 is the batch */
    m.inputs[0].dims = NULL;
    ck_assert_int_eq(qdqi_feed_open(&m.info, dataset, &options, &feed, &err), QDQ_OK);
    drain(feed,
          &(struct feeding){.what = "bare", .samples = 70, .runs = 9, .shape0 = 8});
    qdqi_feed_close(&feed);
    qdq_dataset_free(&dataset);
    close(fd);
}

/* Damage behind the header is an error of the run that reaches it. */
UNIT_TEST(damaged)
{
    static const struct port ports[2] = {{NULL, NULL, {-1}, "x", "float32", {0, -1}}};
    static const int shape[] = {4, -1};
    const struct qdqi_feed_options options = {.batch = 3};
    struct zip z = {0};
    struct qdq_dataset *dataset;
    struct qdqi_feed *feed;
    const struct qdqi_input *inputs;
    int64_t samples;
    struct qdq_error err = {0};
    struct model m;
    make_model(&m, ports);
    zip_add_how(&z, "x.npy", counting("<f4", shape), (struct zip_how){.bad_crc = true});
    int fd = zip_file_of(&z);
    ck_assert_int_eq(qdq_dataset_open(fd, &dataset, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_feed_open(&m.info, dataset, &options, &feed, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_feed_next(feed, &inputs, &samples, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_feed_next(feed, &inputs, &samples, &err),
                     QDQ_INVALID_DATASET);
    ck_assert_str_eq(err.where, "x");
    qdqi_feed_close(&feed);
    qdq_dataset_free(&dataset);
    close(fd);
}

/* --- scaling -------------------------------------------------------------- */

/* Scales the 24 elements 0, 1, … of two samples of three channels, and compares them with
   (element * scale - mean) / std of their channel. */
static void
check_scaling(const struct qdq_preprocess *row, const int64_t shape[4], size_t inner)
{
    const struct qdq_spec spec = {.preprocess = row, .n_preprocess = 1};
    const struct port ports[2] = {{"x", "|u1", {2, 3, 2, 2, -1}, "x", "float32", {-1}}};
    struct qdq_dataset *dataset = make_dataset(ports);
    struct qdqi_affine scaling;
    qdqi_dataset_prepare(dataset, &spec);
    ck_assert_ptr_null(
        qdqi_scaling_find(dataset, false, "x", QDQI_FLOAT32, 4, shape, &scaling));
    for (size_t i = 0; i < 24; i++) {
        const size_t channel = i / inner % 3;
        const float mean = (float)row->mean[row->n_mean > 1 ? channel : 0];
        float x = (float)i;
        qdqi_scaling_apply(&scaling, &x, 1, i);
        ck_assert(x ==
                  ((float)i * (float)row->scale - mean) / (float)row->std[channel]);
    }
    qdq_dataset_free(&dataset);
}

static const double means[] = {0.25, 0.5, 0.125}, deviations[] = {0.5, 2, 0.1};

UNIT_TEST(scaling_of_channels)
{
    const struct qdq_preprocess first = {.input = "x",
                                         .scale = 1. / 255,
                                         .mean = means,
                                         .std = deviations,
                                         .n_mean = 3,
                                         .n_std = 3};
    const struct qdq_preprocess last = {.input = "x",
                                        .channels_last = true,
                                        .scale = 2,
                                        .mean = means,
                                        .std = deviations,
                                        .n_mean = 1,
                                        .n_std = 3};
    check_scaling(&first, (const int64_t[]){1, 3, 2, 2}, 4);
    check_scaling(&last, (const int64_t[]){1, 2, 2, 3}, 1);
}

UNIT_TEST(scaling_that_does_not_fit)
{
    const struct qdq_preprocess row = {.input = "x",
                                       .scale = 1,
                                       .mean = means,
                                       .std = deviations,
                                       .n_mean = 3,
                                       .n_std = 3};
    const struct qdq_spec spec = {.preprocess = &row, .n_preprocess = 1};
    const struct port ports[2] = {{"x", "|u1", {2, 3, 2, 2, -1}, "x", "float32", {-1}}};
    const int64_t shape[] = {1, 2, 2, 3};
    struct qdq_dataset *dataset = make_dataset(ports);
    struct qdqi_affine scaling;
    qdqi_dataset_prepare(dataset, &spec);
    ck_assert_ptr_nonnull(
        strstr(qdqi_scaling_find(dataset, false, "x", QDQI_FLOAT32, 4, shape, &scaling),
               "nchw"));
    ck_assert_ptr_nonnull(
        strstr(qdqi_scaling_find(dataset, false, "x", QDQI_FLOAT16, 4, shape, &scaling),
               "float32"));
    ck_assert_ptr_null(
        qdqi_scaling_find(dataset, false, "other", QDQI_FLOAT32, 4, shape, &scaling));
    ck_assert_ptr_null(scaling.row);
    qdq_dataset_free(&dataset);
}

/* --- casts ---------------------------------------------------------------- */

static const struct {
    enum qdqi_dtype from, to;
    uint64_t before, after; /* bits */
} casts[] = {
    {QDQI_UINT8, QDQI_FLOAT32, 255, 0x437f0000},
    {QDQI_INT8, QDQI_INT64, 0x80, 0xffffffffffffff80},
    {QDQI_INT8, QDQI_FLOAT16, 0x80, 0xd800},
    {QDQI_UINT8, QDQI_FLOAT16, 255, 0x5bf8},
    {QDQI_UINT8, QDQI_FLOAT16, 0, 0},
    {QDQI_UINT32, QDQI_INT64, 0xffffffff, 0xffffffff},
    {QDQI_INT32, QDQI_FLOAT64, 0x80000000, 0xc1e0000000000000},
    {QDQI_BOOL, QDQI_FLOAT32, 7, 0x3f800000},
    {QDQI_BOOL, QDQI_BOOL, 7, 1},
    {QDQI_FLOAT16, QDQI_FLOAT32, 0x3c01, 0x3f802000},
    {QDQI_FLOAT16, QDQI_FLOAT32, 0x8001, 0xb3800000}, /* the smallest subnormal */
    {QDQI_FLOAT16, QDQI_FLOAT32, 0x7bff, 0x477fe000},
    {QDQI_FLOAT16, QDQI_FLOAT32, 0xfc00, 0xff800000},
    {QDQI_FLOAT16, QDQI_FLOAT64, 0x8000, 0x8000000000000000},
    /* halfway: rounded to even */
    {QDQI_FLOAT64, QDQI_FLOAT32, 0x3ff0000010000000, 0x3f800000},
    {QDQI_FLOAT32, QDQI_FLOAT32, 0x7fc01234, 0x7fc01234},
};

UNIT_ROWS(cast_value, casts)
{
    struct qdqi_cast cast = qdqi_cast_find(casts[_i].from, casts[_i].to);
    uint64_t after = 0, before = casts[_i].before;
    ck_assert_ptr_nonnull(cast.fn);
    ck_assert(cast.lossy == (casts[_i].from == QDQI_FLOAT64));
    cast.fn(&after, &before, 1);
    ck_assert_msg(after == casts[_i].after, "row %d: %llx", _i,
                  (unsigned long long)after);
}

static bool
is_float(enum qdqi_dtype t)
{
    return t == QDQI_FLOAT16 || t == QDQI_FLOAT32 || t == QDQI_FLOAT64;
}

static bool
is_signed(enum qdqi_dtype t)
{
    return t == QDQI_INT8 || t == QDQI_INT16 || t == QDQI_INT32 || t == QDQI_INT64;
}

/* Returns the bits of the whole numbers that a type holds exactly, without the sign. */
static int
digits(enum qdqi_dtype t)
{
    if (t == QDQI_BOOL)
        return 1;
    if (is_float(t))
        return t == QDQI_FLOAT16 ? 11 : t == QDQI_FLOAT32 ? 24 : 53;
    return (int)qdqi_dtype_size(t) * 8 - is_signed(t);
}

/* The types that NumPy's format has. */
static const char *const kinds[] = {"b1", "u1", "i1", "u2", "i2", "u4",
                                    "i4", "u8", "i8", "f2", "f4", "f8"};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* The table has a cast exactly where the target type has every number of the source
   type. */
UNIT_LOOP(cast_table, (N_KINDS * N_KINDS))
{
    enum qdqi_dtype from = qdqi_dtype_of_npy(kinds[_i / N_KINDS]);
    enum qdqi_dtype to = qdqi_dtype_of_npy(kinds[_i % N_KINDS]);
    bool lossless = from == to || (digits(from) <= digits(to) && to != QDQI_BOOL &&
                                   (!is_float(from) || is_float(to)) &&
                                   (!is_signed(from) || is_signed(to) || is_float(to)));
    bool rounded = from == QDQI_FLOAT64 && to == QDQI_FLOAT32;
    struct qdqi_cast cast = qdqi_cast_find(from, to);
    ck_assert_msg((cast.fn != NULL) == (lossless || rounded), "%s to %s",
                  qdqi_dtype_name(from), qdqi_dtype_name(to));
    ck_assert(cast.lossy == rounded);
}

/* --- buffers -------------------------------------------------------------- */

/* The buffer is in memory, in a file, or in memory because no file can be made. */
UNIT_LOOP(buffer, 3)
{
    enum { N = 100000 };
    static const unsigned char byte = 7;
    struct qdqi_buffer b = {0};
    struct qdq_error err = {0};
    qdqi_buffer_free(&b); /* the buffer was never made */
    if (_i == 2)
        setenv("TMPDIR", "/nowhere", 1);
    ck_assert_int_eq(qdqi_buffer_new(N, _i ? N : N + 1, &b, &err), QDQ_OK);
    unsetenv("TMPDIR");
    ck_assert_int_eq(b.fd >= 0, _i == 1);
    for (size_t i = 0; i < N; i += 3)
        ck_assert_int_eq(qdqi_buffer_write(&b, i, &byte, 1, &err), QDQ_OK);
    for (size_t i = 0; i < N; i += 3)
        ck_assert_int_eq(b.data[i], 7);
    b.data[N - 1] = 8; /* a run may write here */
    qdqi_buffer_free(&b);
    ck_assert_ptr_null(b.data);
}

UNIT_SUITE("data/feed")
