/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Out of memory in what-ifs: the Nth allocation of a quantization that ranks layers,
 * searches and refines fails, for each N until it succeeds. The model is run, so without
 * ONNX Runtime the program says so and is skipped.
 */
#include "config.h"

#include "builder.h"
#include "failing.h"
#include "qdq/quantize.h"

static struct qdq_engine *engine;

static enum qdq_code
quantize(int model, const struct qdq_spec *spec, struct qdq_report **ret,
         struct qdq_error *err)
{
    struct qdq_work work = {.model = model,
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

/* Gives the last input a shape. */
static void
give_shape(struct builder *b, size_t n, const int64_t *dims)
{
    Onnx__TensorShapeProto *shape = qdqi_arena_alloc(b->arena, sizeof *shape);
    onnx__tensor_shape_proto__init(shape);
    shape->dim =
        qdqi_arena_array(b->arena, n, sizeof(Onnx__TensorShapeProto__Dimension *));
    shape->n_dim = n;
    for (size_t i = 0; i < n; i++) {
        shape->dim[i] = qdqi_arena_alloc(b->arena, sizeof *shape->dim[i]);
        onnx__tensor_shape_proto__dimension__init(shape->dim[i]);
        shape->dim[i]->value_case =
            ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        shape->dim[i]->dim_value = dims[i];
    }
    b->inputs[b->graph.n_input - 1]->type->tensor_type->shape = shape;
}

START_TEST(every_allocation_may_fail)
{
    struct builder b;
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    spec.calibration.method = "output_mse";
    spec.calibration.random_samples = 2;
    spec.evaluate = QDQ_NO;
    spec.sensitivity_samples = 2;
    spec.search.min_sqnr_db = 200; /* all layers in float */
    spec.search.samples = 2;
    builder_init(&b, 13);
    builder_input(&b, "x", QDQI_FLOAT32);
    give_shape(&b, 4, (const int64_t[]){1, 3, 4, 4});
    builder_weight(&b, "w", 4, (const int64_t[]){4, 3, 1, 1});
    builder_weight(&b, "w2", 4, (const int64_t[]){2, 4, 1, 1});
    builder_node(&b, "Conv", "conv1", "x,w", "a");
    builder_node(&b, "Relu", "relu", "a", "r");
    builder_node(&b, "Conv", "conv2", "r,w2", "y");
    builder_output(&b, "y", QDQI_FLOAT32);
    int fd = builder_file(&b);
    enum qdq_code code = QDQ_NO_MEMORY;
    long n = 0;
    while (code != QDQ_OK && ++n < 10000) {
        struct qdq_report *report = NULL;
        struct qdq_error err = {0};
        fail_at = n;
        code = quantize(fd, &spec, &report, &err);
        bool reached = fail_at == 0;
        fail_at = 0;
        /* What fails inside of an operator comes back as a run that failed. */
        bool expected =
            reached ? code == QDQ_NO_MEMORY || code == QDQ_RUN_FAILED : code == QDQ_OK;
        ck_assert_msg(expected, "allocation %ld: code %d, %s", n, code, err.text);
        ck_assert_int_eq(report != NULL, code == QDQ_OK);
        if (report) {
            ck_assert_uint_eq(report->n_sensitivity, 2);
            ck_assert_uint_eq(report->search->n_layers, 2);
            ck_assert_ptr_nonnull(report->refinement);
        }
        qdq_report_free(&report);
    }
    ck_assert_int_gt(n, 20);
    ck_assert_int_lt(n, 10000);
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
    tcase_add_test(t, every_allocation_may_fail);
    return s;
}

int
main(void)
{
    const struct qdq_engine_options options = {.runtime = QDQ_ORT_LIBRARY,
                                               .threads = 1};
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
