/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/recipe/estimate.h"

#include "ground/base/unused.h"
#include "stages/evaluate/deployed.h"
#include "stages/whatif/whatif.h"

#include <math.h>
#include <string.h>

enum {
    /* Bytes of the outputs of parts that are kept, so that estimates take little more memory
       than a runtime with a model. */
    MOST_KEPT = 8 << 20,
    /* The choices among fewer layers are so few that the sessions of what-ifs cost more. */
    LEAST_LAYERS = 8
};

bool
qdqi_estimate_helps(const struct qdqi_candidates *c)
{
    const struct qdqi_deploy_ops *ops =
        qdqi_engine_ops(c->attempt->context->engine, c->attempt->spec->target->runtime);
    return ops && ops->opens_slowly && c->n >= LEAST_LAYERS &&
           !c->attempt->spec->dynamic && qdqi_deployed_runs(c->attempt->context) &&
           isnan(c->min_top1) && !c->task && isnan(c->max_size) &&
           isnan(c->max_latency);
}

/* Finds the candidates among the layers of the what-ifs. Both are in the plan's order. */
static bool
find_layers(struct qdqi_estimate *e)
{
    const struct qdqi_candidates *c = e->candidates;
    const size_t n = qdqi_whatif_layers(e->whatif);
    size_t k = 0;
    for (size_t i = 0; i < c->n; i++) {
        while (k < n && strcmp(qdqi_whatif_layer(e->whatif, k)->name, c->names[i]) != 0)
            k++;
        if (k == n)
            return false;
        e->layers[i] = k++;
    }
    return true;
}

enum qdq_code
qdqi_estimate_open(struct qdqi_estimate *e, const struct qdqi_candidates *c,
                   const struct qdqi_feed_options *options, struct qdq_error *err)
{
    const struct qdqi_attempt *a = c->attempt;
    *e = (struct qdqi_estimate){.candidates = c};
    enum qdq_code code = qdqi_whatif_get(&e->whatif, a, err);
    if (code)
        return code;
    qdqi_whatif_begin(e->whatif, QDQ_N_STAGES, 0);
    qdqi_whatif_keep_at_most(e->whatif, MOST_KEPT);
    e->layers = qdqi_arena_array(a->scratch, c->n + 1, sizeof *e->layers);
    e->is_float = qdqi_arena_array(a->scratch, qdqi_whatif_layers(e->whatif) + 1,
                                   sizeof *e->is_float);
    if (!e->layers || !e->is_float)
        return qdqi_no_memory(err);
    if (!find_layers(e))
        return qdq_error_set(err, QDQ_INTERNAL, QDQ_AT_NOTHING, NULL,
                             "a candidate is not among the quantized layers");
    return qdqi_replay_open(e->whatif, options, "/recipe", &e->replay, err);
}

void
qdqi_estimate_close(struct qdqi_estimate *e)
{
    if (!e->candidates)
        return;
    qdqi_replay_close(&e->replay);
    qdqi_whatif_close(&e->whatif, e->candidates->result);
    qdqi_release_unused(); /* for the runtime that judges the choice */
    *e = (struct qdqi_estimate){0};
}

enum qdq_code
qdqi_estimate_grade(struct qdqi_estimate *e, const bool *is_float,
                    struct qdqi_grade *ret, struct qdq_error *err)
{
    const struct qdqi_candidates *c = e->candidates;
    const int64_t samples = qdqi_replay_samples(e->replay);
    struct qdqi_score score;
    for (size_t i = 0; i < c->n; i++)
        e->is_float[e->layers[i]] = is_float[i];
    enum qdq_code code = qdqi_whatif_choose(e->whatif, e->is_float, err);
    if (!code)
        code = qdqi_whatif_run(e->whatif, e->replay, samples, false, &score, err);
    if (!code)
        code = qdqi_comparer_advance(c->comparer, samples, err);
    if (code)
        return code;
    *ret = (struct qdqi_grade){.sqnr_db = score.sqnr_db,
                               .task_drop = NAN,
                               .output_db = score.sqnr_db,
                               .size_ratio = NAN,
                               .latency_ratio = NAN,
                               .samples = samples};
    return QDQ_OK;
}
