/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/profile/profile.h"

#include "ground/base/order.h"
#include "ground/base/host.h"
#include "files/data/random.h"
#include "stages/evaluate/kernels/counted_model.h"
#include "stages/evaluate/kernels/kernels.h"
#include "plan/placement/target.h"
#include "stages/profile/timed_models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns the smallest value that at least the share `q` of the sorted values does not
   exceed; the median is the mean of the two in the middle. */
static double
quantile(const double *sorted, size_t n, double q)
{
    size_t at = (size_t)ceil(q * (double)n);
    if (q == 0.5)
        return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    return sorted[at > 0 ? at - 1 : 0];
}

/* Sets the quantiles of latencies, which are sorted. */
static void
set_latency(struct qdq_latency *to, double *ms, size_t n)
{
    qsort(ms, n, sizeof *ms, qdqi_compare_doubles);
    to->p50_ms = quantile(ms, n, 0.5);
    to->p90_ms = quantile(ms, n, 0.9);
}

/*
 * Sets *ret_low and *ret_high to the interval that contains the median of the ratios by turns
 * with 95 % confidence, by the normal approximation of the binomial ranks. The interval is
 * widened where the ratio of the medians lies outside. `ratios` is scratch memory.
 */
static void
find_interval(const double *above, const double *below, size_t n, double ratio,
              double *ratios, double *ret_low, double *ret_high)
{
    const double half = 0.98 * sqrt((double)n), middle = (double)n / 2;
    for (size_t i = 0; i < n; i++)
        ratios[i] = above[i] / below[i];
    qsort(ratios, n, sizeof *ratios, qdqi_compare_doubles);
    size_t low = middle - half > 1 ? (size_t)(middle - half) - 1 : 0;
    size_t high = (size_t)(middle + half);
    *ret_low = fmin(ratios[low], ratio);
    *ret_high = fmax(ratios[high < n ? high : n - 1], ratio);
}

static double
median(const double *ms, size_t n, double *scratch)
{
    memcpy(scratch, ms, n * sizeof *ms);
    qsort(scratch, n, sizeof *scratch, qdqi_compare_doubles);
    return quantile(scratch, n, 0.5);
}

/* Sets the ratios and the latencies, for which the times by turns are sorted. */
static void
set_figures(struct qdq_profile *profile, double *const ms[QDQI_MOST_SIDES],
            int n_models, double *scratch)
{
    const size_t n = (size_t)profile->runs;
    const double *q = ms[QDQ_SIDE_QUANTIZED];
    const double q_ms = median(q, n, scratch);
    double ignored;
    profile->ratio = q_ms / median(ms[QDQ_SIDE_FLOAT], n, scratch);
    find_interval(q, ms[QDQ_SIDE_FLOAT], n, profile->ratio, scratch,
                  &profile->ratio_low, &profile->ratio_high);
    if (n_models > QDQI_SIDE_DEFAULT) {
        const double *own = ms[QDQI_SIDE_DEFAULT];
        find_interval(q, own, n, q_ms / median(own, n, scratch), scratch,
                      &profile->default_ratio_low, &ignored);
        set_latency(&profile->default_float, ms[QDQI_SIDE_DEFAULT], n);
    }
    for (int side = 0; side < QDQ_N_SIDES; side++)
        set_latency(&profile->sides[side], ms[side], n);
}

static enum qdq_code
time_turns(const struct qdqi_attempt *a, struct qdqi_timed_models *models,
           struct qdq_profile *profile, struct qdq_error *err)
{
    enum { WARM_UP = 3 };
    size_t n = (size_t)profile->runs;
    double *ratios = qdqi_arena_array(a->scratch, n, sizeof *ratios), ignored;
    double *ms[QDQI_MOST_SIDES];
    for (int side = 0; side < QDQI_MOST_SIDES; side++)
        if (!(ms[side] = qdqi_arena_array(a->scratch, n, sizeof(double))))
            return qdqi_no_memory(err);
    if (!ratios)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n + WARM_UP; i++) {
        enum qdq_code code =
            qdqi_attempt_progress(a, QDQ_STAGE_PROFILE, i, n + WARM_UP, err);
        /* Which one is first changes with each turn, so neither gains by its place. */
        for (int k = 0; !code && k < models->n; k++) {
            int side = (int)(i + (size_t)k) % models->n;
            code = qdqi_timed_models_run(
                models, side, i < WARM_UP ? &ignored : &ms[side][i - WARM_UP], err);
        }
        if (code)
            return code;
    }
    set_figures(profile, ms, models->n, ratios);
    return QDQ_OK;
}

/* Makes samples when there are none. */
static enum qdq_code
open_data(const struct qdqi_attempt *a, struct qdq_dataset **ret, struct qdq_error *err)
{
    struct qdq_calibration_spec c = a->spec->calibration;
    c.random_samples = a->spec->profile.batch;
    return qdqi_random_open(&a->fixed, &c, ret, err);
}

static enum qdq_code
name_runtime(const struct qdqi_attempt *a, const struct qdqi_timed_models *models,
             struct qdq_profile *ret, struct qdq_error *err)
{
    const struct qdqi_deploy *deploy = &models->deploy;
    const struct qdqi_deployed_model *own = &models->models[QDQI_SIDE_DEFAULT];
    ret->runtime = qdqi_arena_strdup(a->arena, qdqi_deploy_name(deploy));
    ret->version = qdqi_arena_strdup(a->arena, deploy->ops->version(deploy->place));
    if (own->ops)
        ret->default_precision =
            qdqi_arena_strdup(a->arena, own->ops->precision(own->model));
    return ret->runtime && ret->version && (!own->ops || ret->default_precision)
               ? QDQ_OK
               : qdqi_no_memory(err);
}

static enum qdq_code
profile_with(const struct qdqi_attempt *a, struct qdqi_result *result,
             struct qdq_dataset *data, struct qdq_profile *ret, struct qdq_error *err)
{
    const struct qdq_profile_spec *spec = &a->spec->profile;
    struct qdqi_timed_models models = {.attempt = a, .result = result};
    char processor[64];
    qdqi_host_processor(processor, sizeof processor);
    ret->processor = qdqi_arena_strdup(a->arena, processor);
    ret->runs = spec->runs;
    ret->threads = spec->threads;
    if (!ret->processor)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_timed_models_open(&models, data, err);
    ret->batch = models.batch;
    if (!code)
        code = name_runtime(a, &models, ret, err);
    if (!code && !(code = time_turns(a, &models, ret, err)))
        code = qdqi_timed_models_trace(&models, ret, err);
    qdqi_timed_models_close(&models);
    return code;
}

static enum qdq_code
warn_slower(const struct qdqi_attempt *a, const struct qdq_profile *profile,
            struct qdq_error *err)
{
    if (profile->ratio_low <= 1)
        return QDQ_OK;
    return qdqi_attempt_warn(
        a, err, "slower_than_float", NULL,
        "the quantized model takes %.3g times as long as the float model in %s %s on "
        "this processor, %s (%.3g ms against %.3g ms)",
        profile->ratio, profile->runtime, profile->version, profile->processor,
        profile->sides[QDQ_SIDE_QUANTIZED].p50_ms,
        profile->sides[QDQ_SIDE_FLOAT].p50_ms);
}

/* Warns where the float model is faster, and not by chance, with the precision that the runtime
   chooses by itself, so that it is the one to deploy. */
static enum qdq_code
warn_float(const struct qdqi_attempt *a, const struct qdq_profile *profile,
           struct qdq_error *err)
{
    const double own = profile->default_float.p50_ms;
    const double quantized = profile->sides[QDQ_SIDE_QUANTIZED].p50_ms;
    const struct qdqi_deploy_ops *ops =
        qdqi_engine_ops(a->context->engine, profile->runtime);
    if (!profile->default_precision || profile->default_ratio_low <= 1)
        return QDQ_OK;
    return qdqi_attempt_warn(
        a, err, "deploy_float", NULL,
        "by default %s runs the float model in %s here, in %.3g ms, and the quantized "
        "model takes %.3g ms: deploy the float model, unless its size or its exactness "
        "in %s matters",
        ops ? ops->row->title : profile->runtime, profile->default_precision, own,
        quantized, profile->default_precision);
}

/* Estimates by the counted kernels, where no latency is asked for. A plan that has weighed
   each layer's conversions against what its integers gain is not judged by their number. */
static enum qdq_code
warn_probably_slower(const struct qdqi_attempt *a, const struct qdqi_result *result,
                     struct qdq_error *err)
{
    const struct qdq_kernels *kernels = result->report->kernels;
    const struct qdq_spec *spec = a->spec;
    const struct qdqi_hooks *hooks = spec->target->hooks;
    if (!kernels || kernels->conversions <= kernels->integer ||
        (hooks->weighs && hooks->weighs(a->context->asked)))
        return QDQ_OK;
    return qdqi_attempt_warn(
        a, err, "slower_than_float", NULL,
        "the quantized model is probably slower than the float model: it has "
        "%zu conversions for %zu integer kernels; profile measures it",
        kernels->conversions, kernels->integer);
}

enum qdq_code
qdqi_profile(const struct qdqi_attempt *a, struct qdqi_result *result,
             struct qdq_error *err)
{
    struct qdq_dataset *made = NULL;
    struct qdq_error why = {0};
    enum qdq_code code = QDQ_OK;
    if (a->spec->profile.runs == 0)
        return warn_probably_slower(a, result, err);
    const bool counts = qdqi_kernels_wait(a->context, result);
    struct qdq_profile *profile = qdqi_arena_alloc(a->arena, sizeof *profile);
    if (!profile)
        return qdqi_no_memory(err);
    if (!a->context->dataset)
        code = open_data(a, &made, &why);
    if (!code)
        code =
            profile_with(a, result, made ? made : a->context->dataset, profile, &why);
    qdq_dataset_free(&made);
    enum qdq_code failed = counts ? qdqi_count_kernels(a, result, err) : QDQ_OK;
    if (failed)
        return failed;
    if (!code) {
        result->report->profile = profile;
        code = warn_slower(a, profile, err);
        return code ? code : warn_float(a, profile, err);
    }
    if (code == QDQ_NO_MEMORY || code == QDQ_CANCELLED || code == QDQ_DEVICE_LOST)
        return qdq_error_set(err, code, why.kind, why.where, "%s", why.text);
    return qdqi_attempt_warn(a, err, "profile_skipped", NULL,
                             "the latency was not measured: %s", why.text);
}
