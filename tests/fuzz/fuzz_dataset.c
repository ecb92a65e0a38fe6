/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as calibration data: opened, every array read to its end and fed to a model
 * that wants just these arrays. What fails has to say why.
 *
 *   clang -DFUZZING -fsanitize=fuzzer,address,undefined -I… fuzz_dataset.c engine/…
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/feed.h"
#include "data/reader.h"

enum { MOST = 1 << 20 }; /* bytes read of one array, or fed of all */

static void
expect_error(enum qdq_code code, const struct qdq_error *err)
{
    assert(code != QDQ_INTERNAL && code != QDQ_NO_MEMORY && code != QDQ_IO);
    assert(err->code == code && *err->text);
}

static void
read_array(struct qdq_dataset *dataset, size_t i)
{
    static unsigned char piece[4096];
    struct qdqi_reader *reader = NULL;
    struct qdq_error err = {0};
    const struct qdq_array *array = &qdq_dataset_info(dataset)->arrays[i];
    size_t element = qdqi_dtype_size(qdqi_dataset_dtype(dataset, i));
    size_t left = element;
    for (size_t k = 0; k < array->rank; k++)
        left *= (size_t)array->shape[k];
    if (left > MOST)
        left = MOST;
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

/* A model whose inputs are the arrays; `fixed`: with the batch that the file has. */
static void
feed_model(struct qdq_dataset *dataset, bool fixed)
{
    const struct qdq_dataset_info *info = qdq_dataset_info(dataset);
    const struct qdqi_feed_options options = {.batch = 3, .first = 1, .max_samples = 9};
    struct qdq_value *inputs = calloc(info->n_arrays, sizeof *inputs);
    struct qdq_dim *dims = calloc(info->n_arrays, 64 * sizeof *dims);
    struct qdqi_feed *feed = NULL;
    struct qdq_error err = {0};
    assert(inputs && dims);
    for (size_t i = 0; i < info->n_arrays; i++) {
        const struct qdq_array *array = &info->arrays[i];
        inputs[i] = (struct qdq_value){array->name, array->dtype, true, array->rank,
                                       dims + 64 * i};
        for (size_t k = 0; k < array->rank; k++)
            dims[64 * i + k].value = k > 0 || fixed ? array->shape[k] : -1;
    }
    const struct qdq_model_info model = {.n_inputs = info->n_arrays, .inputs = inputs};
    enum qdq_code code = qdqi_feed_open(&model, dataset, &options, &feed, &err);
    int64_t samples = 1;
    for (int run = 0; code == QDQ_OK && samples > 0 && run < 4; run++) {
        const struct qdqi_input *fed;
        code = qdqi_feed_next(feed, &fed, &samples, &err);
        if (code == QDQ_OK && samples > 0)
            assert(fed[0].size > 0 && fed[0].rank == info->arrays[0].rank);
    }
    if (code != QDQ_OK)
        expect_error(code, &err);
    qdqi_feed_close(&feed);
    free(inputs);
    free(dims);
}

/* Samples of more than this are left to the limits of the process. */
static bool
is_small(const struct qdq_dataset_info *info)
{
    size_t sum = 0;
    for (size_t i = 0; i < info->n_arrays; i++) {
        size_t size = 8;
        for (size_t k = 0; k < info->arrays[i].rank; k++)
            size *= (size_t)info->arrays[i].shape[k];
        sum += size;
        if (size > MOST || sum > MOST)
            return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qdq_dataset *dataset = NULL;
    struct qdq_error err = {0};
    int fd = memfd_create("dataset", MFD_CLOEXEC);
    assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
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
    if (is_small(info)) {
        feed_model(dataset, false);
        feed_model(dataset, true);
    }
    qdq_dataset_free(&dataset);
    return 0;
}

#define CORPUS "tests/fuzz/corpus/dataset"
#include "replay.h"
