/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions of what-ifs, which of their pairs are switched on, and one run of them. */
#include "config.h"
#include "stages/whatif/internals.h"

#include "stages/attempt/leave.h"

/* Opens the sessions. They own all device memory that what-ifs use, until
   qdqi_parts_close(). */
enum qdq_code
qdqi_whatif_open_sessions(struct qdqi_whatif *w, struct qdq_error *err)
{
    const struct qdqi_attempt *a = w->attempt;
    const struct qdqi_session_options options = {.dev = a->context->dev,
                                                 .fakes = &w->fakes,
                                                 .basic = true,
                                                 .one_thread =
                                                     qdqi_attempt_runs_fast(a)};
    struct qdqi_runtime *runtime;
    enum qdq_code code = qdqi_engine_runtime(a->context->engine, &runtime, err);
    return code ? code : qdqi_parts_open(&w->parts, runtime, &options, err);
}

/* --- switches ------------------------------------------------------------- */

size_t
qdqi_whatif_layers(const struct qdqi_whatif *w)
{
    return w->n_layers;
}

const struct qdq_layer *
qdqi_whatif_layer(const struct qdqi_whatif *w, size_t i)
{
    return w->layers[i].layer;
}

static void
switch_fake(struct qdqi_whatif *w, struct qdqi_fake *fake, bool on)
{
    if (fake->on != on)
        qdqi_parts_switched(&w->parts, (size_t)(fake - w->fakes.rows));
    fake->on = on;
}

void
qdqi_whatif_switch_off(struct qdqi_whatif *w)
{
    for (size_t i = 0; i < w->fakes.n; i++)
        switch_fake(w, &w->fakes.rows[i], false);
}

void
qdqi_whatif_switch_tensor(struct qdqi_whatif *w, size_t activation, bool on)
{
    for (size_t i = 0; i < w->fakes.n; i++)
        if (w->fakes.rows[i].scales == &w->scales[activation])
            switch_fake(w, &w->fakes.rows[i], on);
}

void
qdqi_whatif_scale(struct qdqi_whatif *w, size_t activation, float scale,
                  int32_t zero_point)
{
    w->scales[activation] = scale;
    w->zero_points[activation] = zero_point;
    for (size_t i = 0; i < w->fakes.n; i++)
        if (w->fakes.rows[i].scales == &w->scales[activation])
            qdqi_parts_rescaled(&w->parts, i, w->fakes.rows[i].on);
}

/* --- the pairs of a choice ------------------------------------------------- */

static bool
quantizes(const struct qdq_layer *layer, int input)
{
    for (size_t i = 0; i < layer->n_inputs; i++)
        if (layer->quantized_inputs[i] == input)
            return true;
    return false;
}

/* Returns whether a plan has a pair at the place of an activation. `row` is that of the
   activation there, or NULL. */
static bool
pairs_activation(const struct qdqi_whatif *w, const struct qdq_plan *plan,
                 const struct qdqi_fake_place *place,
                 const struct qdqi_planned_tensor *row)
{
    if (!row)
        return false;
    if (place->input < 0)
        return row->everywhere;
    size_t i = w->layer_of[place->node];
    if (i != QDQI_NONE && quantizes(&plan->view.layers[i], place->input))
        return true;
    return row->everywhere &&
           !(i != QDQI_NONE && plan->reads_raw && plan->reads_raw[i]);
}

/* Switches the pairs of a plan on, and all others off. The plan has the same layers in the
   same order as the job's. */
static enum qdq_code
switch_to(struct qdqi_whatif *w, const struct qdq_plan *plan, struct qdqi_arena *arena,
          struct qdq_error *err)
{
    const struct qdq_plan_view *whole = &w->attempt->plan->view;
    struct qdqi_map *rows = qdqi_map_new(arena);
    bool ok = rows;
    for (size_t i = 0; ok && i < plan->view.n_tensors; i++)
        ok = qdqi_map_put(rows, plan->view.tensors[i], &plan->activations[i]);
    if (!ok)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < w->fakes.n; i++) {
        const struct qdqi_fake_place *place = &w->places[i];
        bool on;
        if (place->kind == QDQI_FAKE_ACTIVATION)
            on = pairs_activation(w, plan, place,
                                  qdqi_map_get(rows, whole->tensors[place->planned]));
        else if (place->kind == QDQI_FAKE_WEIGHT)
            on = plan->view.layers[place->layer].weight_input >= 0;
        else
            on = qdqi_whatif_is_quantized(&plan->view.layers[place->layer]);
        switch_fake(w, &w->fakes.rows[i], on);
    }
    return QDQ_OK;
}

static enum qdq_code
choose_by_plan(struct qdqi_whatif *w, const bool *is_float, struct qdqi_arena *arena,
               struct qdq_error *err)
{
    const char **names = qdqi_arena_array(arena, w->n_layers + 1, sizeof *names);
    struct qdq_plan *plan = NULL;
    size_t n = 0;
    if (!names)
        return qdqi_no_memory(err);
    for (size_t i = 0; is_float && i < w->n_layers; i++)
        if (is_float[i])
            names[n++] = w->layers[i].layer->name;
    if (n == 0)
        return switch_to(w, w->attempt->plan, arena, err);
    enum qdq_code code = qdqi_plan_leaving(w->attempt, names, n, arena, &plan, err);
    if (!code)
        code = switch_to(w, plan, arena, err);
    qdq_plan_free(&plan);
    return code;
}

enum qdq_code
qdqi_whatif_choose(struct qdqi_whatif *w, const bool *is_float, struct qdq_error *err)
{
    if (w->shares_pairs) {
        struct qdqi_arena *arena = qdqi_arena_new();
        enum qdq_code code =
            arena ? choose_by_plan(w, is_float, arena, err) : qdqi_no_memory(err);
        qdqi_arena_free(&arena);
        return code;
    }
    for (size_t i = 0; i < w->n_layers; i++) {
        const struct qdqi_whatif_row *row = &w->layers[i];
        for (size_t k = 0; k < row->n_fakes; k++)
            switch_fake(w, &row->fakes[k], !is_float || !is_float[i]);
    }
    return QDQ_OK;
}

/* --- running -------------------------------------------------------------- */

void
qdqi_whatif_begin(struct qdqi_whatif *w, enum qdq_stage stage, uint64_t samples)
{
    w->stage = stage;
    w->done = 0;
    w->total = samples;
}

void
qdqi_whatif_expect(struct qdqi_whatif *w, uint64_t samples)
{
    w->total = w->done + samples;
}

/*
 * Lends the device to another job that waits for it. The outputs of the float model,
 * the switches and the results so far are in host memory, so it costs only the time to
 * open the sessions again. If they stayed open they would hold memory that the other
 * job counts on: its batch might be halved, and its result would depend on this job.
 */
static enum qdq_code
lend_device(struct qdqi_whatif *w, struct qdq_error *err)
{
    const struct qdq_work *work = w->attempt->context->work;
    if (!w->attempt->context->dev || !work->wanted || !work->wanted(work->gpu_arg))
        return QDQ_OK;
    qdqi_parts_close(&w->parts);
    if (!work->regain(work->gpu_arg))
        return qdq_error_set(err, QDQ_CANCELLED, QDQ_AT_NOTHING, NULL,
                             "the work was cancelled");
    return qdqi_whatif_open_sessions(w, err);
}

enum qdq_code
qdqi_whatif_step(struct qdqi_whatif *w, struct qdqi_memo *memo, bool settled,
                 const struct qdqi_input *inputs, int64_t samples,
                 const struct qdqi_output **ret, size_t *ret_n, struct qdq_error *err)
{
    if (w->total > 0 && w->total < w->done + (uint64_t)samples)
        w->total = w->done + (uint64_t)samples;
    enum qdq_code code =
        w->stage == QDQ_N_STAGES
            ? QDQ_OK
            : qdqi_attempt_progress(w->attempt, w->stage, w->done, w->total, err);
    if (code || (code = lend_device(w, err)))
        return code;
    w->runs++;
    w->done += (uint64_t)samples;
    return qdqi_parts_run(&w->parts, memo, settled, inputs, ret, ret_n, err);
}
