/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out the spec's `float`: chooses the nodes and scales that become float16
   or bfloat16 and converts the result. */
#include "config.h"
#include "scale/precision.h"

#include "number/low.h"
#include "rewrite/lower.h"

#include <math.h>

/* --- ranges --------------------------------------------------------------- */

static bool
note_beyond(struct qdqi_map *to, const char *tensor, double min, double max,
            double largest)
{
    return fmax(fabs(min), fabs(max)) <= largest ||
           qdqi_map_put(to, tensor, (void *)(uintptr_t)tensor);
}

/*
 * Returns the tensors whose ranges exceed those of the type: ranges that the spec
 * gives, for planned tensors or others, and ranges that calibration found. NULL when
 * out of memory.
 */
static struct qdqi_map *
find_beyond(const struct qdqi_job *job, enum qdqi_dtype dtype)
{
    const struct qdq_calibration_spec *c = &job->work->spec->calibration;
    const struct qdq_plan_view *plan = &job->plan->view;
    const double largest = (double)qdqi_low_largest(dtype);
    struct qdqi_map *beyond = qdqi_map_new(job->scratch);
    bool ok = beyond;
    for (size_t i = 0; ok && i < c->n_ranges; i++)
        ok = note_beyond(beyond, c->ranges[i].tensor, c->ranges[i].min,
                         c->ranges[i].max, largest);
    for (size_t i = 0; ok && i < plan->n_tensors; i++)
        ok = note_beyond(beyond, plan->tensors[i], job->ranges[i].min,
                         job->ranges[i].max, largest);
    return ok ? beyond : NULL;
}

/* --- scales --------------------------------------------------------------- */

static bool
is_read_low(const struct qdqi_low *low, const struct qdqi_tensor *t)
{
    for (const struct qdqi_use *use = t->uses; use; use = use->next)
        if (low->nodes[use->node])
            return true;
    return false;
}

static void
round_scales(enum qdqi_dtype dtype, struct qdqi_params *p)
{
    const struct qdqi_format_row *row = qdqi_format_row((int)p->format);
    double steps = 0;
    if (row->fraction_bits == 0)
        steps = (double)row->highest - (p->zero_points ? (double)row->lowest : 0);
    for (size_t i = 0; i < p->n; i++)
        p->scales[i] = qdqi_low_scale(dtype, p->scales[i], steps);
}

/* Returns for each planned activation whether a 16-bit node reads it. Activations
   that share their scale get the same answer. NULL when out of memory. */
static bool *
find_low(const struct qdqi_job *job)
{
    const struct qdq_plan *plan = job->plan;
    size_t n = plan->view.n_tensors;
    bool *is_low = qdqi_arena_array(job->scratch, n, sizeof *is_low);
    for (size_t i = 0; is_low && i < n; i++)
        if (is_read_low(&job->low, plan->activations[i].tensor))
            is_low[i] = is_low[plan->activations[i].leader] = true;
    for (size_t i = 0; is_low && i < n; i++)
        is_low[i] |= is_low[plan->activations[i].leader];
    return is_low;
}

static bool
round_all(struct qdqi_job *job, struct qdqi_scales *scales)
{
    const struct qdq_plan *plan = job->plan;
    const struct qdqi_low *low = &job->low;
    /* The const is cast away: the rows are in the job's own memory. */
    struct qdq_tensor_report *tensors =
        (struct qdq_tensor_report *)(uintptr_t)job->report->view.tensors;
    const bool *is_low = find_low(job);
    for (size_t i = 0; is_low && i < plan->view.n_tensors; i++) {
        if (!is_low[i])
            continue;
        round_scales(low->dtype, &scales->activations[i]);
        tensors[i].scale = (double)scales->activations[i].scales[0];
    }
    for (size_t i = 0; i < plan->view.n_weights; i++)
        if (is_read_low(low, plan->weights[i].tensor))
            round_scales(low->dtype, &scales->weights[i]);
    return is_low;
}

enum qdq_code
qdqi_lower_scales(struct qdqi_job *job, struct qdqi_scales *scales,
                  struct qdq_error *err)
{
    enum qdqi_dtype dtype = qdqi_low_dtype(job->work->spec);
    if (dtype == QDQI_UNKNOWN)
        return QDQ_OK;
    if (!job->low_constants)
        job->low_constants = qdqi_map_new(job->scratch);
    struct qdqi_map *beyond = find_beyond(job, dtype);
    struct qdq_float_report *report = qdqi_arena_alloc(job->arena, sizeof *report);
    if (!job->low_constants || !beyond || !report)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_low_decide(job->model, dtype, beyond, job->low_constants,
                                         job->arena, &job->low, err);
    if (code || (code = qdqi_low_warn(&job->low, &job->warnings, job->arena, err)))
        return code;
    if (!round_all(job, scales))
        return qdqi_no_memory(err);
    *report = (struct qdq_float_report){.type = qdqi_dtype_name((int)dtype),
                                        .n_nodes = job->low.n_low,
                                        .n_kept = job->low.n_kept,
                                        .kept = job->low.kept};
    job->report->view.floats = report;
    return QDQ_OK;
}

/* --- the model ------------------------------------------------------------ */

enum qdq_code
qdqi_lower_result(struct qdqi_job *job, struct qdqi_edited *edited,
                  struct qdq_error *err)
{
    struct qdqi_edited lowered;
    if (job->low.dtype == QDQI_UNKNOWN)
        return QDQ_OK;
    enum qdq_code code =
        qdqi_lower(job->model, edited, &job->low, job->scratch, &lowered, err);
    if (!code)
        *edited = lowered;
    return code;
}
