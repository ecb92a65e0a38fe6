/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trials of a recipe that fail. An error that says only that a candidate cannot be made is the
 * candidate's; every other one ends the job. The choice of scales fails on demand: the linker
 * puts the function below in its place. OpenVINO is a library without OpenVINO (fake_openvino.c). Calibration needs ONNX Runtime; without it the program
 * says so and is skipped.
 */
#include "config.h"
#include "stages/scale/scale.h"

#include "deploy/fake_job.h"

#include <math.h>

static struct {
    enum qdq_code code; /* of all trials of the kind; OK: they do not fail */
    bool by_spec;       /* the kind: by another spec, or else with layers in float */
    bool measured;      /* the recipe begins with placements by measured costs */
    int n;              /* trials of the kind */
} injected;

enum qdq_code __real_qdqi_choose_scales(struct qdqi_attempt *a, struct qdq_error *err);
enum qdq_code __wrap_qdqi_choose_scales(struct qdqi_attempt *a, struct qdq_error *err);

enum qdq_code
__wrap_qdqi_choose_scales(struct qdqi_attempt *a, struct qdq_error *err)
{
    if (!a->is_trial || injected.by_spec == (a->base != NULL))
        return __real_qdqi_choose_scales(a, err);
    injected.n++;
    return injected.code ? qdq_error_set(err, injected.code, QDQ_AT_NODE, "second",
                                         "injected into trial %d", injected.n)
                         : __real_qdqi_choose_scales(a, err);
}

static enum qdq_code
run(struct qdq_report **ret, struct qdq_error *err)
{
    const struct qdq_engine_options options = {
        .threads = 1, .runtime = QDQ_ORT_LIBRARY, .openvino = FAKE};
    struct qdq_engine *engine = NULL;
    struct qdq_spec spec = openvino_spec();
    spec.recipe = injected.by_spec ? QDQ_RECIPE_BEST : QDQ_RECIPE_AUTO;
    qdq_spec_switch_rule(&spec, (size_t)qdq_target_find_rule(spec.target, "V9"),
                         injected.measured);
    spec.recipe_sqnr_db = 200; /* nothing reaches it, so all is tried */
    spec.evaluate = QDQ_NO;
    const struct qdq_work work = {.model = two_products(),
                                  .model_id = "sha256:00",
                                  .dataset = samples(),
                                  .output_data = -1,
                                  .observations = -1,
                                  .spec = &spec,
                                  .output = memfd_create("result", MFD_CLOEXEC)};
    injected.n = 0;
    ck_assert_int_eq(qdq_engine_open(&options, &engine, err), QDQ_OK);
    enum qdq_code code = qdq_quantize(engine, &work, ret, err);
    qdq_engine_close(&engine);
    close(work.model);
    close(work.dataset);
    close(work.output);
    return code;
}

static const struct {
    enum qdq_code code;
    bool ends;
} rows[] = {
    {QDQ_OK, false},           {QDQ_CASE_FAILED, false},  {QDQ_UNSUPPORTED, false},
    {QDQ_INVALID_SPEC, false}, {QDQ_NOT_OBSERVED, false}, {QDQ_INTERNAL, true},
    {QDQ_NO_MEMORY, true},     {QDQ_CANCELLED, true},
};
enum { N_ROWS = sizeof rows / sizeof *rows, KINDS = 3 };

UNIT_LOOP(an_error_ends_the_job_unless_it_is_the_candidates, KINDS *N_ROWS)
{
    struct qdq_report *report = NULL;
    struct qdq_error err = {0};
    injected.code = rows[_i / KINDS].code;
    injected.by_spec = _i % KINDS == 1;
    injected.measured = _i % KINDS == 2;
    enum qdq_code code = run(&report, &err);
    if (rows[_i / KINDS].ends) {
        ck_assert_int_eq(code, injected.code);
        ck_assert_int_eq(injected.n, 1);
        ck_assert_str_eq(err.text, "injected into trial 1");
        ck_assert_str_eq(err.where, "second");
        ck_assert_ptr_null(report);
        return;
    }
    ck_assert_msg(code == QDQ_OK, "%s: %s", qdq_code_slug(code), err.text);
    ck_assert_int_gt(injected.n, 0);
    ck_assert_ptr_nonnull(report->recipe);
    bool unmade = false;
    for (size_t i = 0; i < report->recipe->n_steps; i++)
        unmade = unmade || report->recipe->steps[i].sqnr_db == -INFINITY;
    ck_assert_int_eq(unmade, injected.code != QDQ_OK);
    qdq_report_free(&report);
}

int
main(void)
{
    return run_with_onnx_runtime("trials");
}
