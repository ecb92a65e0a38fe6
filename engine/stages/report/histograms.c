/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/report/histograms.h"

#include "numbers/range/outline.h"

/* The most bins of one histogram, and of all of them together. */
enum { MOST_BINS = 256, LEAST_BINS = 16, ALL_BINS = 1 << 16 };

static const struct qdqi_observer *
find_observer(const struct qdqi_map *observers, const char *tensor)
{
    const struct qdqi_observer *o = qdqi_map_get(observers, tensor);
    return o && o->all.histogram && !qdqi_extremes_empty(&o->all.extremes) &&
                   qdqi_histogram_used(o->all.histogram) > 0
               ? o
               : NULL;
}

/* Returns the most bins of each histogram, which are fewer where there are many. */
static size_t
most_bins(size_t n)
{
    size_t most = MOST_BINS;
    while (most > LEAST_BINS && most * n > ALL_BINS)
        most /= 2;
    return most;
}

enum qdq_code
qdqi_report_histograms(const struct qdqi_attempt *a, const struct qdqi_result *result,
                       struct qdq_error *err)
{
    struct qdq_report *r = result->report;
    const struct qdq_plan_view *plan = &a->plan->view;
    if (!a->context->work->histograms || !a->calibrated.observers)
        return QDQ_OK;
    struct qdqi_map *observers = qdqi_attempt_index_observers(a);
    struct qdq_histogram_report *rows =
        qdqi_arena_array(result->arena, plan->n_tensors, sizeof *rows);
    if (!observers || !rows)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < qdqi_plan_tensors(a->plan); i++) {
        const struct qdqi_planned_tensor *t = &a->plan->activations[i];
        const struct qdqi_range_use use = {&a->spec->calibration, t->format,
                                           t->symmetric};
        const struct qdqi_observer *o = find_observer(observers, plan->tensors[i]);
        if (!o)
            continue;
        if (!qdqi_outline(o, &use, &a->ranges[i], most_bins(plan->n_tensors),
                          result->arena, &rows[r->n_histograms]))
            return qdqi_no_memory(err);
        rows[r->n_histograms++].tensor = plan->tensors[i];
    }
    r->histograms = rows;
    return QDQ_OK;
}
