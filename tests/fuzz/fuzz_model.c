/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes any bytes as a model through everything that needs no ONNX Runtime: open, plan,
 * insert pairs with a given range for every activation, write, open again, join both
 * models. An accepted model must give a model that opens, has as many pairs as the
 * report says, and can be joined with the original.
 *
 * Two files of external data come with it: "w", which holds the same bytes, and "d/v",
 * which begins with them. A model that names one of them is written with a data file.
 *
 *   clang -DFUZZING -fsanitize=fuzzer,address,undefined -I… fuzz_model.c engine/…
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qdq.h"
#include "transform/rewrite/twin.h"
#include "run/session/lift_weights.h"

/* Files that a model may name as external data. */
enum { N_FILES = 2 };

struct files {
    struct qdq_external rows[N_FILES];
};

static struct files
make_files(int model, const uint8_t *data, size_t size)
{
    int fd = memfd_create("external", MFD_CLOEXEC);
    size_t n = size < 300 ? size : 300;
    assert(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    return (struct files){{{"w", model}, {"d/v", fd}}};
}

static size_t
count_ops(const struct qdq_model *model, const char *op)
{
    const struct qdq_model_info *info = qdq_model_info(model);
    for (size_t i = 0; i < info->n_ops; i++)
        if (strcmp(info->ops[i].op, op) == 0)
            return info->ops[i].count;
    return 0;
}

static void
expect_twin(const struct qdq_work *work, const struct qdq_model *result)
{
    struct qdqi_arena *arena = qdqi_arena_new();
    struct qdq_model *model = NULL, *prepared = NULL;
    struct qdqi_bytes bytes = {0};
    struct qdqi_twin twin;
    struct qdq_error err = {0};
    enum qdq_code code = qdq_model_open_files(work->model, work->external,
                                              work->n_external, &model, &err);
    assert(code == QDQ_OK && arena);
    code = qdq_model_prepare(model, work->spec, &prepared, &err);
    assert(code == QDQ_OK);
    const struct qdq_model *f = prepared ? prepared : model;
    const char *const tensors[] = {
        f->proto->graph->n_input ? f->proto->graph->input[0]->name : ""};
    code = qdqi_twin(f, result, tensors, 1, arena, &twin, &err);
    assert(code == QDQ_OK);
    code = qdqi_lift_weights(&twin.model, arena, &twin.model.proto, &err);
    assert(code == QDQ_OK);
    code = qdqi_model_to_memory(&twin.model, &bytes, &err);
    assert(code == QDQ_OK);
    free(bytes.data);
    qdq_model_free(&prepared);
    qdq_model_free(&model);
    qdqi_arena_free(&arena);
}

static void
expect_result(const struct qdq_work *work, const struct qdq_report *report)
{
    struct qdq_model *result = NULL;
    struct qdq_error err = {0};
    const struct qdq_external data = {work->output_data_name, work->output_data};
    enum qdq_code code = qdq_model_open_files(
        work->output, &data, report->external_bytes > 0, &result, &err);
    assert(code == QDQ_OK);
    assert(qdq_model_info(result)->external_size == report->external_bytes);
    assert(count_ops(result, "QuantizeLinear") == report->qdq_pairs);
    assert(count_ops(result, "DequantizeLinear") == report->qdq_pairs);
    expect_twin(work, result);
    qdq_model_free(&result);
}

/* Carries out the plan with the range [-1, 1] everywhere. */
static void
quantize(int model, const struct files *files, const struct qdq_plan_view *plan,
         struct qdq_spec *spec)
{
    const struct qdq_engine_options options = {.threads = 1};
    struct qdq_given_range *ranges = calloc(plan->n_tensors + 1, sizeof *ranges);
    struct qdq_engine *engine = NULL;
    struct qdq_report *report = NULL;
    struct qdq_error err = {0};
    assert(ranges);
    for (size_t i = 0; i < plan->n_tensors; i++)
        ranges[i] = (struct qdq_given_range){plan->tensors[i], -1, 1};
    spec->calibration.ranges = ranges;
    spec->calibration.n_ranges = plan->n_tensors;
    spec->evaluate = QDQ_NO;
    spec->equalize = true;
    const struct qdq_work work = {.model = model,
                                  .external = files->rows,
                                  .n_external = N_FILES,
                                  .dataset = -1,
                                  .output_data =
                                      memfd_create("result data", MFD_CLOEXEC),
                                  .output_data_name = "r",
                                  .observations = -1,
                                  .spec = spec,
                                  .output = memfd_create("result", MFD_CLOEXEC)};
    if (qdq_engine_open(&options, &engine, &err) == QDQ_OK &&
        qdq_quantize(engine, &work, &report, &err) == QDQ_OK)
        expect_result(&work, report);
    else
        assert(err.code != QDQ_OK && err.code != QDQ_INTERNAL && *err.text);
    qdq_report_free(&report);
    qdq_engine_close(&engine);
    close(work.output);
    close(work.output_data);
    free(ranges);
}

static bool
names_files(int fd)
{
    struct qdq_locations *locations = NULL;
    struct qdq_error err = {0};
    enum qdq_code code = qdq_model_locations(fd, &locations, &err);
    assert(code == QDQ_OK);
    bool some = locations->n > 0;
    qdq_locations_free(&locations);
    return some;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("model", MFD_CLOEXEC);
    struct qdq_model *model = NULL;
    struct qdq_plan *plan = NULL;
    struct qdq_error err = {0};
    struct qdq_spec spec;
    assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    qdq_spec_init(&spec);
    struct files files = make_files(fd, data, size);
    if (qdq_model_open_files(fd, files.rows, N_FILES, &model, &err) == QDQ_OK &&
        qdq_plan_make(NULL, model, &spec, &plan, &err) == QDQ_OK) {
        if (names_files(fd))
            spec.external_data = QDQ_EXTERNAL_ALWAYS;
        quantize(fd, &files, qdq_plan_view(plan), &spec);
    } else {
        assert(err.code != QDQ_OK && err.code != QDQ_INTERNAL && *err.text);
    }
    qdq_plan_free(&plan);
    qdq_model_free(&model);
    close(files.rows[1].fd);
    close(fd);
    return 0;
}

#define CORPUS "tests/fuzz/corpus/model"
#include "replay.h"
