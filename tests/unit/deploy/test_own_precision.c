/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile of a processor where OpenVINO computes floats in bfloat16 by itself: a library that
 * says so (fake_openvino.c) and takes its time with one precision or the other. A wait is so much
 * longer than what it is compared with that a busy machine changes nothing.
 */
#include "config.h"

#include "deploy/fake_job.h"

#include <dlfcn.h>
#include <time.h>

static const char *slow; /* the precision whose runs wait; NULL: none */

static void
on_work(const char *precision)
{
    const struct timespec wait = {.tv_nsec = 20000000};
    if (precision && slow && strcmp(precision, slow) == 0)
        nanosleep(&wait, NULL);
}

/* Runs a job where OpenVINO's own precision is `own`, or where it compiles no model. */
static enum qdq_code
run_job(const struct qdq_spec *spec, const char *own, bool refuses,
        struct qdq_report **ret, struct qdq_error *err)
{
    const struct qdq_engine_options options = {
        .threads = 1, .runtime = QDQ_ORT_LIBRARY, .openvino = FAKE};
    struct qdq_engine *engine = NULL;
    const struct qdq_work work = {.model = two_products(),
                                  .model_id = "sha256:00",
                                  .dataset = samples(),
                                  .output_data = -1,
                                  .observations = -1,
                                  .spec = spec,
                                  .output = memfd_create("result", MFD_CLOEXEC)};
    void *library = dlopen(FAKE, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    *(const char **)dlsym(library, "fake_openvino_own") = own;
    *(void (**)(const char *))dlsym(library, "fake_openvino_on_work") = on_work;
    *(bool *)dlsym(library, "fake_openvino_refuses") = refuses;
    ck_assert_int_eq(qdq_engine_open(&options, &engine, err), QDQ_OK);
    enum qdq_code code = qdq_quantize(engine, &work, ret, err);
    qdq_engine_close(&engine);
    dlclose(library);
    close(work.model);
    close(work.dataset);
    close(work.output);
    return code;
}

static struct qdq_report *
quantize(const char *own)
{
    struct qdq_report *report = NULL;
    struct qdq_error err = {0};
    struct qdq_spec spec = openvino_spec();
    spec.profile.runs = 12;
    spec.recipe = QDQ_RECIPE_NONE;
    spec.evaluate = QDQ_NO;
    enum qdq_code code = run_job(&spec, own, false, &report, &err);
    ck_assert_msg(code == QDQ_OK, "%s: %s", qdq_code_slug(code), err.text);
    ck_assert_ptr_nonnull(report->profile);
    ck_assert_str_eq(report->profile->runtime, "openvino");
    return report;
}

UNIT_TEST(float32_has_no_other_figures)
{
    slow = NULL;
    struct qdq_report *report = quantize("f32");
    ck_assert_ptr_null(report->profile->default_precision);
    ck_assert_ptr_null(find_warning(report, "deploy_float"));
    qdq_report_free(&report);
}

UNIT_TEST(a_faster_float_model_is_the_one_to_deploy)
{
    slow = "f32";
    struct qdq_report *report = quantize("bf16");
    const struct qdq_profile *profile = report->profile;
    ck_assert_str_eq(profile->default_precision, "bf16");
    ck_assert_double_gt(profile->default_float.p50_ms, 0);
    ck_assert_double_lt(profile->default_float.p50_ms,
                        profile->sides[QDQ_SIDE_QUANTIZED].p50_ms);
    const struct qdq_warning *warning = find_warning(report, "deploy_float");
    ck_assert_ptr_nonnull(warning);
    ck_assert_ptr_nonnull(
        strstr(warning->detail, "OpenVINO runs the float model in bf16"));
    qdq_report_free(&report);
}

UNIT_TEST(a_slower_float_model_is_not)
{
    slow = "bf16";
    struct qdq_report *report = quantize("bf16");
    ck_assert_str_eq(report->profile->default_precision, "bf16");
    ck_assert_double_ge(report->profile->default_float.p50_ms, 20);
    ck_assert_ptr_null(find_warning(report, "deploy_float"));
    qdq_report_free(&report);
}

/* Two models whose times differ by chance alone: the median of one is the smaller one, and that
   is no reason. */
UNIT_TEST(chance_is_no_reason)
{
    slow = NULL;
    for (int i = 0; i < 5; i++) {
        struct qdq_report *report = quantize("bf16");
        const bool warned = find_warning(report, "deploy_float") != NULL;
        ck_assert_int_eq(warned, report->profile->default_ratio_low > 1);
        ck_assert_double_le(report->profile->default_ratio_low,
                            report->profile->sides[QDQ_SIDE_QUANTIZED].p50_ms /
                                report->profile->default_float.p50_ms);
        qdq_report_free(&report);
    }
}

/* A model that is read and not compiled is refused, whichever stage finds that out. */
static const struct {
    enum qdq_recipe recipe;
    enum qdq_tristate evaluate;
    int runs;
} stages[] = {{QDQ_RECIPE_AUTO, QDQ_DEFAULT, 0},
              {QDQ_RECIPE_NONE, QDQ_DEFAULT, 0},
              {QDQ_RECIPE_NONE, QDQ_NO, 12}};

UNIT_ROWS(a_model_that_is_not_compiled, stages)
{
    struct qdq_report *report = NULL;
    struct qdq_error err = {0};
    struct qdq_spec spec = openvino_spec();
    spec.recipe = stages[_i].recipe;
    spec.evaluate = stages[_i].evaluate;
    spec.profile.runs = stages[_i].runs;
    ck_assert_int_eq(run_job(&spec, "f32", true, &report, &err), QDQ_CANNOT_LOAD);
    ck_assert_msg(strstr(err.text, "the model that was given"), "%s", err.text);
    ck_assert_ptr_null(report);
}

int
main(void)
{
    return run_with_onnx_runtime("own_precision");
}
