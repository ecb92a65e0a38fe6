/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/frontier.h"

#include <math.h>
#include <stdlib.h>

/* Returns whether a placement is at least as good as another one in both figures; of two that are
   alike, the first judged one is. */
static bool
beats(const struct qdqi_judged_placement *a, const struct qdqi_judged_placement *b)
{
    const struct qdqi_grade *x = &a->grade, *y = &b->grade;
    if (x->sqnr_db < y->sqnr_db || x->latency_ratio > y->latency_ratio)
        return false;
    return a < b || x->sqnr_db > y->sqnr_db || x->latency_ratio < y->latency_ratio;
}

static bool
is_on_frontier(const struct qdqi_fastest *f, const struct qdqi_judged_placement *p)
{
    if (isnan(p->grade.latency_ratio) || p->grade.sqnr_db == -INFINITY)
        return false;
    for (size_t i = 0; i < f->n_judged; i++)
        if (&f->judged[i] != p && beats(&f->judged[i], p))
            return false;
    return true;
}

static int
compare_points(const void *a, const void *b)
{
    const double x = ((const struct qdq_frontier_point *)a)->latency_ratio;
    const double y = ((const struct qdq_frontier_point *)b)->latency_ratio;
    return (x > y) - (x < y);
}

enum qdq_code
qdqi_frontier_report(const struct qdqi_fastest *f, struct qdq_error *err)
{
    const struct qdqi_result *result = f->candidates->result;
    struct qdq_frontier *to = qdqi_arena_alloc(result->arena, sizeof *to);
    struct qdq_frontier_point *points =
        qdqi_arena_array(result->arena, f->n_judged + 1, sizeof *points);
    if (!to || !points)
        return qdqi_no_memory(err);
    to->points = points;
    for (size_t i = 0; i < f->n_judged; i++) {
        const struct qdqi_judged_placement *p = &f->judged[i];
        if (!is_on_frontier(f, p))
            continue;
        points[to->n] = (struct qdq_frontier_point){
            .sqnr_db = p->grade.sqnr_db,
            .latency_ratio = p->grade.latency_ratio,
            .size_ratio = p->grade.size_ratio,
            .spec = qdqi_report_leaving(result, p->spec, p->layers, p->n_layers)};
        if (!points[to->n++].spec)
            return qdqi_no_memory(err);
    }
    qsort(points, to->n, sizeof *points, compare_points);
    if (to->n > f->points)
        to->n = f->points;
    result->report->frontier = to;
    return QDQ_OK;
}
