/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizes a built model with given ranges, without data and without ONNX Runtime. */
#ifndef TESTS_UNIT_QUANTIZED_H
#define TESTS_UNIT_QUANTIZED_H

#include "builder.h"
#include "files/model/constant.h"
#include "plan/placement/plan.h"
#include "qdq/quantize.h"

/* Quantizes with a spec and the range [-1, 2] for every activation of its plan. On
   success *ret is the opened result; *ret_report, which may be NULL, is the report. */
static inline enum qdq_code
quantize_with(int model, const struct qdq_spec *wanted, struct qdq_model **ret,
              struct qdq_report **ret_report, struct qdq_error *err)
{
    const struct qdq_engine_options options = {.threads = 1};
    struct qdq_given_range *ranges = NULL;
    struct qdq_engine *engine = NULL;
    struct qdq_model *source = NULL;
    struct qdq_plan *plan = NULL;
    struct qdq_report *report = NULL;
    struct qdq_spec spec = *wanted;
    spec.evaluate = QDQ_NO;
    struct qdq_work work = {.model = model,
                            .model_id = "sha256:00",
                            .dataset = -1,
                            .output_data = -1,
                            .observations = -1,
                            .spec = &spec,
                            .output = memfd_create("result", MFD_CLOEXEC)};
    enum qdq_code code;
    if ((code = qdq_engine_open(&options, &engine, err)) ||
        (code = qdq_model_open(model, &source, err)) ||
        (code = qdq_plan_make(NULL, source, &spec, &plan, err)))
        goto out;
    const struct qdq_plan_view *view = qdq_plan_view(plan);
    ranges = calloc(view->n_tensors + 1, sizeof *ranges);
    if (!ranges) {
        code = qdqi_no_memory(err);
        goto out;
    }
    for (size_t i = 0; i < view->n_tensors; i++)
        ranges[i] = (struct qdq_given_range){view->tensors[i], -1, 2};
    spec.calibration.ranges = ranges;
    spec.calibration.n_ranges = view->n_tensors;
    if (!(code = qdq_quantize(engine, &work, &report, err)))
        code = qdq_model_open(work.output, ret, err);
    if (!code && ret_report) {
        *ret_report = report;
        report = NULL;
    }
out:
    qdq_report_free(&report);
    qdq_plan_free(&plan);
    qdq_model_free(&source);
    qdq_engine_close(&engine);
    free(ranges);
    close(work.output);
    return code;
}

static inline enum qdq_code
quantize_fd(int model, struct qdq_model **ret, struct qdq_error *err)
{
    struct qdq_spec spec;
    qdq_spec_init(&spec);
    return quantize_with(model, &spec, ret, NULL, err);
}

#endif
