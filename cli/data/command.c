/* SPDX-License-Identifier: Apache-2.0 */
/* The command data, which says what was understood of calibration data. */
#include "config.h"
#include "commands.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/report.h"
#include "data/text.h"
#include "external.h"
#include "files.h"
#include "folder.h"
#include "spec.h"
#include "terminal.h"

enum { MOST_CLASSES = 65536 };

/* Counts labels, and writes the samples of the first input. */
struct looking {
    size_t labels; /* the place of the array of labels */
    int64_t *counts;
    size_t n_counts;
    FILE *samples;
    int64_t written; /* values */
};

static bool
count_labels(void *arg, size_t input, const double *values, size_t n)
{
    struct looking *l = arg;
    for (size_t i = 0; i < n && input == l->labels; i++) {
        if (values[i] < 0 || values[i] >= MOST_CLASSES || values[i] != floor(values[i]))
            continue;
        const size_t class = (size_t)values[i];
        l->counts[class]++;
        if (class >= l->n_counts)
            l->n_counts = class + 1;
    }
    return true;
}

static bool
write_samples(void *arg, size_t input, const double *values, size_t n)
{
    struct looking *l = arg;
    for (size_t i = 0; i < n && input == 0 && l->samples; i++) {
        const float value = (float)values[i];
        if (fwrite(&value, sizeof value, 1, l->samples) != 1)
            return false;
        l->written++;
    }
    return true;
}

enum { NPY_HEAD = 256 };

/* Writes the head of an .npy file, whose shape is known at the end. */
static bool
write_head(FILE *to, const struct qdq_array *array, int64_t rows)
{
    char head[NPY_HEAD + 1], text[NPY_HEAD];
    size_t n = (size_t)snprintf(
        text, sizeof text,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRId64 ",", rows);
    for (size_t i = 1; i < array->rank && n + 24 < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %" PRId64 ",",
                              array->shape[i]);
    snprintf(text + n, sizeof text - n, ")}");
    snprintf(head, sizeof head, "\x93NUMPY%c%c%c%c%-245.245s\n", 1, 0, 0, 0, text);
    memcpy(head, "\x93NUMPY\x01\x00\xf6\x00", 10);
    return fseek(to, 0, SEEK_SET) == 0 && fwrite(head, NPY_HEAD, 1, to) == 1;
}

static void
print_shape(const struct qdq_array *array)
{
    printf(" %s [", array->dtype);
    for (size_t i = 0; i < array->rank; i++)
        array->shape[i] == QDQ_DIFFERS
            ? printf("%s?", i ? "," : "")
            : printf("%s%" PRId64, i ? "," : "", array->shape[i]);
    putchar(']');
}

static void
print_facts(const struct qdq_array_facts *facts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (facts[i].finite == 0)
            continue;
        printf("%-10s", "range");
        put_text(stdout, *facts[i].array.name ? facts[i].array.name : "(unnamed)", 0);
        printf(" from %g to %g, mean %g", facts[i].low, facts[i].high, facts[i].mean);
        if (facts[i].not_finite > 0)
            printf(", %" PRId64 " NaN or infinite", facts[i].not_finite);
        putchar('\n');
    }
}

static void
print_data(const struct api_data *data)
{
    printf("%-10s%" PRId64 "\n", "samples", data->info->samples);
    for (size_t i = 0; i < data->info->n_arrays; i++) {
        printf("%-10s", "array");
        put_text(stdout,
                 *data->info->arrays[i].name ? data->info->arrays[i].name : "(unnamed)",
                 0);
        print_shape(&data->info->arrays[i]);
        putchar('\n');
    }
    for (size_t i = 0; data->has_model && i < data->n_facts; i++) {
        printf("%-10s", "input");
        put_text(stdout, data->facts[i].array.name, 0);
        print_shape(&data->facts[i].array);
        putchar('\n');
    }
    print_facts(data->facts, data->n_facts);
    for (size_t i = 0; i < data->n_counts; i++) {
        printf("%-10s%zu", "label", i);
        if (i < data->info->n_classes) {
            putchar(' ');
            put_text(stdout, data->info->classes[i], 0);
        }
        printf(": %" PRId64 "\n", data->counts[i]);
    }
}

/* Looks at all samples: at the arrays as they are, for the labels; and as the model gets them. */
static bool
look(struct qdq_dataset *dataset, const struct qdq_model *model,
     const struct qdq_spec *spec, struct looking *l, struct api_data *data,
     struct api_problem *problem)
{
    const struct qdq_visitor count = {count_labels, l}, write = {write_samples, l};
    const struct qdq_dataset_info *info = data->info;
    struct qdq_error err = {0};
    l->labels = SIZE_MAX;
    for (size_t i = 0; i < info->n_arrays; i++)
        if (strcmp(info->arrays[i].name, "labels") == 0)
            l->labels = i - (info->has_images ? 1 : 0); /* images are not visited */
    enum qdq_code code = qdq_dataset_visit(dataset, NULL, NULL, &count, &data->facts,
                                           &data->n_facts, &err);
    data->counts = l->counts;
    data->n_counts = l->n_counts;
    if (code == QDQ_OK && model)
        code = qdq_dataset_visit(dataset, qdq_model_info(model), spec, &write,
                                 &data->facts, &data->n_facts, &err);
    return code == QDQ_OK || api_problem_set_engine(problem, &err);
}

static bool
say(const struct options *options, const struct api_data *data,
    struct api_problem *problem)
{
    if (!options->json) {
        print_data(data);
        return true;
    }
    char *text = api_data_encode(data);
    if (!text)
        return api_problem_no_memory(problem);
    put_json(stdout, text, strlen(text));
    putchar('\n');
    free(text);
    return true;
}

/* Returns whether samples are written as the model gets them: a text's ids are, as they are. */
static bool
writes_samples(const struct options *options)
{
    return options->out && !text_is(options->model);
}

static bool
check_inputs(const struct options *options, const struct qdq_model *model,
             struct api_problem *problem)
{
    const size_t n = model ? qdq_model_info(model)->n_inputs : 1;
    return !writes_samples(options) || n == 1 ||
           api_fail(problem, API_BAD_REQUEST,
                    "--out: the model has %zu inputs, and an .npy file has the samples "
                    "of one; leave it away",
                    n);
}

static bool
open_samples(const struct options *options, struct looking *l,
             struct api_problem *problem)
{
    static const char nothing[NPY_HEAD];
    if (!writes_samples(options))
        return true;
    if (!options->fits)
        return api_fail(problem, API_BAD_REQUEST,
                        "--out needs --model: a model's input gets the samples");
    l->samples = fopen(options->out, "wxe");
    return (l->samples && fwrite(nothing, sizeof nothing, 1, l->samples) == 1) ||
           file_fail(options->out, problem);
}

/* Finds how many rows along axis 0 the file has. */
static bool
count_rows(const struct options *options, const struct qdq_array *array,
           int64_t written, int64_t *ret, struct api_problem *problem)
{
    int64_t row = 1;
    for (size_t i = 1; i < array->rank; i++) {
        if (array->shape[i] == QDQ_DIFFERS)
            return api_fail(problem, API_BAD_REQUEST,
                            "%s: the samples differ in size, and an .npy file has one "
                            "size; leave --out away",
                            options->out);
        row *= array->shape[i];
    }
    *ret = row > 0 ? written / row : 0;
    return true;
}

static bool
close_samples(const struct options *options, struct looking *l,
              const struct api_data *data, bool ok, struct api_problem *problem)
{
    if (!l->samples)
        return ok;
    int64_t rows = 0;
    ok = ok && count_rows(options, &data->facts[0].array, l->written, &rows, problem);
    if (ok && !write_head(l->samples, &data->facts[0].array, rows))
        ok = file_fail(options->out, problem);
    if (fclose(l->samples) != 0 && ok)
        ok = file_fail(options->out, problem);
    if (!ok)
        unlink(options->out);
    return ok;
}

/* Writes the ids of a text, where a file for them is named. */
static bool
write_ids(const struct options *options, int fd, struct api_problem *problem)
{
    struct output output = OUTPUT_NONE;
    if (!options->out || writes_samples(options))
        return true;
    const bool ok = output_open(options->out, &output, problem) &&
                    output_copy(&output, fd, problem) &&
                    output_commit_new(&output, problem);
    output_close(&output);
    return ok;
}

/* Looks at data for the model `fits`, which is a file. */
static bool
look_at_data(const struct options *options, struct api_problem *problem)
{
    struct looking l = {.counts = calloc(MOST_CLASSES, sizeof *l.counts)};
    struct api_data data = {.has_model = options->fits};
    struct qdq_dataset *dataset = NULL;
    struct qdq_model *model = NULL;
    struct api_spec *spec = NULL;
    struct qdq_error err = {0};
    int fd = -1;
    bool ok =
        l.counts ? spec_read(options, &spec, problem) : api_problem_no_memory(problem);
    ok = ok && data_open(options->model, options->fits, &fd, problem);
    if (ok && qdq_dataset_open(fd, &dataset, &err) != QDQ_OK)
        ok = api_problem_set_engine(problem, &err);
    ok = ok &&
         (!options->fits || external_open_model(options->fits, &model, problem)) &&
         check_inputs(options, model, problem) && open_samples(options, &l, problem);
    if (ok) {
        data.info = qdq_dataset_info(dataset);
        data.spec = api_spec_get(spec);
        ok = look(dataset, model, data.spec, &l, &data, problem);
    }
    ok = close_samples(options, &l, &data, ok, problem);
    ok = ok && write_ids(options, fd, problem) && say(options, &data, problem);
    if (fd >= 0)
        close(fd);
    qdq_dataset_free(&dataset);
    qdq_model_free(&model);
    api_spec_free(&spec);
    free(l.counts);
    return ok;
}

bool
command_data(const struct options *options, struct api_problem *problem)
{
    struct folder folder;
    struct options of_model = *options, own;
    of_model.model = options->fits;
    bool ok = folder_open(&of_model, false, &folder, &own, problem);
    if (ok) {
        of_model = *options;
        of_model.fits = own.model;
        ok = look_at_data(&of_model, problem);
    }
    folder_close(&folder);
    return ok;
}
