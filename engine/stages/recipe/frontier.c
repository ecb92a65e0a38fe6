/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/frontier.h"

#include <math.h>
#include <stdlib.h>

/* A result that was judged: the i-th. */
struct judged {
    double cost, sqnr_db;
    size_t i;
};

/* The cheapest first; of two that cost the same the more accurate one, then the first. */
static int
compare_judged(const void *a, const void *b)
{
    const struct judged *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    if (x->sqnr_db != y->sqnr_db)
        return x->sqnr_db > y->sqnr_db ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

/* Sorts n results and keeps those that are more accurate than all that cost less. Returns how many
   these are. */
static size_t
keep_unbeaten(struct judged *judged, size_t n)
{
    size_t kept = 0;
    qsort(judged, n, sizeof *judged, compare_judged);
    for (size_t i = 0; i < n; i++)
        if (judged[i].sqnr_db > (kept ? judged[kept - 1].sqnr_db : -INFINITY))
            judged[kept++] = judged[i];
    return kept;
}

/* Gives the report a frontier with room for n points. */
static struct qdq_frontier_point *
new_frontier(const struct qdqi_result *result, size_t n)
{
    struct qdq_frontier *to = qdqi_arena_alloc(result->arena, sizeof *to);
    struct qdq_frontier_point *points =
        qdqi_arena_array(result->arena, n + 1, sizeof *points);
    if (!to || !points)
        return NULL;
    *to = (struct qdq_frontier){n, points};
    result->report->frontier = to;
    return points;
}

static struct qdq_frontier_point
point_of(const struct qdqi_grade *grade, const struct qdq_spec *spec)
{
    return (struct qdq_frontier_point){.sqnr_db = grade->sqnr_db,
                                       .latency_ratio = grade->latency_ratio,
                                       .size_ratio = grade->size_ratio,
                                       .spec = spec};
}

enum qdq_code
qdqi_frontier_report(const struct qdqi_fastest *f, struct qdq_error *err)
{
    const struct qdqi_result *result = f->candidates->result;
    struct judged *judged =
        qdqi_arena_array(result->scratch, f->n_judged + 1, sizeof *judged);
    size_t n = 0;
    if (!judged)
        return qdqi_no_memory(err);
    if (!qdqi_fastest_has_times(f))
        return QDQ_OK;
    for (size_t i = 0; i < f->n_judged; i++) {
        const struct qdqi_grade *g = &f->judged[i].grade;
        if (!isnan(g->latency_ratio))
            judged[n++] = (struct judged){g->latency_ratio, g->sqnr_db, i};
    }
    n = keep_unbeaten(judged, n);
    n = n < f->points ? n : f->points;
    struct qdq_frontier_point *points = new_frontier(result, n);
    for (size_t i = 0; points && i < n; i++) {
        const struct qdqi_judged_placement *p = &f->judged[judged[i].i];
        points[i] = point_of(
            &p->grade, qdqi_report_leaving(result, p->spec, p->layers, p->n_layers));
        if (!points[i].spec)
            return qdqi_no_memory(err);
    }
    return points ? QDQ_OK : qdqi_no_memory(err);
}

enum qdq_code
qdqi_frontier_report_sizes(const struct qdqi_variants *v, struct qdq_error *err)
{
    const struct qdqi_result *result = v->candidates->result;
    const size_t most = (size_t)v->candidates->attempt->context->asked->frontier_points;
    struct judged *judged =
        qdqi_arena_array(result->scratch, v->n_steps + 1, sizeof *judged);
    if (!judged)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < v->n_steps; i++)
        judged[i] =
            (struct judged){v->steps[i].score.size_ratio, v->steps[i].score.sqnr_db, i};
    const size_t found = keep_unbeaten(judged, v->n_steps);
    const size_t n = found < most ? found : most;
    struct qdq_frontier_point *points = new_frontier(result, n);
    for (size_t i = 0; points && i < n; i++) {
        const size_t at = n > 1 ? i * (found - 1) / (n - 1) : found - 1;
        const struct qdqi_variant_step *step = &v->steps[judged[at].i];
        points[i] =
            point_of(&step->score, qdqi_report_leaving(result, step->spec, NULL, 0));
        if (!points[i].spec)
            return qdqi_no_memory(err);
    }
    return points ? QDQ_OK : qdqi_no_memory(err);
}

enum qdq_code
qdqi_frontier_warn_missing(const struct qdqi_attempt *attempt,
                           const struct qdqi_result *result, struct qdq_error *err)
{
    return attempt->context->asked->frontier_points == 0 || result->report->frontier
               ? QDQ_OK
               : qdqi_attempt_warn(
                     attempt, err, "frontier_not_measured", NULL,
                     "there is no frontier: it takes data, layers that can "
                     "be in integers or in float, and the target's runtime "
                     "on a processor of the class that the spec is for, or a "
                     "runner that tells latencies");
}
