/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/whatif/whatif.h"

#include "plan/gates/judged.h"
#include "stages/evaluate/metrics.h"
#include "stages/attempt/leave.h"
#include "stages/scale/fake_weight.h"
#include "transform/rewrite/insert.h"
#include "run/operators/device_memory.h"
#include "stages/whatif/internals.h"

#include <math.h>
#include <string.h>

enum {
    MAX_PARTS = 12,    /* largest number of sessions */
    LAYERS_A_PART = 2, /* smallest number of layers in a part */
};

/* --- opening -------------------------------------------------------------- */

/* Makes a row for each quantized layer. The places of a layer are neighbours in
   `places`. */
static void
find_layers(struct qdqi_whatif *w, const struct qdqi_fake_place *places)
{
    const struct qdq_plan_view *plan = &w->attempt->plan->view;
    size_t slot = 0;
    for (size_t i = 0; i < plan->n_layers; i++) {
        if (!qdqi_whatif_is_quantized(&plan->layers[i]))
            continue;
        struct qdqi_whatif_row *row = &w->layers[w->n_layers++];
        *row =
            (struct qdqi_whatif_row){.layer = &plan->layers[i], .fakes = w->fakes.rows};
        row->fakes += slot;
        for (; slot < w->fakes.n && places[slot].layer == i; slot++)
            row->n_fakes++;
    }
}

static struct qdqi_fake
fake_bias(const struct qdqi_shifted_bias *bias)
{
    return (struct qdqi_fake){.channels = 1, .inner = 1, .chosen = bias->values};
}

/* Makes the FakeQuant of a bias that is stored as integers. */
static enum qdq_code
fake_integers(const struct qdqi_whatif *w, const struct qdqi_bias *bias,
              struct qdqi_fake *ret, struct qdq_error *err)
{
    float *values = qdqi_arena_array(w->attempt->scratch, bias->n + 1, sizeof *values);
    if (!values)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < bias->n; i++)
        values[i] = (float)bias->integers[i] * bias->scales[bias->per_channel ? i : 0];
    *ret = (struct qdqi_fake){.channels = 1, .inner = 1, .chosen = values};
    return QDQ_OK;
}

static struct qdqi_fake
fake_activation(const struct qdqi_whatif *w, size_t i)
{
    return (struct qdqi_fake){.format = w->attempt->plan->activations[i].format,
                              .scales = &w->scales[i],
                              .zero_points = &w->zero_points[i],
                              .channels = 1,
                              .inner = 1};
}

static enum qdq_code
make_fake(struct qdqi_whatif *w, const struct qdqi_fake_place *dev,
          struct qdqi_fake *ret, struct qdq_error *err)
{
    const struct qdqi_scales *scales = &w->attempt->scales;
    size_t k = dev->planned;
    switch (dev->kind) {
    case QDQI_FAKE_WEIGHT:
        return qdqi_fake_weight(w->attempt, k, ret, err);
    case QDQI_FAKE_BIAS:
        *ret = fake_bias(&scales->shifted[k]);
        return QDQ_OK;
    case QDQI_FAKE_INT_BIAS:
        return fake_integers(w, &scales->biases[k], ret, err);
    default:
        *ret = fake_activation(w, k);
        return QDQ_OK;
    }
}

static enum qdq_code
note_places(struct qdqi_whatif *w, const struct qdqi_fake_place *places,
            struct qdq_error *err)
{
    const struct qdq_plan *plan = w->attempt->plan;
    size_t n = w->attempt->model->graph.n_nodes;
    size_t *layer_of = qdqi_arena_array(w->attempt->scratch, n, sizeof *layer_of);
    if (!layer_of)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++)
        layer_of[i] = QDQI_NONE;
    for (size_t i = 0; i < plan->view.n_layers; i++)
        layer_of[plan->view.layers[i].node] = i;
    for (size_t i = 0; i < plan->view.n_tensors; i++)
        w->shares_pairs = w->shares_pairs || plan->activations[i].everywhere;
    w->places = places;
    w->layer_of = layer_of;
    return QDQ_OK;
}

static enum qdq_code
make_fakes(struct qdqi_whatif *w, const struct qdqi_fake_place *places, size_t n,
           struct qdq_error *err)
{
    const struct qdqi_scales *scales = &w->attempt->scales;
    struct qdqi_arena *arena = w->attempt->scratch;
    const struct qdq_plan *plan = w->attempt->plan;
    w->fakes.rows = qdqi_arena_array(arena, n, sizeof *w->fakes.rows);
    w->fakes.n = n;
    w->scales = qdqi_arena_array(arena, plan->view.n_tensors, sizeof *w->scales);
    w->zero_points =
        qdqi_arena_array(arena, plan->view.n_tensors, sizeof *w->zero_points);
    w->layers = qdqi_arena_array(arena, plan->view.n_quantized, sizeof *w->layers);
    if (!w->fakes.rows || !w->scales || !w->zero_points || !w->layers)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < plan->view.n_tensors; i++)
        qdqi_whatif_scale(w, i, scales->activations[i].scales[0],
                          qdqi_zero_point(&scales->activations[i], 0));
    enum qdq_code code =
        qdqi_metrics_init(w->attempt->model, false, arena, &w->metrics, err);
    for (size_t i = 0; !code && i < n; i++)
        code = make_fake(w, &places[i], &w->fakes.rows[i], err);
    if (code)
        return code;
    find_layers(w, places);
    return note_places(w, places, err);
}

/* Returns the number of parts. On a device it is one: tensors passed between parts
   would be copied to the host and back. */
static size_t
count_parts(const struct qdqi_whatif *w)
{
    const struct qdqi_device *dev = w->attempt->context->dev;
    size_t n = w->n_layers / LAYERS_A_PART;
    if ((dev && dev->runs_models) || n == 0)
        return 1;
    return n < MAX_PARTS ? n : MAX_PARTS;
}

static enum qdq_code
open_whatif(struct qdqi_whatif *w, struct qdq_error *err)
{
    const struct qdqi_attempt *a = w->attempt;
    struct qdqi_fake_place *places;
    const Onnx__ModelProto *proto;
    size_t n;
    enum qdq_code code;
    if ((code = qdqi_insert_fakes(a->model, a->plan, &a->scales, a->scratch, &places,
                                  &n, &proto, err)) ||
        (code = make_fakes(w, places, n, err)))
        return code;
    if ((code = qdqi_parts_split(a->model, proto, count_parts(w), &w->fakes, a->scratch,
                                 &w->parts, err)))
        return code;
    return qdqi_whatif_open_sessions(w, err);
}

enum qdq_code
qdqi_whatif_get(struct qdqi_whatif **whatif, const struct qdqi_attempt *a,
                struct qdq_error *err)
{
    if (*whatif)
        return QDQ_OK;
    *whatif = qdqi_arena_alloc(a->scratch, sizeof **whatif);
    if (!*whatif)
        return qdqi_no_memory(err);
    (*whatif)->attempt = a;
    return open_whatif(*whatif, err);
}

void
qdqi_whatif_keep_at_most(struct qdqi_whatif *w, size_t bytes)
{
    w->parts.most_kept = bytes;
}

void
qdqi_whatif_close(struct qdqi_whatif **whatif, struct qdqi_result *result)
{
    struct qdqi_whatif *w = *whatif;
    if (!w)
        return;
    result->report->what_ifs += w->runs;
    qdqi_replay_close(&w->replay);
    qdqi_parts_close(&w->parts);
    *whatif = NULL; /* its memory belongs to the arena */
}

enum qdq_code
qdqi_whatif_halve(struct qdqi_whatif **whatif, struct qdqi_attempt *a,
                  struct qdqi_result *result, enum qdq_code code, struct qdq_error *err)
{
    bool ran = *whatif && (*whatif)->runs > 0;
    qdqi_whatif_close(whatif, result);
    return ran ? qdqi_attempt_halve(a, code, err) : code;
}

/* --- running over the samples --------------------------------------------- */

/* Adds one run to the metrics. An output whose type or size differs from that of the
   float model gets the worst score. */
static void
add_to_metrics(struct qdqi_whatif *w, const struct qdqi_replay *t,
               const struct qdqi_replay_batch *batch, const struct qdqi_output *outputs)
{
    for (size_t i = 0; i < t->n_outputs; i++) {
        const struct qdqi_float_output *f = &batch->outputs[i];
        if (!t->compared[i])
            continue;
        const struct qdqi_output_shape shape = {f->shape, f->rank};
        const struct qdqi_output kept = {f->dtype, f->rank, f->shape, f->n, f->data};
        if (qdqi_choices_add(&w->metrics[i], &kept, &outputs[i], batch->samples))
            continue;
        if (f->dtype == QDQI_FLOAT32 && outputs[i].dtype == QDQI_FLOAT32 &&
            outputs[i].n == f->n)
            qdqi_metrics_update(&w->metrics[i], f->data, outputs[i].data, f->n,
                                batch->samples, &shape);
        else
            w->metrics[i].noise = NAN;
    }
}

static struct qdqi_score
worst_score(const struct qdqi_whatif *w, const struct qdqi_replay *t)
{
    struct qdqi_score score = {INFINITY, NAN};
    for (size_t i = 0; i < t->n_outputs; i++) {
        struct qdq_output_report r;
        if (!t->compared[i])
            continue;
        qdqi_metrics_finish(&w->metrics[i], NULL, &r);
        const double db = qdqi_judged_sqnr(&r);
        if (!(db >= score.sqnr_db))
            score.sqnr_db = isnan(db) ? -INFINITY : db;
        score.top1_agreement = fmin(score.top1_agreement, r.top1_agreement);
    }
    return score;
}

enum qdq_code
qdqi_whatif_run(struct qdqi_whatif *w, struct qdqi_replay *t, int64_t samples,
                bool settled, struct qdqi_score *ret, struct qdq_error *err)
{
    const struct qdqi_input *inputs;
    const struct qdqi_output *outputs;
    struct qdqi_replay_batch *batch;
    size_t n;
    enum qdq_code code = qdqi_replay_rewind(t, err);
    for (size_t i = 0; i < t->n_outputs; i++)
        qdqi_metrics_clear(&w->metrics[i]);
    for (int64_t done = 0; !code && done < samples; done += batch->samples) {
        if ((code = qdqi_replay_next(t, &batch, &inputs, err)) || !batch)
            break;
        if (!(code = qdqi_whatif_step(w, &batch->memo, settled, inputs, batch->samples,
                                      &outputs, &n, err)))
            add_to_metrics(w, t, batch, outputs);
    }
    if (!code)
        *ret = worst_score(w, t);
    return code;
}
