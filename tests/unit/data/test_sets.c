/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX's test data: every form of a tensor's elements, and samples with their own
   shapes. */
#include "config.h"

#include "files/data/feed.h"
#include "files/data/random.h"
#include "files/data/reader.h"
#include "files/data/scaling.h"
#include "data_files.h"
#include "failing.h"

/* The integers of these files are meant as they are. */
static const struct qdq_spec casting = {.calibration.cast = true};

/* --- tensors, byte by byte ------------------------------------------------ */

#define BYTES(...)                                                \
    (const unsigned char[]){__VA_ARGS__}, sizeof(unsigned char[]) \
    {                                                             \
        __VA_ARGS__                                               \
    }

/* Tensors of dims [2], in every form that holds the elements 1 and 2 (or -2). */
static const struct form {
    const char *what;
    const unsigned char *proto;
    size_t size;
    const char *dtype;
    uint64_t bits[2];
} forms[] = {
    {"raw float32",
     BYTES(8, 2, 16, 1, 74, 8, 0, 0, 128, 63, 0, 0, 0, 64),
     "float32",
     {0x3f800000, 0x40000000}},
    {"packed floats",
     BYTES(8, 2, 16, 1, 34, 8, 0, 0, 128, 63, 0, 0, 0, 64),
     "float32",
     {0x3f800000, 0x40000000}},
    {"single floats",
     BYTES(8, 2, 16, 1, 37, 0, 0, 128, 63, 37, 0, 0, 0, 64),
     "float32",
     {0x3f800000, 0x40000000}},
    {"floats before type and shape",
     BYTES(34, 4, 0, 0, 128, 63, 34, 0, 37, 0, 0, 0, 64, 16, 1, 10, 1, 2),
     "float32",
     {0x3f800000, 0x40000000}},
    {"single double and packed",
     BYTES(8, 2, 16, 11, 81, 0, 0, 0, 0, 0, 0, 240, 63, 82, 8, 0, 0, 0, 0, 0, 0, 0, 64),
     "float64",
     {0x3ff0000000000000, 0x4000000000000000}},
    {"packed int64",
     BYTES(8, 2, 16, 7, 58, 11, 1, 254, 255, 255, 255, 255, 255, 255, 255, 255, 1),
     "int64",
     {1, (uint64_t)-2}},
    {"single int64 among others",
     BYTES(8, 2, 56, 1, 98, 2, 104, 105, 16, 7, 56, 2),
     "int64",
     {1, 2}},
    {"int8 of ten bytes",
     BYTES(8, 2, 16, 3, 42, 11, 1, 254, 255, 255, 255, 255, 255, 255, 255, 255, 1),
     "int8",
     {1, 0xfe}},
    {"int8 of five bytes",
     BYTES(8, 2, 16, 3, 42, 6, 1, 254, 255, 255, 255, 15),
     "int8",
     {1, 0xfe}},
    {"uint16", BYTES(8, 2, 16, 4, 42, 4, 1, 255, 255, 3), "uint16", {1, 0xffff}},
    {"bool", BYTES(8, 2, 16, 9, 42, 2, 1, 0), "bool", {1, 0}},
    {"float16 as bits",
     BYTES(8, 2, 16, 10, 42, 5, 128, 120, 128, 128, 1),
     "float16",
     {0x3c00, 0x4000}},
    {"uint32",
     BYTES(8, 2, 16, 12, 90, 6, 1, 255, 255, 255, 255, 15),
     "uint32",
     {1, 0xffffffff}},
    {"uint64", BYTES(8, 2, 16, 13, 88, 1, 88, 2), "uint64", {1, 2}},
};

static struct bytes
copy_of(const unsigned char *p, size_t n)
{
    struct bytes b = {0};
    put(&b, p, n);
    return b;
}

static struct qdq_dataset *
open_zip(struct zip *z)
{
    struct qdq_dataset *dataset = NULL;
    struct qdq_error err = {0};
    int fd = zip_file_of(z);
    ck_assert_msg(qdq_dataset_open(fd, &dataset, &err) == QDQ_OK, "%s", err.text);
    close(fd);
    return dataset;
}

UNIT_ROWS(form, forms)
{
    const struct form *f = &forms[_i];
    struct zip z = {0};
    struct qdqi_reader *reader;
    struct qdq_error err = {0};
    zip_add_how(&z, "test_data_set_0/input_0.pb", copy_of(f->proto, f->size),
                (struct zip_how){.deflate = true});
    struct qdq_dataset *dataset = open_zip(&z);
    const struct qdq_array *array = qdq_dataset_info(dataset)->arrays;
    ck_assert_msg(strcmp(array->dtype, f->dtype) == 0, "%s", f->what);
    ck_assert_str_eq(array->name, "input_0");
    ck_assert_uint_eq(array->rank, 2);
    size_t size = qdqi_dtype_size(qdqi_dataset_dtype(dataset, 0));
    ck_assert_int_eq(qdqi_reader_open(dataset, 0, &reader, &err), QDQ_OK);
    /* reads one element at a time, so that pieces would show */
    for (int i = 0; i < 2; i++) {
        uint64_t bits = 0;
        ck_assert_msg(qdqi_reader_read(reader, &bits, size, &err) == QDQ_OK, "%s: %s",
                      f->what, err.text);
        ck_assert_msg(bits == f->bits[i], "%s", f->what);
    }
    ck_assert_int_eq(qdqi_reader_read(reader, &size, 1, &err), QDQ_INVALID_DATASET);
    qdqi_reader_close(&reader);
    qdq_dataset_free(&dataset);
}

/* A tensor that is cut at any byte is refused with a reason. */
UNIT_ROWS(cut_short, forms)
{
    const struct form *f = &forms[_i];
    for (size_t n = 0; n < f->size; n++) {
        struct zip z = {0};
        struct qdq_dataset *dataset = NULL;
        struct qdq_error err = {0};
        zip_add(&z, "test_data_set_0/input_0.pb", copy_of(f->proto, n));
        int fd = zip_file_of(&z);
        enum qdq_code code = qdq_dataset_open(fd, &dataset, &err);
        if (code == QDQ_OK) /* the cut removed the dims, so that it is a scalar */
            ck_assert_uint_eq(qdq_dataset_info(dataset)->arrays[0].rank, 1);
        else
            ck_assert_msg(code == QDQ_INVALID_DATASET && *err.text, "%s", f->what);
        qdq_dataset_free(&dataset);
        close(fd);
    }
}

/* --- samples -------------------------------------------------------------- */

/* Makes a uint8 tensor [1, n] named "x", whose elements count up from `first`. */
static struct bytes
row(unsigned char n, unsigned char first)
{
    const unsigned char head[] = {8, 1, 8, n, 16, 2, 66, 1, 'x', 74, n};
    struct bytes b = copy_of(head, sizeof head);
    for (unsigned char i = 0; i < n; i++)
        put_number(&b, first + i, 1);
    return b;
}

static struct qdq_dataset *
four_rows(void)
{
    static const unsigned char sizes[] = {3, 1, 5, 2}, firsts[] = {0, 3, 4, 9};
    static const int sets[] = {2, 9, 10, 100};
    struct zip z = {0};
    for (int i = 4; i-- > 0;) {
        char name[64];
        snprintf(name, sizeof name, "./any..where/test_data_set_%d/input_0.pb",
                 sets[i]);
        zip_add_how(&z, name, row(sizes[i], firsts[i]),
                    (struct zip_how){.deflate = i % 2});
        snprintf(name, sizeof name, "/../any/test_data_set_%d/output_0.pb", sets[i]);
        zip_add(&z, name, row(1, 0));
    }
    return open_zip(&z);
}

static const struct taking {
    int64_t first, max;
    int from, to; /* elements */
    int64_t samples;
} takings[] = {
    {0, 0, 0, 11, 4}, {0, 2, 0, 4, 2}, {1, 0, 3, 11, 3},
    {3, 5, 9, 11, 1}, {9, 0, 0, 0, 0},
};

UNIT_ROWS(ragged, takings)
{
    const struct taking *t = &takings[_i];
    const struct qdqi_feed_options options = {
        .batch = 64, .first = t->first, .max_samples = t->max};
    const struct qdq_dim dims[] = {{1, NULL}, {-1, "n"}};
    const struct qdq_value input = {"x", "float32", true, 2, dims};
    const struct qdq_model_info model = {.n_inputs = 1, .inputs = &input};
    struct qdq_dataset *dataset = four_rows();
    const struct qdqi_input *fed;
    struct qdqi_feed *feed;
    struct qdq_error err = {0};
    int64_t samples = 1, sum = 0;
    int next = t->from;
    ck_assert_int_eq(qdq_dataset_info(dataset)->arrays[0].shape[2], QDQ_DIFFERS);
    qdqi_dataset_prepare(dataset, &casting);
    ck_assert_int_eq(qdqi_feed_open(&model, dataset, &options, &feed, &err), QDQ_OK);
    ck_assert_int_eq(qdqi_feed_available(feed), 4);
    while (samples > 0) {
        ck_assert_int_eq(qdqi_feed_next(feed, &fed, &samples, &err), QDQ_OK);
        size_t n = samples > 0 ? (size_t)fed[0].shape[1] : 0;
        ck_assert(samples == 0 || fed[0].size == n * sizeof(float));
        for (size_t i = 0; i < n; i++)
            ck_assert(((const float *)fed[0].data)[i] == (float)next++);
        ck_assert_ptr_null(qdqi_feed_sample(feed, 0));
        sum += samples;
    }
    ck_assert_int_eq(next, t->to);
    ck_assert_int_eq(sum, t->samples);
    qdqi_feed_close(&feed);
    qdq_dataset_free(&dataset);
}

/* Reads the samples of a batch one by one. */
UNIT_TEST(one_of_a_batch)
{
    const float data[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const struct qdqi_feed_options options = {.batch = 3};
    const struct qdq_dim dims[] = {{-1, NULL}, {2, NULL}};
    const struct qdq_value input = {"x", "float32", true, 2, dims};
    const struct qdq_model_info model = {.n_inputs = 1, .inputs = &input};
    struct bytes b = npy_c("<f4", "(5, 2)", data, sizeof data);
    struct qdq_dataset *dataset;
    struct qdqi_feed *feed;
    const struct qdqi_input *fed;
    struct qdq_error err = {0};
    int64_t samples;
    int fd = file_of(&b);
    ck_assert_int_eq(qdq_dataset_open(fd, &dataset, &err), QDQ_OK);
    qdqi_dataset_prepare(dataset, &casting);
    ck_assert_int_eq(qdqi_feed_open(&model, dataset, &options, &feed, &err), QDQ_OK);
    for (int run = 0, at = 0; run < 2; run++) {
        ck_assert_int_eq(qdqi_feed_next(feed, &fed, &samples, &err), QDQ_OK);
        ck_assert_int_eq(fed[0].shape[0], samples);
        for (int64_t i = 0; i < samples; i++, at++) {
            const struct qdqi_input *one = qdqi_feed_sample(feed, i);
            ck_assert_int_eq(one[0].shape[0], 1);
            ck_assert_uint_eq(one[0].size, 2 * sizeof(float));
            ck_assert(((const float *)one[0].data)[1] == data[2 * at + 1]);
        }
        ck_assert_ptr_null(qdqi_feed_sample(feed, samples));
    }
    qdqi_feed_close(&feed);
    qdq_dataset_free(&dataset);
    close(fd);
}

/* --- out of memory -------------------------------------------------------- */

/* Opens a dataset of the file, or of random samples when it is -1, and reads all of
   it. */
static enum qdq_code
take_all(int fd, struct qdq_error *err)
{
    const struct qdqi_feed_options options = {.batch = 2};
    const struct qdq_calibration_spec spec = {.random_samples = 3};
    const struct qdq_dim dims[] = {{-1, NULL}, {fd < 0 ? 2 : -1, NULL}};
    const struct qdq_value input = {"x", "float32", true, 2, dims};
    const struct qdq_model_info model = {.n_inputs = 1, .inputs = &input};
    struct qdq_dataset *dataset = NULL;
    struct qdqi_feed *feed = NULL;
    const struct qdqi_input *fed;
    int64_t samples = 1;
    enum qdq_code code = fd < 0 ? qdqi_random_open(&model, &spec, &dataset, err)
                                : qdq_dataset_open(fd, &dataset, err);
    if (!code) {
        qdqi_dataset_prepare(dataset, &casting);
        code = qdqi_feed_open(&model, dataset, &options, &feed, err);
    }
    while (!code && samples > 0)
        code = qdqi_feed_next(feed, &fed, &samples, err);
    qdqi_feed_close(&feed);
    qdq_dataset_free(&dataset);
    return code;
}

UNIT_LOOP(every_allocation_may_fail, 2)
{
    enum qdq_code code = QDQ_NO_MEMORY;
    struct zip z = {0};
    long n = 0;
    zip_add(&z, "test_data_set_0/input_0.pb", row(3, 0));
    zip_add(&z, "test_data_set_1/input_0.pb", row(2, 0));
    int fd = zip_file_of(&z);
    while (code != QDQ_OK && ++n < 1000) {
        struct qdq_error err = {0};
        fail_at = n;
        code = take_all(_i ? fd : -1, &err);
        bool reached = fail_at == 0;
        fail_at = 0;
        ck_assert_msg(code == (reached ? QDQ_NO_MEMORY : QDQ_OK),
                      "allocation %ld: code %d, %s", n, code, err.text);
    }
    ck_assert_int_gt(n, 5);
    ck_assert_int_lt(n, 1000);
    close(fd);
}

UNIT_SUITE("data/sets")
