/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/judgement_warnings.h"

#include "plan/gates/gates.h"
#include "plan/gates/judged.h"
#include "plan/gates/verdict.h"
#include "transform/prepare/lower_opset.h"

/* Returns the worst slice that carries information, or NULL. */
static const struct qdq_slice_report *
worst_slice(const struct qdq_output_report *o)
{
    const struct qdq_slice_report *worst = NULL;
    for (size_t i = 0; i < o->n_slices; i++)
        if (!o->slices[i].left_out && (!worst || o->slices[i].sqnr_db < worst->sqnr_db))
            worst = &o->slices[i];
    return worst;
}

static enum qdq_code
warn_lost(const struct qdqi_attempt *a, const struct qdq_output_report *o,
          struct qdq_error *err)
{
    const struct qdq_slice_report *s = worst_slice(o);
    if (!qdqi_is_slice_lost(o))
        return QDQ_OK;
    if (!s || qdqi_worst_slice(o) < s->sqnr_db)
        return qdqi_attempt_warn(a, err, "slice_lost", o->name,
                                 "the output has %.1f dB about its mean: what it tells "
                                 "is lost, whatever its "
                                 "%.1f dB about zero say",
                                 o->centred_db, o->sqnr_db);
    return qdqi_attempt_warn(a, err, "slice_lost", o->name,
                             "the slice '%.80s' (%lld to %lld along axis %zu, %.3g %% "
                             "of the output's energy) "
                             "has %.1f dB about its mean, and the whole output %.1f "
                             "dB: what it tells is lost",
                             s->name, (long long)s->begin, (long long)s->end - 1,
                             s->axis, 100 * s->share, s->sqnr_db, o->sqnr_db);
}

static enum qdq_code
warn_few(const struct qdqi_attempt *a, const struct qdq_report *r,
         struct qdq_error *err)
{
    if (!qdqi_has_few_samples(r))
        return QDQ_OK;
    return qdqi_attempt_warn(
        a, err, "few_samples", NULL,
        "%lld samples were compared: with fewer than 16 the verdict "
        "is at most fair",
        (long long)r->evaluated_samples);
}

static enum qdq_code
warn_seen(const struct qdqi_attempt *a, const struct qdq_report *r,
          struct qdq_error *err)
{
    if (!r->evaluated_on_calibration)
        return QDQ_OK;
    return qdqi_attempt_warn(
        a, err, "evaluated_on_calibration", NULL,
        "the ranges come from samples that the result was compared on, %lld in all%s; "
        "calibration.max_samples leaves some aside",
        (long long)r->evaluated_samples,
        qdqi_caps_verdict(r) ? ": the verdict is at most fair" : "");
}

enum qdq_code
qdqi_warn_of_judgement(const struct qdqi_attempt *a, struct qdqi_result *result,
                       int64_t first, struct qdq_error *err)
{
    struct qdq_report *r = result->report;
    size_t n;
    const struct qdq_output_report *outputs = qdqi_deciding_outputs(r, &n);
    enum qdq_code code = QDQ_OK;
    r->evaluated_on_calibration =
        !a->context->evaluation && first < a->calibrated.samples;
    if (a->plan->view.n_quantized == 0)
        return QDQ_OK;
    for (size_t i = 0; !code && i < n; i++)
        if (qdqi_output_decides(outputs, n, i) && !outputs[i].is_logits)
            code = warn_lost(a, &outputs[i], err);
    if (!code)
        code = warn_few(a, r, err);
    return code ? code : warn_seen(a, r, err);
}

enum qdq_code
qdqi_warn_run_as_older(const struct qdqi_attempt *a, struct qdq_error *err)
{
    const Onnx__ModelProto *model = a->model->proto, *lowered = model;
    struct qdqi_obstacle obstacle;
    if (!a->context->dataset || !qdqi_is_later(model))
        return QDQ_OK;
    enum qdq_code code = qdqi_lower_opset(model, a->scratch, &lowered, &obstacle, err);
    if (code || lowered == model)
        return code;
    return qdqi_attempt_warn(a, err, "run_as_older_opset", NULL,
                             "ONNX Runtime 1.31 loads no opset behind %d and no IR "
                             "version behind %d: where it "
                             "runs the model here, it gets it as one of these, in "
                             "which its nodes mean the same; "
                             "the result keeps opset %lld and IR version %lld",
                             QDQI_OPSET_THAT_RUNS, QDQI_IR_THAT_RUNS,
                             (long long)qdqi_model_opset(model),
                             (long long)model->ir_version);
}
