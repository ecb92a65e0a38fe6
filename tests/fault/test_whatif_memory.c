/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fails the Nth allocation of a quantization that ranks layers, searches and refines,
 * for each N until it succeeds. The model has to run, so without ONNX Runtime the
 * program says so and is skipped. Where $QDQ_CUDA_EMULATED_FAULTS names the emulator's
 * module, everything runs on that device instead.
 */
#include "config.h"

#include "builder.h"
#include "failing.h"
#include "qdq/executor.h"
#include "qdq/quantize.h"

#include <string.h>

static struct qdq_engine *engine;
static const char *module; /* NULL: there is no module */

/* Runs that are made again are not told: progress never falls. */
static bool
on_progress(void *arg, const struct qdq_progress *now)
{
    struct qdq_progress *last = arg;
    ck_assert_int_ge(now->stage, last->stage);
    if (now->stage == last->stage)
        ck_assert_uint_ge(now->done, last->done);
    *last = *now;
    return false;
}

static enum qdq_code
quantize(int model, const struct qdq_spec *spec, struct qdq_report **ret,
         struct qdq_error *err)
{
    struct qdq_progress last = {0};
    struct qdq_work work = {.model = model,
                            .progress = on_progress,
                            .progress_arg = &last,
                            .model_id = "sha256:00",
                            .dataset = -1,
                            .output_data = -1,
                            .observations = -1,
                            .spec = spec,
                            .output = memfd_create("result", MFD_CLOEXEC)};
    enum qdq_code code = qdq_quantize(engine, &work, ret, err);
    close(work.output);
    return code;
}

/* An evaluation that runs out of memory for its layers continues without them, and
   the report says so. */
static bool
goes_on(const struct qdq_report *report)
{
    for (size_t i = 0; report && i < report->n_warnings; i++)
        if (strcmp(report->warnings[i].code, "layers_not_compared") == 0)
            return true;
    return false;
}

START_TEST(every_allocation_may_fail)
{
    struct builder b;
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    spec.calibration.method = "output_mse";
    spec.calibration.random_samples = 2;
    spec.device = _i ? QDQ_DEVICE_CUDA : QDQ_DEVICE_CPU;
    spec.evaluate = _i ? QDQ_YES : QDQ_NO;
    spec.sensitivity_samples = 2;
    spec.smooth = 0.5;
    spec.smooth_insert = true; /* before the first Conv */
    /* more than the model can reach, so that all layers become float */
    spec.search.min_sqnr_db = 200;
    spec.search.samples = 2;
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    builder_shape(&b, 4, (const int64_t[]){1, 3, 4, 4});
    builder_weight(&b, "w", 4, (const int64_t[]){4, 3, 1, 1});
    builder_weight(&b, "w2", 4, (const int64_t[]){2, 4, 1, 1});
    builder_weight(&b, "w3", 4, (const int64_t[]){2, 2, 1, 1});
    builder_node(&b, "Conv", "conv1", "x,w", "a");
    builder_node(&b, "Relu", "relu", "a", "r");
    builder_node(&b, "Conv", "conv2", "r,w2", "c");
    builder_node(&b, "Conv", "conv3", "c,w3", "d"); /* this layer is in a second part */
    builder_node(&b, "Conv", "conv4", "d,w3", "y");
    builder_output(&b, "y", QDQI_FLOAT32);
    int fd = builder_file(&b);
    long n = 0, made_good = 0;
    bool over = false;
    while (!over && n < 10000) {
        n += fault_stride();
        struct qdq_report *report = NULL;
        struct qdq_error err = {0};
        fail_at = n;
        enum qdq_code code = quantize(fd, &spec, &report, &err);
        bool reached = fail_at == 0;
        fail_at = 0;
        /*
         * A failure inside an operator comes back as a failed run. A failure while a
         * part is opened, which is rare, makes the engine open the whole model instead.
         */
        bool expected = reached
                            ? code == QDQ_NO_MEMORY || code == QDQ_RUN_FAILED || report
                            : code == QDQ_OK;
        made_good += reached && code == QDQ_OK && !goes_on(report);
        ck_assert_msg(expected, "allocation %ld: code %d, %s", n, code, err.text);
        ck_assert_int_eq(report != NULL, code == QDQ_OK);
        if (report) {
            ck_assert_uint_eq(report->n_sensitivity, 4);
            ck_assert_uint_eq(report->search->n_layers, 4);
            ck_assert_ptr_nonnull(report->refinement);
        }
        qdq_report_free(&report);
        over = !reached;
    }
    ck_assert_int_gt(n, 20);
    ck_assert_int_lt(made_good * fault_stride() * 10, n);
    ck_assert_int_lt(n, 10000);
    close(fd);
    builder_fini(&b);
}
END_TEST

/* Layers of each kind that has moments: in groups, by products of the image with itself,
   and with biases that are made. */
static int
rounded_model(struct builder *b)
{
    builder_init(b, 21);
    builder_input(b, "x", QDQI_FLOAT32);
    builder_shape(b, 4, (const int64_t[]){1, 4, 4, 4});
    builder_weight(b, "w", 4, (const int64_t[]){4, 2, 1, 1});
    builder_weight(b, "w2", 4, (const int64_t[]){2, 4, 3, 3});
    builder_weight(b, "w3", 2, (const int64_t[]){2, 3});
    Onnx__NodeProto *groups = builder_node(b, "Conv", "conv1", "x,w", "a");
    builder_int(b, groups, "group", 2);
    builder_node(b, "Relu", "relu", "a", "r");
    builder_node(b, "Conv", "conv2", "r,w2", "c");
    builder_node(b, "MatMul", "product", "c,w3", "y");
    builder_output(b, "y", QDQI_FLOAT32);
    return builder_file(b);
}

START_TEST(every_allocation_of_rounding_may_fail)
{
    struct builder b;
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    spec.calibration.random_samples = 2;
    spec.calibration.on_nonfinite = QDQ_NONFINITE_SKIP; /* inputs are held */
    spec.device = QDQ_DEVICE_CPU;
    spec.evaluate = QDQ_NO;
    spec.weights.rounding = QDQ_ROUND_GPTQ;
    spec.weights.format = QDQ_FORMAT_INT4;
    int fd = rounded_model(&b);
    long n = 0, made_good = 0;
    bool over = false;
    while (!over && n < 10000) {
        n += fault_stride();
        struct qdq_report *report = NULL;
        struct qdq_error err = {0};
        fail_at = n;
        enum qdq_code code = quantize(fd, &spec, &report, &err);
        bool reached = fail_at == 0;
        fail_at = 0;
        bool expected = reached
                            ? code == QDQ_NO_MEMORY || code == QDQ_RUN_FAILED || report
                            : code == QDQ_OK;
        made_good += reached && code == QDQ_OK;
        ck_assert_msg(expected, "allocation %ld: code %d, %s", n, code, err.text);
        ck_assert_int_eq(report != NULL, code == QDQ_OK);
        if (report)
            ck_assert_uint_eq(report->n_weights, 3);
        qdq_report_free(&report);
        over = !reached;
    }
    ck_assert_int_gt(n, 100);
    ck_assert_int_lt(made_good * fault_stride() * 10, n);
    ck_assert_int_lt(n, 10000);
    close(fd);
    builder_fini(&b);
}
END_TEST

/* Does the pieces of a call one after the other: counts of allocations are the same in each
   run. */
static void
run_pieces(void *arg, int threads, size_t n, qdq_piece_fn piece, void *piece_arg)
{
    (void)arg;
    (void)threads;
    for (size_t i = 0; i < n; i++)
        piece(piece_arg, i);
}

static const struct qdq_executor pieces = {run_pieces, NULL};

/* Two workers calibrate with samples side by side. Where that fails, runs one after the other
   may do; ranges are the same then. */
START_TEST(every_allocation_of_runs_side_by_side_may_fail)
{
    struct builder b;
    struct qdq_spec spec;
    const struct qdq_engine_options options = {
        .runtime = QDQ_ORT_LIBRARY, .threads = 2, .executor = &pieces};
    struct qdq_engine *alone = engine;
    struct qdq_error err = {0};
    qdq_spec_init(&spec);
    spec.calibration.method = "moving_average";
    spec.calibration.random_samples = 8;
    spec.device = QDQ_DEVICE_CPU;
    spec.evaluate = QDQ_NO;
    int fd = rounded_model(&b);
    struct qdq_report *want = NULL;
    ck_assert_int_eq(quantize(fd, &spec, &want, &err), QDQ_OK);
    const char *version;
    ck_assert_int_eq(qdq_engine_open(&options, &engine, &err), QDQ_OK);
    ck_assert_int_eq(qdq_engine_runtime_version(engine, &version, &err), QDQ_OK);
    long n = 0, failed = 0;
    bool over = false;
    while (!over && n < 10000) {
        n += fault_stride();
        struct qdq_report *report = NULL;
        fail_at = n;
        enum qdq_code code = quantize(fd, &spec, &report, &err);
        over = fail_at != 0;
        fail_at = 0;
        failed += code == QDQ_NO_MEMORY;
        ck_assert_msg(code == QDQ_OK || (!over && code == QDQ_NO_MEMORY),
                      "allocation %ld: code %d, %s", n, code, err.text);
        ck_assert_int_eq(report != NULL, code == QDQ_OK);
        for (size_t i = 0; report && i < want->n_tensors; i++) {
            ck_assert_double_eq(report->tensors[i].min, want->tensors[i].min);
            ck_assert_double_eq(report->tensors[i].max, want->tensors[i].max);
        }
        qdq_report_free(&report);
    }
    ck_assert_int_gt(failed * fault_stride(), 10);
    ck_assert_int_lt(n, 10000);
    qdq_engine_close(&engine);
    engine = alone;
    qdq_report_free(&want);
    close(fd);
    builder_fini(&b);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("whatif_memory");
    TCase *t = tcase_create("fault");
    suite_add_tcase(s, t);
    if (!module) {
        tcase_add_test(t, every_allocation_of_rounding_may_fail);
        tcase_add_test(t, every_allocation_of_runs_side_by_side_may_fail);
    }
    tcase_add_loop_test(t, every_allocation_may_fail, module ? 1 : 0, module ? 2 : 1);
    return s;
}

int
main(void)
{
    module = getenv("QDQ_CUDA_EMULATED_FAULTS");
    const struct qdq_engine_options options = {
        .runtime = QDQ_ORT_LIBRARY, .threads = 1, .cuda_module = module};
    struct qdq_error err = {0};
    const char *version;
    if (qdq_engine_open(&options, &engine, &err) ||
        qdq_engine_runtime_version(engine, &version, &err)) {
        printf("1..0 # SKIP %s\n", err.text);
        return 0;
    }
    unit_begin();
    int status = unit_run(suite(), CK_NOFORK);
    qdq_engine_close(&engine);
    return status;
}
