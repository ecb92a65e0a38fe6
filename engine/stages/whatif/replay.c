/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples that are run repeatedly. The outputs of the float model are kept. The inputs
 * are kept, too, if they are few, so that they are decompressed and converted only
 * once; the inputs of a larger set are read again each time.
 */
#include "config.h"
#include "stages/whatif/internals.h"

#include "stages/evaluate/sample_choice.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_KEPT = 256 << 20 }; /* bytes, for the inputs and again for the outputs */

static void *
copy_bytes(const void *data, size_t n)
{
    void *copy = malloc(n + !n);
    if (copy && n)
        memcpy(copy, data, n);
    return copy;
}

/* --- inputs --------------------------------------------------------------- */

static void
drop_inputs(struct qdqi_replay *t)
{
    for (size_t i = 0; i < t->n_runs; i++) {
        for (size_t k = 0; t->runs[i].inputs && k < t->w->attempt->model->info.n_inputs;
             k++)
            free((void *)(uintptr_t)t->runs[i].inputs[k].data);
        t->runs[i].inputs = NULL;
    }
    t->keeps_inputs = false;
}

static enum qdq_code
keep_input(struct qdqi_replay *t, const struct qdqi_input *from, const char *name,
           struct qdqi_input *to, struct qdq_error *err)
{
    int64_t *shape = qdqi_arena_array(t->arena, from->rank, sizeof *shape);
    void *data = copy_bytes(from->data, from->size);
    *to = *from;
    to->name = name;
    to->shape = shape;
    to->data = data;
    if (!shape || !data)
        return qdqi_no_memory(err);
    memcpy(shape, from->shape, from->rank * sizeof *shape);
    return QDQ_OK;
}

static enum qdq_code
keep_inputs(struct qdqi_replay *t, struct qdqi_replay_batch *batch,
            const struct qdqi_input *inputs, struct qdq_error *err)
{
    const struct qdq_model_info *info = &t->w->attempt->model->info;
    for (size_t i = 0; i < info->n_inputs; i++)
        t->input_bytes += inputs[i].size;
    if (t->keeps_inputs && t->input_bytes > MAX_KEPT)
        drop_inputs(t);
    if (!t->keeps_inputs)
        return QDQ_OK;
    batch->inputs = qdqi_arena_array(t->arena, info->n_inputs, sizeof *batch->inputs);
    if (!batch->inputs)
        return qdqi_no_memory(err);
    enum qdq_code code = QDQ_OK;
    for (size_t i = 0; !code && i < info->n_inputs; i++)
        code = keep_input(t, &inputs[i], info->inputs[i].name, &batch->inputs[i], err);
    return code;
}

/* --- outputs -------------------------------------------------------------- */

static enum qdq_code
keep_output(struct qdqi_replay *t, const struct qdqi_output *from,
            struct qdqi_float_output *to, struct qdq_error *err)
{
    const size_t size = from->n * qdqi_dtype_size((int)from->dtype);
    to->dtype = from->dtype;
    to->n = from->n;
    to->rank = from->rank;
    to->shape = qdqi_arena_copy(t->arena, from->shape, from->rank, sizeof *from->shape);
    to->data = copy_bytes(from->data, size);
    t->output_bytes += size;
    return to->data && to->shape ? QDQ_OK : qdqi_no_memory(err);
}

static enum qdq_code
keep_outputs(struct qdqi_replay *t, struct qdqi_replay_batch *batch,
             const struct qdqi_output *outputs, struct qdq_error *err)
{
    batch->outputs = qdqi_arena_array(t->arena, t->n_outputs, sizeof *batch->outputs);
    enum qdq_code code = batch->outputs ? QDQ_OK : qdqi_no_memory(err);
    for (size_t i = 0; !code && i < t->n_outputs; i++) {
        if (outputs[i].dtype == QDQI_FLOAT32 || qdqi_is_choice(outputs[i].dtype))
            code = keep_output(t, &outputs[i], &batch->outputs[i], err);
        else
            t->compared[i] = false;
    }
    return code;
}

/* Returns whether the outputs of one more run of average size would exceed MAX_KEPT. */
static bool
is_full(const struct qdqi_replay *t)
{
    return t->n_runs > 0 && t->output_bytes + t->output_bytes / t->n_runs > MAX_KEPT;
}

/* --- opening -------------------------------------------------------------- */

static enum qdq_code
run_batch(struct qdqi_replay *t, const struct qdqi_input *inputs, int64_t samples,
          struct qdq_error *err)
{
    struct qdqi_replay_batch *batch = &t->runs[t->n_runs++];
    const struct qdqi_output *outputs;
    size_t n;
    batch->samples = samples;
    t->samples += samples;
    enum qdq_code code = keep_inputs(t, batch, inputs, err);
    if (!code)
        code = qdqi_whatif_step(t->w, &batch->memo, true, inputs, samples, &outputs, &n,
                                err);
    return code ? qdqi_feed_name_samples(t->feed, code, err)
                : keep_outputs(t, batch, outputs, err);
}

static enum qdq_code
run_batches(struct qdqi_replay *t, struct qdq_error *err)
{
    const struct qdqi_attempt *a = t->w->attempt;
    const struct qdqi_input *inputs;
    int64_t samples, wanted = qdqi_feed_samples(t->feed);
    enum qdq_code code;
    for (;;) {
        if ((code = qdqi_feed_next(t->feed, &inputs, &samples, err)) || samples == 0)
            return code;
        if (is_full(t))
            break;
        if ((code = run_batch(t, inputs, samples, err)))
            return code;
        if (t->n_runs == 1)
            qdqi_parts_expect(&t->w->parts, &t->runs[0].memo,
                              (size_t)qdqi_feed_runs(t->feed));
    }
    return qdqi_attempt_warn(
        a, err, "fewer_samples", NULL,
        "what-ifs are judged by %lld samples, not by %lld: the outputs of "
        "more would take more than %d MiB",
        (long long)t->samples, (long long)wanted, MAX_KEPT >> 20);
}

static enum qdq_code
check_compared(const struct qdqi_replay *t, const char *pointer, struct qdq_error *err)
{
    for (size_t i = 0; i < t->n_outputs; i++)
        if (t->compared[i])
            return QDQ_OK;
    return qdq_error_set(err, QDQ_INVALID_SPEC, QDQ_AT_POINTER, pointer,
                         "this compares outputs of floating-point numbers, integers "
                         "or Booleans, and the model has none");
}

static enum qdq_code
open_replay(struct qdqi_replay *t, const char *pointer, struct qdq_error *err)
{
    const struct qdqi_attempt *a = t->w->attempt;
    enum qdq_code code =
        qdqi_feed_open(&a->fixed, a->context->dataset, &t->options, &t->feed, err);
    if (code)
        return code;
    t->n_outputs = a->model->info.n_outputs;
    t->compared = qdqi_arena_array(t->arena, t->n_outputs, sizeof *t->compared);
    t->runs =
        qdqi_arena_array(t->arena, (size_t)qdqi_feed_runs(t->feed), sizeof *t->runs);
    if (!t->compared || !t->runs)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < t->n_outputs; i++)
        t->compared[i] = true;
    qdqi_whatif_switch_off(t->w);
    code = run_batches(t, err);
    return code ? code : check_compared(t, pointer, err);
}

enum qdq_code
qdqi_replay_open(struct qdqi_whatif *w, const struct qdqi_feed_options *options,
                 const char *pointer, struct qdqi_replay **ret, struct qdq_error *err)
{
    struct qdqi_replay *t = calloc(1, sizeof *t);
    if (!t)
        return qdqi_no_memory(err);
    t->w = w;
    t->options = *options;
    t->options.batch = qdqi_attempt_batch(w->attempt);
    t->keeps_inputs = true;
    t->arena = qdqi_arena_new();
    enum qdq_code code = t->arena ? open_replay(t, pointer, err) : qdqi_no_memory(err);
    if (code)
        qdqi_replay_close(&t);
    else
        *ret = t;
    return code;
}

void
qdqi_replay_close(struct qdqi_replay **replay)
{
    if (!replay || !*replay)
        return;
    struct qdqi_replay *t = *replay;
    drop_inputs(t);
    for (size_t i = 0; i < t->n_runs; i++) {
        for (size_t k = 0; t->runs[i].outputs && k < t->n_outputs; k++)
            free(t->runs[i].outputs[k].data);
        qdqi_memo_clear(&t->w->parts, &t->runs[i].memo);
    }
    qdqi_feed_close(&t->feed);
    qdqi_arena_free(&t->arena);
    free(t);
    *replay = NULL;
}

int64_t
qdqi_replay_samples(const struct qdqi_replay *t)
{
    return t->samples;
}

struct qdqi_feed_options
qdqi_replay_options(const struct qdqi_replay *t)
{
    return t->options;
}

static int64_t
larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Chooses samples of the evaluation: as many as sensitivity or search asks for,
   whichever is more. */
static enum qdq_code
choose_samples(const struct qdqi_attempt *a, struct qdqi_feed_options *options,
               struct qdq_error *err)
{
    const struct qdq_spec *spec = a->spec;
    int64_t wanted = larger(spec->sensitivity_samples,
                            qdq_spec_searches(spec) ? spec->search.samples : 0);
    struct qdqi_feed *feed = NULL;
    enum qdq_code code =
        qdqi_feed_open(&a->fixed, a->context->dataset, options, &feed, err);
    if (code)
        return code;
    qdqi_choose_samples(a, qdqi_feed_available(feed), options);
    qdqi_feed_close(&feed);
    if (options->max_samples == 0 || options->max_samples > wanted)
        options->max_samples = wanted;
    return QDQ_OK;
}

enum qdq_code
qdqi_replay_get(struct qdqi_whatif *w, const char *pointer, struct qdqi_replay **ret,
                struct qdq_error *err)
{
    struct qdqi_feed_options options = {.batch = qdqi_attempt_batch(w->attempt)};
    enum qdq_code code = QDQ_OK;
    if (!w->replay && !(code = choose_samples(w->attempt, &options, err)))
        code = qdqi_replay_open(w, &options, pointer, &w->replay, err);
    if (!code)
        *ret = w->replay;
    return code;
}

/* --- running again ------------------------------------------------------- */

enum qdq_code
qdqi_replay_rewind(struct qdqi_replay *t, struct qdq_error *err)
{
    t->next = 0;
    qdqi_feed_close(&t->feed);
    if (t->keeps_inputs)
        return QDQ_OK;
    const struct qdqi_attempt *a = t->w->attempt;
    return qdqi_feed_open(&a->fixed, a->context->dataset, &t->options, &t->feed, err);
}

enum qdq_code
qdqi_replay_next(struct qdqi_replay *t, struct qdqi_replay_batch **ret,
                 const struct qdqi_input **ret_inputs, struct qdq_error *err)
{
    int64_t samples;
    *ret = NULL;
    if (t->next == t->n_runs)
        return QDQ_OK;
    struct qdqi_replay_batch *batch = &t->runs[t->next];
    enum qdq_code code = QDQ_OK;
    if (batch->inputs)
        *ret_inputs = batch->inputs;
    else
        code = qdqi_feed_next(t->feed, ret_inputs, &samples, err);
    if (code)
        return code;
    t->next++;
    *ret = batch;
    return QDQ_OK;
}
