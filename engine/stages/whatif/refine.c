/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refines ranges for the range methods that have a `start` (output_mse): from ranges
 * with the least squared error of their own tensors to ranges with less noise at the
 * outputs.
 *
 * A tensor's range is judged with only that tensor quantized: beside the noise of all
 * others the effect of one range could not be told from chance. The range is narrowed
 * in steps as long as that helps; if the first step does not help it is widened
 * instead. The new ranges are kept only if they also improve the outputs with every
 * layer quantized. Otherwise all ranges stay unchanged.
 *
 * The budget is MAX_SAMPLES of the samples that calibration read, 1 + MAX_STEPS runs of
 * these for each tensor, and three more runs.
 */
#include "config.h"
#include "stages/whatif/whatif.h"

#include "stages/scale/scale.h"

#include <math.h>
#include <string.h>

enum { MAX_SAMPLES = 256, MAX_STEPS = 8, USUAL_RUNS = 4 };

static const double step = 1.0905077326652577; /* 2^(1/8) */

struct tensor {
    size_t i;      /* index in the plan's activations */
    double factor; /* best factor found for its range */
};

struct refining {
    struct qdqi_attempt *attempt;
    struct qdqi_result *result;
    const struct qdqi_method *method; /* the method that the spec asks for */
    struct qdqi_whatif *w;
    struct qdqi_replay *replay;
    int64_t samples;
    struct tensor *tensors;
    size_t n, adjusted;
    bool is_time_up; /* the time is up: further tensors keep their ranges */
};

/* --- one tensor ----------------------------------------------------------- */

static enum qdq_code
run(struct refining *r, double *ret, struct qdq_error *err)
{
    struct qdqi_score score;
    enum qdq_code code =
        qdqi_whatif_run(r->w, r->replay, r->samples, false, &score, err);
    if (!code)
        *ret = score.sqnr_db;
    return code;
}

static void
set_range(struct refining *r, const struct tensor *t, double factor)
{
    const struct qdqi_planned_tensor *planned = &r->attempt->plan->activations[t->i];
    const struct qdqi_range *range = &r->attempt->ranges[t->i];
    float scale;
    int32_t zero_point;
    qdqi_range_params(planned->format, planned->symmetric, QDQI_FLOAT32,
                      range->min * factor, range->max * factor, &scale, &zero_point);
    qdqi_whatif_scale(r->w, t->i, scale, zero_point);
}

/* Multiplies the range by `by`, step by step, as long as that helps and steps are
   left. */
static enum qdq_code
go(struct refining *r, struct tensor *t, double by, int *left, double *best,
   struct qdq_error *err)
{
    double sqnr_db = NAN;
    while (*left > 0) {
        --*left;
        set_range(r, t, t->factor * by);
        enum qdq_code code = run(r, &sqnr_db, err);
        if (code || !(sqnr_db > *best))
            return code;
        *best = sqnr_db;
        t->factor *= by;
    }
    return QDQ_OK;
}

/* Searches the best range for one tensor. A tensor without effect on the outputs,
   such as one that was always zero, keeps its range. */
static enum qdq_code
refine_tensor(struct refining *r, struct tensor *t, struct qdq_error *err)
{
    double best = NAN;
    int left = MAX_STEPS;
    qdqi_whatif_switch_tensor(r->w, t->i, true);
    enum qdq_code code = run(r, &best, err);
    if (!code && best < INFINITY) {
        code = go(r, t, 1 / step, &left, &best, err);
        if (!code && t->factor == 1)
            code = go(r, t, step, &left, &best, err);
    }
    qdqi_whatif_switch_tensor(r->w, t->i, false);
    set_range(r, t, t->factor);
    r->adjusted += t->factor != 1;
    return code;
}

/* --- all tensors --------------------------------------------------------- */

/* Finds the tensors whose range was calibrated with this method, not given in the
   spec. */
static enum qdq_code
find_tensors(struct refining *r, struct qdq_error *err)
{
    const struct qdqi_attempt *a = r->attempt;
    size_t n = a->plan->view.n_tensors;
    r->tensors = qdqi_arena_array(a->scratch, n, sizeof *r->tensors);
    if (!r->tensors)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        if (strcmp(a->methods[i], r->method->name) == 0)
            r->tensors[r->n++] = (struct tensor){.i = i, .factor = 1};
    return QDQ_OK;
}

static enum qdq_code
refine_tensors(struct refining *r, struct qdq_error *err)
{
    const int64_t seconds = r->attempt->spec->calibration.max_seconds;
    enum qdq_code code = QDQ_OK;
    qdqi_whatif_switch_off(r->w);
    for (size_t i = 0; !code && i < r->n; i++) {
        if ((r->is_time_up = qdqi_time_is_up(r->attempt->context, seconds)))
            break;
        code = refine_tensor(r, &r->tensors[i], err);
        qdqi_whatif_expect(r->w,
                           ((r->n - i - 1) * USUAL_RUNS + 1) * (uint64_t)r->samples);
    }
    if (!code && r->is_time_up)
        code =
            qdqi_warn_time_is_up(r->attempt, seconds, "/calibration/max_seconds", err);
    return code ? code : qdqi_whatif_choose(r->w, NULL, err);
}

/* Applies the factors to the ranges if the result is better. Otherwise it restores
   the scales. */
static void
settle(struct refining *r, bool better)
{
    for (size_t i = 0; i < r->n; i++) {
        struct tensor *t = &r->tensors[i];
        if (!better)
            t->factor = 1;
        set_range(r, t, t->factor);
        r->attempt->ranges[t->i].min *= t->factor;
        r->attempt->ranges[t->i].max *= t->factor;
    }
    if (!better)
        r->adjusted = 0;
}

static enum qdq_code
open_replay(struct refining *r, struct qdq_error *err)
{
    const struct qdq_calibration_spec *c = &r->attempt->spec->calibration;
    struct qdqi_feed_options options = {.batch = c->batch,
                                        .max_samples = c->max_samples};
    if (options.max_samples == 0 || options.max_samples > MAX_SAMPLES)
        options.max_samples = MAX_SAMPLES;
    qdqi_whatif_begin(r->w, QDQ_STAGE_REFINE,
                      (3 + r->n * USUAL_RUNS) * (uint64_t)options.max_samples);
    enum qdq_code code =
        qdqi_replay_open(r->w, &options, "/calibration/method", &r->replay, err);
    if (!code)
        r->samples = qdqi_replay_samples(r->replay);
    return code;
}

static enum qdq_code
refine(struct refining *r, struct qdq_error *err)
{
    struct qdq_refinement *report = qdqi_arena_alloc(r->result->arena, sizeof *report);
    enum qdq_code code = report ? open_replay(r, err) : qdqi_no_memory(err);
    if (code)
        return code;
    *report =
        (struct qdq_refinement){.start = r->method->start->name, .samples = r->samples};
    if ((code = qdqi_whatif_choose(r->w, NULL, err)) ||
        (code = run(r, &report->sqnr_db_before, err)) ||
        (code = refine_tensors(r, err)) || (code = run(r, &report->sqnr_db_after, err)))
        return code;
    settle(r, report->sqnr_db_after > report->sqnr_db_before);
    if (r->adjusted == 0)
        report->sqnr_db_after = report->sqnr_db_before;
    report->adjusted = r->adjusted;
    r->result->report->refinement = report;
    return QDQ_OK;
}

enum qdq_code
qdqi_refine(struct qdqi_attempt *a, struct qdqi_whatif **whatif,
            struct qdqi_result *result, struct qdq_error *err)
{
    struct refining r = {.attempt = a,
                         .result = result,
                         .method = qdqi_method_find(a->spec->calibration.method)};
    enum qdq_code code;
    if (!r.method || !r.method->start)
        return QDQ_OK;
    if ((code = find_tensors(&r, err)) || r.n == 0 ||
        (code = qdqi_whatif_get(whatif, a, err)))
        return code;
    r.w = *whatif;
    code = refine(&r, err);
    qdqi_replay_close(&r.replay);
    return code || r.adjusted == 0 ? code : qdqi_choose_scales(a, err);
}
