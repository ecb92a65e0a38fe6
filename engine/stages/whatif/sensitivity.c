/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the cost of each layer in two ways: quantized alone, and alone in float.
   That takes 2 n + 2 runs of the samples for n layers, including the float model's. */
#include "config.h"
#include "stages/whatif/whatif.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ranking {
    struct qdqi_whatif *w;
    struct qdqi_replay *replay;
    int64_t samples;
    int64_t seconds; /* as asked for */
    bool is_time_up; /* the time is up: the figures of further layers are NaN */
    struct qdq_sensitivity *rows; /* by layer */
    bool *is_float;               /* by layer: the present choice */
};

static bool
goes_on(struct ranking *r, const struct qdqi_attempt *a)
{
    r->is_time_up = r->is_time_up || qdqi_time_is_up(a->context, r->seconds);
    return !r->is_time_up;
}

static enum qdq_code
run_alone(struct ranking *r, size_t i, struct qdq_error *err)
{
    struct qdqi_score score;
    r->is_float[i] = false;
    enum qdq_code code = qdqi_whatif_choose(r->w, r->is_float, err);
    if (!code)
        code = qdqi_whatif_run(r->w, r->replay, r->samples, false, &score, err);
    r->is_float[i] = true;
    if (!code)
        r->rows[i].sqnr_db_alone = score.sqnr_db;
    return code;
}

static enum qdq_code
run_without(struct ranking *r, size_t i, double all, struct qdq_error *err)
{
    struct qdqi_score score;
    r->is_float[i] = true;
    enum qdq_code code = qdqi_whatif_choose(r->w, r->is_float, err);
    if (!code)
        code = qdqi_whatif_run(r->w, r->replay, r->samples, false, &score, err);
    r->is_float[i] = false;
    if (!code) /* two infinities of the same sign count as equal */
        r->rows[i].gain_db = score.sqnr_db == all ? 0 : score.sqnr_db - all;
    return code;
}

static enum qdq_code
run_layers(struct ranking *r, const struct qdqi_attempt *a, struct qdq_error *err)
{
    size_t n = qdqi_whatif_layers(r->w);
    struct qdqi_score all;
    enum qdq_code code = QDQ_OK;
    memset(r->is_float, true, n * sizeof *r->is_float);
    for (size_t i = 0; !code && i < n && goes_on(r, a); i++)
        code = run_alone(r, i, err);
    memset(r->is_float, false, n * sizeof *r->is_float);
    if (!code)
        code = qdqi_whatif_choose(r->w, NULL, err);
    if (!code)
        code = qdqi_whatif_run(r->w, r->replay, r->samples, true, &all, err);
    for (size_t i = 0; !code && i < n && goes_on(r, a); i++)
        code = run_without(r, i, all.sqnr_db, err);
    return code;
}

/* A row with the index of its layer in the plan. Rows with equal scores are sorted
   by that index. */
struct ranked {
    struct qdq_sensitivity row;
    size_t layer;
};

static int
costlier_first(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (isnan(x->row.sqnr_db_alone) != isnan(y->row.sqnr_db_alone))
        return isnan(x->row.sqnr_db_alone) ? 1 : -1;
    if (!isnan(x->row.sqnr_db_alone) && x->row.sqnr_db_alone != y->row.sqnr_db_alone)
        return x->row.sqnr_db_alone < y->row.sqnr_db_alone ? -1 : 1;
    return x->layer < y->layer ? -1 : 1;
}

static enum qdq_code
sort_rows(struct ranking *r, const struct qdqi_attempt *a, struct qdq_error *err)
{
    size_t n = qdqi_whatif_layers(r->w);
    struct ranked *ranked = qdqi_arena_array(a->scratch, n, sizeof *ranked);
    if (!ranked)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){r->rows[i], i};
    if (n > 0)
        qsort(ranked, n, sizeof *ranked, costlier_first);
    for (size_t i = 0; i < n; i++)
        r->rows[i] = ranked[i].row;
    return QDQ_OK;
}

/* Allocates the rows of the report. It copies the names because the plan may be made
   again before the report is read. */
static enum qdq_code
make_rows(struct ranking *r, const struct qdqi_attempt *a, struct qdqi_arena *arena,
          struct qdq_error *err)
{
    size_t n = qdqi_whatif_layers(r->w);
    r->rows = qdqi_arena_array(arena, n, sizeof *r->rows);
    for (size_t i = 0; r->rows && i < n; i++) {
        r->rows[i].name = qdqi_arena_strdup(arena, qdqi_whatif_layer(r->w, i)->name);
        r->rows[i].sqnr_db_alone = r->rows[i].gain_db = NAN;
        if (!r->rows[i].name)
            return qdqi_no_memory(err);
    }
    r->is_float = qdqi_arena_array(a->scratch, n + 1, sizeof *r->is_float);
    return r->rows && r->is_float ? QDQ_OK : qdqi_no_memory(err);
}

enum qdq_code
qdqi_sensitivity(const struct qdqi_attempt *a, struct qdqi_whatif **whatif,
                 struct qdqi_result *result, struct qdq_error *err)
{
    struct ranking r = {.samples = a->spec->sensitivity_samples,
                        .seconds = a->spec->sensitivity_seconds};
    enum qdq_code code;
    if (r.samples == 0)
        return QDQ_OK;
    if ((code = qdqi_whatif_get(whatif, a, err)))
        return code;
    r.w = *whatif;
    uint64_t runs = 2 * qdqi_whatif_layers(r.w) + 2;
    qdqi_whatif_begin(r.w, QDQ_STAGE_SENSITIVITY, runs * (uint64_t)r.samples);
    if ((code = qdqi_replay_get(r.w, "/sensitivity", &r.replay, err)) ||
        (code = make_rows(&r, a, result->arena, err)))
        return code;
    if (r.samples > qdqi_replay_samples(r.replay))
        r.samples = qdqi_replay_samples(r.replay);
    qdqi_whatif_expect(r.w, (runs - 1) * (uint64_t)r.samples);
    if ((code = run_layers(&r, a, err)) || (code = sort_rows(&r, a, err)))
        return code;
    if (r.is_time_up &&
        (code = qdqi_warn_time_is_up(a, r.seconds, "/sensitivity/max_seconds", err)))
        return code;
    result->report->sensitivity = r.rows;
    result->report->n_sensitivity = qdqi_whatif_layers(r.w);
    return QDQ_OK;
}
