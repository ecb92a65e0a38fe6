/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens any bytes as calibration data, reads every array to its end, and feeds a model
 * whose inputs are just these arrays. Every failure must give a reason.
 *
 * Bytes that begin with SETS are tensors, one for each set. They are put into an
 * archive with correct checksums, because no mutation of a tensor would pass the check
 * otherwise. Bytes that begin with TARS are a tar archive, whose headers get correct
 * checksums likewise.
 *
 *   clang -DFUZZING -fsanitize=fuzzer,address,undefined -I… fuzz_dataset.c engine/…
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "files/data/feed.h"
#include "files/data/reader.h"

enum { MOST = 1 << 20 }; /* bytes that are read of one array, or fed in all */

static void
expect_error(enum qdq_code code, const struct qdq_error *err)
{
    assert(code != QDQ_INTERNAL && code != QDQ_NO_MEMORY && code != QDQ_IO);
    assert(err->code == code && *err->text);
}

/* Returns the number of an array's elements, but at most `most`. */
static size_t
count(const struct qdq_dataset *dataset, size_t i, size_t most)
{
    const struct qdq_array *array = &qdq_dataset_info(dataset)->arrays[i];
    size_t n = 1, part;
    if (!qdqi_dataset_differs(dataset, i)) {
        for (size_t k = 0; k < array->rank && n <= most; k++)
            n = (uint64_t)array->shape[k] > most ? most + 1
                                                 : n * (size_t)array->shape[k];
        return n < most ? n : most;
    }
    n = 0;
    for (int64_t k = 0; k < array->shape[0] && n <= most; k++) {
        const int64_t *shape = qdqi_dataset_part(dataset, i, k, &part);
        for (size_t a = 1; a < array->rank; a++)
            assert(shape[a - 1] >= 0 &&
                   (array->shape[a] == QDQ_DIFFERS || array->shape[a] == shape[a - 1]));
        n = part > most ? most + 1 : n + part;
    }
    return n < most ? n : most;
}

static void
read_array(struct qdq_dataset *dataset, size_t i)
{
    static unsigned char piece[4096];
    struct qdqi_reader *reader = NULL;
    struct qdq_error err = {0};
    size_t element = qdqi_dtype_size(qdqi_dataset_dtype(dataset, i));
    size_t left = count(dataset, i, MOST / element) * element;
    enum qdq_code code = qdqi_reader_open(dataset, i, &reader, &err);
    while (code == QDQ_OK && left > 0) {
        size_t n = left < sizeof piece ? left : sizeof piece;
        code = qdqi_reader_read(reader, piece, n, &err);
        left -= n;
    }
    if (code != QDQ_OK)
        expect_error(code, &err);
    qdqi_reader_close(&reader);
}

/* Returns whether the input's size is that of its shape, which may have no elements. */
static bool
is_whole(const struct qdqi_input *input)
{
    size_t size = qdqi_dtype_size(input->dtype);
    for (size_t i = 0; i < input->rank; i++)
        size *= (size_t)input->shape[i];
    return input->data && input->size == size;
}

/* Feeds a model whose inputs are the arrays. With `fixed`, its batch is the file's. */
static void
feed_model(struct qdq_dataset *dataset, bool fixed)
{
    const struct qdq_dataset_info *info = qdq_dataset_info(dataset);
    const struct qdqi_feed_options options = {.batch = 3, .first = 1, .max_samples = 9};
    struct qdq_value *inputs = calloc(info->n_arrays, sizeof *inputs);
    struct qdq_dim *dims = calloc(info->n_arrays, 64 * sizeof *dims);
    struct qdqi_feed *feed = NULL;
    struct qdq_error err = {0};
    size_t cut = qdqi_dataset_is_sets(dataset) ? 1 : 0;
    assert(inputs && dims);
    for (size_t i = 0; i < info->n_arrays; i++) {
        const struct qdq_array *array = &info->arrays[i];
        inputs[i] = (struct qdq_value){array->name, array->dtype, true,
                                       array->rank - cut, dims + 64 * i};
        for (size_t k = cut; k < array->rank; k++)
            dims[64 * i + k - cut].value = k > 0 || fixed ? array->shape[k] : -1;
    }
    const struct qdq_model_info model = {.n_inputs = info->n_arrays, .inputs = inputs};
    enum qdq_code code = qdqi_feed_open(&model, dataset, &options, &feed, &err);
    int64_t samples = 1;
    for (int run = 0; code == QDQ_OK && samples > 0 && run < 4; run++) {
        const struct qdqi_input *fed;
        code = qdqi_feed_next(feed, &fed, &samples, &err);
        if (code == QDQ_OK && samples > 0)
            assert(is_whole(&fed[0]) && fed[0].rank == inputs[0].rank);
        for (int64_t i = 0; code == QDQ_OK && i < samples; i++) {
            const struct qdqi_input *one = qdqi_feed_sample(feed, i);
            assert(!one || (is_whole(&one[0]) && one[0].shape[0] == 1));
        }
    }
    if (code != QDQ_OK)
        expect_error(code, &err);
    qdqi_feed_close(&feed);
    free(inputs);
    free(dims);
}

/* Feeds a model of images, which are decoded and resized. */
static void
feed_images(struct qdq_dataset *dataset)
{
    static const struct qdq_dim dims[] = {{-1, NULL}, {3, NULL}, {5, NULL}, {6, NULL}};
    static const struct qdq_value input = {"x", "uint8", true, 4, dims};
    static const struct qdq_model_info model = {.n_inputs = 1, .inputs = &input};
    const struct qdqi_feed_options options = {.batch = 2, .max_samples = 5};
    struct qdqi_feed *feed = NULL;
    struct qdq_error err = {0};
    int64_t samples = 1;
    enum qdq_code code = qdqi_feed_open(&model, dataset, &options, &feed, &err);
    while (code == QDQ_OK && samples > 0) {
        const struct qdqi_input *fed;
        code = qdqi_feed_next(feed, &fed, &samples, &err);
        assert(code != QDQ_OK || samples == 0 || is_whole(&fed[0]));
    }
    if (code != QDQ_OK)
        expect_error(code, &err);
    qdqi_feed_close(&feed);
}

/* Feeds a model of as many features as there are columns of one number. */
static void
feed_features(struct qdq_dataset *dataset)
{
    const struct qdq_array *joined = qdqi_dataset_joined(dataset);
    const struct qdq_dim dims[] = {{-1, NULL}, {joined->shape[1], NULL}};
    const struct qdq_value input = {"all of them", joined->dtype, true, 2, dims};
    const struct qdq_model_info model = {.n_inputs = 1, .inputs = &input};
    const struct qdqi_feed_options options = {.batch = 3, .first = 1, .max_samples = 9};
    struct qdqi_feed *feed = NULL;
    struct qdq_error err = {0};
    int64_t samples = 1;
    enum qdq_code code = qdqi_feed_open(&model, dataset, &options, &feed, &err);
    while (code == QDQ_OK && samples > 0) {
        const struct qdqi_input *fed;
        code = qdqi_feed_next(feed, &fed, &samples, &err);
        assert(code != QDQ_OK || samples == 0 || is_whole(&fed[0]));
    }
    if (code != QDQ_OK)
        expect_error(code, &err);
    qdqi_feed_close(&feed);
}

/* Returns whether all samples are small. Larger ones are a matter of the process's
   limits. */
static bool
is_small(const struct qdq_dataset *dataset)
{
    size_t sum = 0;
    for (size_t i = 0; i < qdq_dataset_info(dataset)->n_arrays && sum < MOST / 8; i++)
        sum += count(dataset, i, MOST / 8);
    return sum < MOST / 8;
}

/* --- tensors in an archive ------------------------------------------------ */

static const uint8_t mark[] = {'S', 'E', 'T', 'S'};

static uint32_t
crc32_of(const uint8_t *p, size_t n)
{
    uint32_t crc = ~0u;
    while (n-- > 0) {
        crc ^= *p++;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

static uint8_t *
put(uint8_t *to, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        *to++ = (uint8_t)(i < 8 ? value >> 8 * i : 0);
    return to;
}

/* Writes the header of member i, for the directory or for the place before the
   member. */
static uint8_t *
put_header(uint8_t *to, bool directory, int i, const uint8_t *data, size_t size,
           size_t offset)
{
    char name[40];
    int len = snprintf(name, sizeof name, "test_data_set_%d/input_0.pb", i);
    to = put(to, directory ? 0x02014b50 : 0x04034b50, 4);
    to = put(to, 20, directory ? 2 : 0);
    to = put(to, 20, 2);
    to = put(to, 0, 8); /* method "stored", and no date */
    to = put(to, crc32_of(data, size), 4);
    to = put(to, size, 4);
    to = put(to, size, 4);
    to = put(to, (uint64_t)len, 4); /* no extra field */
    if (directory)
        to = put(put(to, 0, 10), offset, 4);
    memcpy(to, name, (size_t)len);
    return to + len;
}

enum { MOST_SETS = 16, HEADERS = 256 };

/* Writes an archive to `to` and returns its size. */
static size_t
archive_of(const uint8_t *data, size_t size, uint8_t *to)
{
    const uint8_t *starts[MOST_SETS], *next = data + sizeof mark, *end = data + size;
    size_t sizes[MOST_SETS], offsets[MOST_SETS];
    uint8_t *at = to;
    int n = 0;
    for (; n < MOST_SETS && next && next < end; n++) {
        starts[n] = next;
        next = memmem(next, (size_t)(end - next), mark, sizeof mark);
        sizes[n] = (size_t)((next ? next : end) - starts[n]);
        next = next ? next + sizeof mark : NULL;
        offsets[n] = (size_t)(at - to);
        at = put_header(at, false, n, starts[n], sizes[n], 0);
        memcpy(at, starts[n], sizes[n]);
        at += sizes[n];
    }
    size_t directory = (size_t)(at - to);
    for (int i = 0; i < n; i++)
        at = put_header(at, true, i, starts[i], sizes[i], offsets[i]);
    size_t length = (size_t)(at - to) - directory;
    at = put(put(at, 0x06054b50, 4), 0, 4);
    at = put(put(at, (uint64_t)n, 2), (uint64_t)n, 2);
    at = put(put(put(at, length, 4), directory, 4), 0, 2);
    return (size_t)(at - to);
}

/* --- tar archives --------------------------------------------------------- */

static const uint8_t tar_mark[] = {'T', 'A', 'R', 'S'};

enum { BLOCK = 512, SIZE_AT = 124, SIZE_LEN = 12, SUM_AT = 148, SUM_LEN = 8 };

/* Returns the size in a header, written in octal digits; 0 when there is none. */
static size_t
announced_size(const uint8_t *head)
{
    size_t n = 0;
    for (int i = 0; i < SIZE_LEN && head[SIZE_AT + i] >= '0' && head[SIZE_AT + i] < '8';
         i++)
        n = 8 * n + (size_t)(head[SIZE_AT + i] - '0');
    return n;
}

static void
mend_sums(uint8_t *tar, size_t size)
{
    size_t at = 0;
    while (size - at >= BLOCK) {
        uint8_t *head = tar + at;
        unsigned sum = 0;
        char digits[SUM_LEN];
        for (int i = 0; i < BLOCK; i++)
            sum += i >= SUM_AT && i < SUM_AT + SUM_LEN ? ' ' : head[i];
        if (sum == SUM_LEN * ' ') /* a block of zeros, which ends the archive */
            return;
        snprintf(digits, sizeof digits, "%06o", sum);
        memcpy(head + SUM_AT, digits, sizeof digits);
        size_t blocks = 1 + (announced_size(head) + BLOCK - 1) / BLOCK;
        if (blocks > (size - at) / BLOCK)
            return;
        at += blocks * BLOCK;
    }
}

static void
write_tar(int fd, const uint8_t *data, size_t size)
{
    uint8_t *tar = malloc(size);
    assert(tar);
    memcpy(tar, data, size);
    mend_sums(tar, size);
    assert(write(fd, tar, size) == (ssize_t)size);
    free(tar);
}

static int
dataset_of(const uint8_t *data, size_t size)
{
    int fd = memfd_create("dataset", MFD_CLOEXEC);
    assert(fd >= 0);
    if (size > sizeof tar_mark && memcmp(data, tar_mark, sizeof tar_mark) == 0) {
        write_tar(fd, data + sizeof tar_mark, size - sizeof tar_mark);
        return fd;
    }
    if (size <= sizeof mark || memcmp(data, mark, sizeof mark) != 0) {
        assert(write(fd, data, size) == (ssize_t)size);
        return fd;
    }
    uint8_t *archive = malloc(size + (size_t)MOST_SETS * HEADERS);
    assert(archive);
    size_t n = archive_of(data, size, archive);
    assert(write(fd, archive, n) == (ssize_t)n);
    free(archive);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qdq_dataset *dataset = NULL;
    struct qdq_error err = {0};
    int fd = dataset_of(data, size);
    enum qdq_code code = qdq_dataset_open(fd, &dataset, &err);
    close(fd);
    if (code != QDQ_OK) {
        expect_error(code, &err);
        return 0;
    }
    const struct qdq_dataset_info *info = qdq_dataset_info(dataset);
    assert(info->n_arrays > 0 && info->samples > 0);
    for (size_t i = 0; i < info->n_arrays; i++)
        read_array(dataset, i);
    if (is_small(dataset)) {
        feed_model(dataset, false);
        feed_model(dataset, true);
    }
    if (qdqi_dataset_joined(dataset))
        feed_features(dataset);
    if (info->has_images)
        feed_images(dataset);
    qdq_dataset_free(&dataset);
    return 0;
}

#define CORPUS "tests/fuzz/corpus/dataset"
#include "replay.h"
