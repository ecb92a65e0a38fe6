/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/by_patterns.h"

#include "stages/evaluate/deployed.h"

#include <math.h>
#include <string.h>

/* Measurements that are kept back for a placement that is judged, as far as half of all suffices. */
enum { EACH_JUDGED = 3 };

bool
qdqi_by_patterns_is_asked(const struct qdqi_attempt *a)
{
    return qdq_spec_keeps_journal(a->context->asked) && qdqi_deployed_runs(a->context);
}

/* Returns the nodes of the candidates' layers, which are in the order of the plan; NULL when out of memory. */
static size_t *
nodes_of(const struct qdqi_candidates *c)
{
    const struct qdq_plan_view *plan = &c->attempt->plan->view;
    size_t *nodes = qdqi_arena_array(c->result->arena, c->n + 1, sizeof *nodes);
    for (size_t i = 0, k = 0; nodes && i < plan->n_layers && k < c->n; i++)
        if (strcmp(plan->layers[i].name, c->names[k]) == 0)
            nodes[k++] = plan->layers[i].node;
    return nodes;
}

static void
set_layers(const struct qdqi_by_patterns *b, const bool *is_float, bool *ret)
{
    for (size_t i = 0; i < b->candidates->n; i++)
        ret[i] = b->patterns.of[i] != QDQI_NO_PATTERN && is_float[b->patterns.of[i]];
}

static enum qdq_code
measure(void *arg, const bool *is_float, double *ret, struct qdq_error *err)
{
    const struct qdqi_by_patterns *b = arg;
    set_layers(b, is_float, b->layers);
    enum qdq_code code = qdqi_candidates_time(b->candidates, b->layers, ret, err);
    return code ? code : qdqi_comparer_advance(b->candidates->comparer, 1, err);
}

enum qdq_code
qdqi_by_patterns_search(const struct qdqi_candidates *c, size_t judged,
                        bool (*is_time_up)(void *arg), void *arg,
                        struct qdqi_by_patterns *b, bool *ret_any,
                        struct qdq_error *err)
{
    struct qdqi_arena *arena = c->result->arena;
    const size_t half = QDQI_MOST_MEASUREMENTS / 2, wanted = EACH_JUDGED * judged;
    *b = (struct qdqi_by_patterns){.candidates = c};
    *ret_any = false;
    const struct qdqi_placed_layers layers = {
        .n = c->n, .nodes = nodes_of(c), .costs = c->costs, .ignored = c->only_stored};
    b->layers = qdqi_arena_array(arena, c->n + 1, sizeof *b->layers);
    if (!layers.nodes || !b->layers)
        return qdqi_no_memory(err);
    enum qdq_code code = qdqi_patterns_find(&c->attempt->model->graph, &layers, arena,
                                            &b->patterns, err);
    if (code || b->patterns.n == 0)
        return code;
    b->search = (struct qdqi_pattern_search){.n = b->patterns.n,
                                             .shares = b->patterns.shares,
                                             .n_pairs = b->patterns.n_pairs,
                                             .pairs = b->patterns.pairs,
                                             .most = QDQI_MOST_MEASUREMENTS,
                                             .reserved = wanted < half ? wanted : half,
                                             .measure = measure,
                                             .arg = b,
                                             .is_time_up = is_time_up,
                                             .time_arg = arg,
                                             .arena = arena};
    qdqi_comparer_expect(c->comparer, QDQI_MOST_MEASUREMENTS);
    code = qdqi_pattern_search(&b->search, err);
    qdqi_comparer_expect(c->comparer, 0);
    *ret_any = !code && b->search.tried[0].n > 0;
    return code;
}

enum qdq_code
qdqi_by_patterns_costs(const struct qdqi_by_patterns *b, struct qdqi_costs *ret,
                       struct qdq_error *err)
{
    const struct qdqi_candidates *c = b->candidates;
    return qdqi_costs_of_patterns(&b->patterns, b->search.estimates, c->n, c->noise,
                                  c->result->arena, ret, err);
}

const bool *
qdqi_by_patterns_best(const struct qdqi_by_patterns *b)
{
    const struct qdqi_candidates *c = b->candidates;
    bool *is_float = qdqi_arena_array(c->result->arena, c->n + 1, sizeof *is_float);
    if (is_float)
        set_layers(b, b->search.tried[0].is_float, is_float);
    return is_float;
}

enum qdq_code
qdqi_by_patterns_set_time(struct qdqi_by_patterns *b, const bool *is_float,
                          struct qdqi_grade *grade, struct qdq_error *err)
{
    bool patterns[QDQI_MOST_PATTERNS] = {false};
    double ratio = NAN;
    for (size_t i = 0; i < b->patterns.n; i++)
        patterns[i] = is_float[b->patterns.first[i]];
    enum qdq_code code =
        b->patterns.n > 0
            ? qdqi_pattern_search_time(&b->search, patterns, &ratio, err)
            : QDQ_OK; /* weights are stored as integers, and nothing computes with them */
    if (!code)
        qdqi_candidates_set_time(b->candidates, ratio, grade);
    return code;
}
