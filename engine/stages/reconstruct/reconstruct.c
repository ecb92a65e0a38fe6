/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/reconstruct/reconstruct.h"

#include "files/model/constant.h"
#include "run/session/session.h"
#include "stages/reconstruct/layers.h"
#include "stages/reconstruct/round_layer.h"
#include "stages/scale/bias.h"
#include "stages/scale/fake_weight.h"
#include "transform/rewrite/insert.h"
#include "transform/rewrite/taps.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 32768,  /* are taken of each layer's input, spread over all samples */
    SAMPLES = 512, /* of the data, at most */
};

/* A tensor that the runs of a step are made for. */
struct tap {
    const char *name;
    size_t elements, room;
    float *floats; /* of the run of the float model; NULL: only the other is needed */
};

struct step {
    struct qdqi_rebuilt *rows; /* its layers */
    size_t n;
    struct tap *taps; /* outputs of the session */
    size_t n_taps;
    size_t *input_of,
        *target_of; /* by layer: its taps; QDQI_NONE: an input of the model */
};

struct rebuilding {
    struct qdqi_attempt *a;
    struct qdqi_runtime *runtime;
    struct qdqi_rebuilt_layers layers;
    const Onnx__ModelProto *proto; /* with a FakeQuant at each weight and bias */
    struct qdqi_fake_place *places;
    struct qdqi_fakes fakes;
    bool
        *is_rounded; /* by layer of the plan: it is, in the runs of the rounded model */
    struct qdqi_feed_options options;
    struct qdqi_tasks tasks;
    uint64_t done, total; /* samples */
};

/* --- the model ------------------------------------------------------------------ */

/* Makes the FakeQuant of a place again. Those of activations are never on. */
static enum qdq_code
make_fake(struct rebuilding *r, size_t i, struct qdq_error *err)
{
    const struct qdqi_fake_place *place = &r->places[i];
    const struct qdqi_scales *s = &r->a->scales;
    struct qdqi_fake *fake = &r->fakes.rows[i];
    *fake = (struct qdqi_fake){.channels = 1, .inner = 1};
    if (place->kind == QDQI_FAKE_WEIGHT)
        return qdqi_fake_weight(r->a, place->planned, fake, err);
    for (size_t k = 0; place->kind != QDQI_FAKE_ACTIVATION && k < s->n_shifted; k++)
        if (s->shifted[k].layer == place->layer && s->shifted[k].node == place->node)
            fake->chosen = s->shifted[k].values;
    return QDQ_OK;
}

/* Switches the weights and biases of rounded layers on, or all of them off. */
static void
switch_all(struct rebuilding *r, bool on)
{
    for (size_t i = 0; i < r->fakes.n; i++) {
        const struct qdqi_fake_place *place = &r->places[i];
        const bool is_weight = place->kind == QDQI_FAKE_WEIGHT;
        r->fakes.rows[i].on = on && (is_weight || r->fakes.rows[i].chosen) &&
                              place->layer < r->a->plan->view.n_layers &&
                              r->is_rounded[place->layer];
    }
}

static enum qdq_code
open_model(struct rebuilding *r, struct qdq_error *err)
{
    struct qdqi_attempt *a = r->a;
    const size_t n = a->plan->view.n_layers;
    enum qdq_code code = qdqi_insert_fakes(a->model, a->plan, &a->scales, a->scratch,
                                           &r->places, &r->fakes.n, &r->proto, err);
    if (code)
        return code;
    r->fakes.rows = qdqi_arena_array(a->scratch, r->fakes.n, sizeof *r->fakes.rows);
    r->is_rounded = qdqi_arena_array(a->scratch, n, sizeof *r->is_rounded);
    if (!r->fakes.rows || !r->is_rounded)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        r->is_rounded[i] = true;
    for (size_t i = 0; i < r->layers.n; i++)
        r->is_rounded[r->layers.rows[i].layer] = false;
    for (size_t i = 0; i < r->fakes.n && !code; i++)
        code = make_fake(r, i, err);
    return code;
}

/* --- a step ----------------------------------------------------------------------- */

/* Returns the tap of a tensor, which is added where it is not there. */
static size_t
tap_of(struct step *s, const char *name)
{
    size_t i = 0;
    while (i < s->n_taps && strcmp(s->taps[i].name, name) != 0)
        i++;
    if (i == s->n_taps)
        s->taps[s->n_taps++] = (struct tap){.name = name};
    return i;
}

/* Finds the tensors that a step needs, and allocates its sums. */
static enum qdq_code
begin_step(const struct rebuilding *r, struct step *s, struct qdq_error *err)
{
    struct qdqi_arena *arena = r->a->scratch;
    s->taps = qdqi_arena_array(arena, 2 * s->n, sizeof *s->taps);
    s->input_of = qdqi_arena_array(arena, s->n, sizeof *s->input_of);
    s->target_of = qdqi_arena_array(arena, s->n, sizeof *s->target_of);
    if (!s->taps || !s->input_of || !s->target_of)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < s->n; i++) {
        struct qdqi_rebuilt *row = &s->rows[i];
        const struct qdqi_planned_weight *w = &r->a->plan->weights[row->weight];
        const size_t k = row->form->moments[0].k;
        size_t elements = 0;
        s->input_of[i] = row->input->is_input ? QDQI_NONE : tap_of(s, row->input->name);
        s->target_of[i] = tap_of(s, row->target->name);
        if (!qdqi_count_elements(w->tensor->view.dims, w->tensor->view.rank,
                                 &elements) ||
            !qdqi_row_pairs_init(&row->pairs, &row->window, row->form->groups, k,
                                 elements / k / row->form->groups))
            return qdqi_no_memory(err);
    }
    return QDQ_OK;
}

static void
end_step(struct step *s)
{
    for (size_t i = 0; i < s->n; i++)
        qdqi_row_pairs_fini(&s->rows[i].pairs);
    for (size_t i = 0; s->taps && i < s->n_taps; i++)
        free(s->taps[i].floats);
}

/* Keeps the targets of the float model. */
static enum qdq_code
keep_targets(struct step *s, const struct qdqi_output *outputs, struct qdq_error *err)
{
    for (size_t i = 0; i < s->n; i++) {
        struct tap *tap = &s->taps[s->target_of[i]];
        const struct qdqi_output *o = &outputs[s->target_of[i]];
        if (o->dtype != QDQI_FLOAT32)
            continue; /* the pairs do not fit then */
        if (o->n > tap->room) {
            free(tap->floats);
            tap->room = 0;
            tap->floats = calloc(o->n, sizeof *tap->floats);
            if (!tap->floats)
                return qdqi_no_memory(err);
            tap->room = o->n;
        }
        tap->elements = o->n;
        if (o->n > 0)
            memcpy(tap->floats, o->data, o->n * sizeof *tap->floats);
    }
    return QDQ_OK;
}

/* Returns what a layer reads in a run. */
static struct qdqi_patched
input_of(const struct rebuilding *r, const struct step *s, size_t i,
         const struct qdqi_input *inputs, const struct qdqi_output *outputs)
{
    if (s->input_of[i] != QDQI_NONE) {
        const struct qdqi_output *o = &outputs[s->input_of[i]];
        return (struct qdqi_patched){o->dtype == QDQI_FLOAT32 ? o->data : NULL, o->rank,
                                     o->shape};
    }
    for (size_t k = 0; k < r->a->model->info.n_inputs; k++)
        if (strcmp(inputs[k].name, s->rows[i].input->name) == 0 &&
            inputs[k].dtype == QDQI_FLOAT32)
            return (struct qdqi_patched){inputs[k].data, inputs[k].rank,
                                         inputs[k].shape};
    return (struct qdqi_patched){0};
}

/* Takes in the pairs of a run. */
static enum qdq_code
take_pairs(struct rebuilding *r, struct step *s, int64_t samples,
           const struct qdqi_input *inputs, const struct qdqi_output *outputs,
           struct qdq_error *err)
{
    const int64_t all = (int64_t)(r->total / 2 / r->layers.steps);
    const size_t per_sample = all < ROWS ? (size_t)((ROWS + all - 1) / all) : 1;
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < s->n && !code; i++) {
        struct qdqi_rebuilt *row = &s->rows[i];
        const struct tap *tap = &s->taps[s->target_of[i]];
        const struct qdqi_output *made = &outputs[s->target_of[i]];
        const struct qdqi_paired_tensors tensors = {
            .input = input_of(r, s, i, inputs, outputs),
            .target = tap->floats,
            .made = made->data,
            .rank = made->rank,
            .dims = made->shape,
        };
        row->fits = row->fits && tensors.input.data && tap->floats &&
                    made->dtype == QDQI_FLOAT32 && made->n == tap->elements;
        if (row->fits)
            code = qdqi_row_pairs_add(&row->pairs, samples, per_sample, &tensors,
                                      &r->tasks, &row->fits, err);
    }
    return code;
}

/* Runs a batch in float and rounded. */
static enum qdq_code
run_batch(struct rebuilding *r, struct step *s, struct qdqi_session *session,
          const struct qdqi_input *inputs, int64_t samples, struct qdq_error *err)
{
    const size_t n_inputs = r->a->model->info.n_inputs;
    const struct qdqi_output *outputs;
    size_t n;
    switch_all(r, false);
    enum qdq_code code = qdqi_session_run(session, inputs, n_inputs, &outputs, &n, err);
    if (!code)
        code = keep_targets(s, outputs, err);
    switch_all(r, true);
    if (!code)
        code = qdqi_session_run(session, inputs, n_inputs, &outputs, &n, err);
    if (!code)
        code = take_pairs(r, s, samples, inputs, outputs, err);
    r->done += 2 * (uint64_t)samples;
    return code ? code
                : qdqi_attempt_progress(r->a, QDQ_STAGE_RECONSTRUCT, r->done, r->total,
                                        err);
}

/* Runs all samples. */
static enum qdq_code
run_samples(struct rebuilding *r, struct step *s, struct qdqi_session *session,
            struct qdq_error *err)
{
    const struct qdqi_attempt *a = r->a;
    struct qdqi_feed *feed = NULL;
    const struct qdqi_input *inputs;
    int64_t samples = 1;
    enum qdq_code code =
        qdqi_feed_open(&a->fixed, a->context->dataset, &r->options, &feed, err);
    while (!code && !(code = qdqi_feed_next(feed, &inputs, &samples, err)) &&
           samples > 0)
        code = qdqi_feed_name_samples(
            feed, run_batch(r, s, session, inputs, samples, err), err);
    for (size_t i = 0; i < s->n && !code; i++)
        code = qdqi_row_pairs_flush(&s->rows[i].pairs, &r->tasks, err);
    qdqi_feed_close(&feed);
    return code;
}

static enum qdq_code
run_step(struct rebuilding *r, struct step *s, struct qdq_error *err)
{
    struct qdqi_attempt *a = r->a;
    const struct qdqi_session_options options = {.fakes = &r->fakes,
                                                 .basic = true,
                                                 .one_thread =
                                                     qdqi_attempt_runs_fast(a),
                                                 .unpacked = qdqi_attempt_is_large(a)};
    const char **names = qdqi_arena_array(a->scratch, s->n_taps, sizeof *names);
    struct qdqi_session *session = NULL;
    for (size_t i = 0; names && i < s->n_taps; i++)
        names[i] = s->taps[i].name;
    const Onnx__ModelProto *part =
        names ? qdqi_taps(r->proto, names, s->n_taps, a->scratch) : NULL;
    if (!part)
        return qdqi_no_memory(err);
    enum qdq_code code =
        qdqi_session_open(r->runtime, a->model, part, &options, &session, err);
    if (!code)
        code = run_samples(r, s, session, err);
    qdqi_session_close(&session);
    return code;
}

/* --- rounding --------------------------------------------------------------------- */

/* Rounds the layers of a step, and makes their FakeQuants again. */
static enum qdq_code
round_step(struct rebuilding *r, const struct step *s, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; i < s->n && !code; i++) {
        const struct qdqi_rebuilt *row = &s->rows[i];
        const char *why = "tensors of different shapes would be compared";
        if (row->fits)
            code = qdqi_rebuild_layer(r->a, row, &why, err);
        if (!code && why)
            code = qdqi_warn_kept(r->a, row->layer, 1, why, err);
        r->is_rounded[row->layer] = true;
        for (size_t k = 0; k < r->fakes.n && !code; k++)
            if (r->places[k].layer == row->layer)
                code = make_fake(r, k, err);
    }
    return code;
}

static enum qdq_code
do_step(struct rebuilding *r, struct step *s, struct qdq_error *err)
{
    enum qdq_code code = begin_step(r, s, err);
    if (!code)
        code = run_step(r, s, err);
    if (!code)
        code = round_step(r, s, err);
    end_step(s);
    return code;
}

static enum qdq_code
do_steps(struct rebuilding *r, struct qdq_error *err)
{
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0, n; i < r->layers.n && !code; i += n) {
        struct qdqi_rebuilt *rows = &r->layers.rows[i];
        for (n = 1; i + n < r->layers.n && rows[n].step == rows->step; n++)
            ;
        struct step s = {.rows = rows, .n = n};
        code = do_step(r, &s, err);
    }
    return code;
}

/* Counts the samples of all runs. */
static enum qdq_code
count_samples(struct rebuilding *r, struct qdq_error *err)
{
    const struct qdqi_attempt *a = r->a;
    const int64_t asked = a->spec->calibration.max_samples;
    struct qdqi_feed *feed = NULL;
    r->options = (struct qdqi_feed_options){
        .batch = qdqi_attempt_batch(a),
        .max_samples = asked > 0 && asked < SAMPLES ? asked : SAMPLES};
    enum qdq_code code =
        qdqi_feed_open(&a->fixed, a->context->dataset, &r->options, &feed, err);
    if (!code)
        r->total = 2 * r->layers.steps * (uint64_t)qdqi_feed_samples(feed);
    qdqi_feed_close(&feed);
    return code;
}

enum qdq_code
qdqi_reconstruct(struct qdqi_attempt *a, struct qdq_error *err)
{
    struct rebuilding r = {.a = a,
                           .tasks = {.executor = a->context->engine->executor,
                                     .threads = a->context->engine->threads}};
    enum qdq_code code = qdqi_rebuilt_find(a, &r.layers, err);
    if (code || r.layers.n == 0)
        return code;
    a->effort.threads = qdqi_context_threads(a->context);
    code = qdqi_engine_runtime(a->context->engine, &r.runtime, err);
    if (!code)
        code = count_samples(&r, err);
    if (!code && r.total > 0)
        code = open_model(&r, err);
    if (!code && r.total > 0)
        code = do_steps(&r, err);
    return code ? code : qdqi_choose_biases(a, &a->scales, err);
}
