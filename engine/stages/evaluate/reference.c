/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/evaluate/reference.h"

#include "stages/attempt/float_outputs.h"
#include "stages/evaluate/choices.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_KEPT_BYTES = 256 << 20 }; /* bytes of the outputs that are kept */

static enum qdq_code
keep(struct qdqi_reference *r, const struct qdqi_output *outputs, size_t n,
     struct qdq_error *err)
{
    struct qdqi_kept_output *to = r->outputs + r->n_runs * r->n_outputs;
    for (size_t i = 0; i < n && i < r->n_outputs; i++) {
        const struct qdqi_output *from = &outputs[i];
        to[i] = (struct qdqi_kept_output){
            .dtype = from->dtype,
            .n = from->n,
            .rank = from->rank,
            .shape = qdqi_arena_copy(r->arena, from->shape, from->rank,
                                     sizeof *from->shape)};
        if (!to[i].shape)
            return qdqi_no_memory(err);
        if (from->dtype != QDQI_FLOAT32 && !qdqi_is_choice(from->dtype))
            continue;
        const size_t size = from->n * qdqi_dtype_size((int)from->dtype);
        to[i].data = malloc(size + 1);
        if (!to[i].data)
            return qdqi_no_memory(err);
        memcpy(to[i].data, from->data, size);
        r->bytes += size;
    }
    return QDQ_OK;
}

/* Returns whether another run may be kept. */
static bool
has_room(const struct qdqi_reference *r, const struct qdqi_reference_runs *runs)
{
    const size_t most = r->samples < runs->needed || runs->most > MOST_KEPT_BYTES
                            ? MOST_KEPT_BYTES
                            : runs->most;
    return r->n_runs == 0 || r->bytes + r->bytes / r->n_runs <= most;
}

/* The float model, opened where the job has not all of its outputs already. */
struct float_model {
    const struct qdqi_attempt *attempt;
    struct qdqi_session *session;
};

static enum qdq_code
open_session(struct float_model *m, struct qdq_error *err)
{
    const struct qdqi_attempt *a = m->attempt;
    const struct qdqi_session_options options = {.one_thread =
                                                     qdqi_attempt_runs_fast(a)};
    struct qdqi_runtime *runtime = NULL;
    enum qdq_code code = qdqi_engine_runtime(a->context->engine, &runtime, err);
    return code ? code
                : qdqi_session_open(runtime, a->context->original,
                                    a->context->original->proto, &options, &m->session,
                                    err);
}

/* Runs the float model, and keeps its outputs for other stages. */
static enum qdq_code
run_float(struct float_model *m, const struct qdqi_input *inputs, int64_t first,
          int64_t samples, const struct qdqi_output **ret, size_t *ret_n,
          struct qdq_error *err)
{
    struct qdqi_float_outputs *kept = m->attempt->context->float_outputs;
    enum qdq_code code = m->session ? QDQ_OK : open_session(m, err);
    if (code ||
        (code = qdqi_session_run(m->session, inputs, m->attempt->model->info.n_inputs,
                                 ret, ret_n, err)))
        return code;
    struct qdqi_float_run run =
        qdqi_float_run_copy(first, samples, *ret, *ret_n, kept->most);
    qdqi_float_outputs_put(kept, &run);
    return QDQ_OK;
}

/* Makes one run of *ret_samples samples; 0: there was none left. */
static enum qdq_code
run_once(struct qdqi_reference *r, struct float_model *m, struct qdqi_feed *feed,
         int64_t *ret_samples, struct qdq_error *err)
{
    const struct qdqi_float_outputs *kept = m->attempt->context->float_outputs;
    const struct qdqi_input *inputs;
    size_t n = kept->n_outputs;
    enum qdq_code code = qdqi_feed_next(feed, &inputs, ret_samples, err);
    if (code || *ret_samples == 0)
        return code;
    const int64_t first = qdqi_feed_run_first(feed);
    const struct qdqi_output *outputs =
        qdqi_float_outputs_of(kept, first, *ret_samples);
    if (!outputs)
        code = run_float(m, inputs, first, *ret_samples, &outputs, &n, err);
    if (code)
        return qdqi_feed_name_samples(feed, code, err);
    if ((code = keep(r, outputs, n, err)))
        return code;
    r->run_samples[r->n_runs++] = *ret_samples;
    r->samples += *ret_samples;
    return QDQ_OK;
}

static enum qdq_code
run_all(struct qdqi_reference *r, const struct qdqi_attempt *a,
        const struct qdqi_reference_runs *runs, struct qdqi_feed *feed,
        struct qdq_error *err)
{
    struct float_model model = {.attempt = a};
    enum qdq_code code = QDQ_OK;
    while (!code && !r->is_whole && has_room(r, runs)) {
        int64_t samples = 0;
        code = run_once(r, &model, feed, &samples, err);
        r->is_whole = !code && samples == 0;
        if (!code && samples > 0 && runs->ran)
            code = runs->ran(runs->arg, samples, err);
    }
    qdqi_session_close(&model.session);
    return code;
}

static enum qdq_code
fill(struct qdqi_reference *r, const struct qdqi_attempt *a,
     const struct qdqi_reference_runs *runs, struct qdq_error *err)
{
    struct qdqi_feed *feed = NULL;
    enum qdq_code code =
        qdqi_feed_open(&a->fixed, a->context->dataset, &runs->samples, &feed, err);
    if (code)
        return code;
    const size_t n = (size_t)qdqi_feed_runs(feed) + 1;
    r->outputs = qdqi_arena_array(r->arena, n * r->n_outputs + 1, sizeof *r->outputs);
    r->run_samples = qdqi_arena_array(r->arena, n, sizeof *r->run_samples);
    code = r->outputs && r->run_samples ? run_all(r, a, runs, feed, err)
                                        : qdqi_no_memory(err);
    qdqi_feed_close(&feed);
    return code;
}

enum qdq_code
qdqi_reference_open(const struct qdqi_attempt *a,
                    const struct qdqi_reference_runs *runs, struct qdqi_reference **ret,
                    struct qdq_error *err)
{
    struct qdqi_reference *r = calloc(1, sizeof *r);
    if (!r)
        return qdqi_no_memory(err);
    *r = (struct qdqi_reference){.options = runs->samples,
                                 .n_outputs = a->model->info.n_outputs,
                                 .arena = qdqi_arena_new()};
    enum qdq_code code = r->arena ? fill(r, a, runs, err) : qdqi_no_memory(err);
    if (code)
        qdqi_reference_close(&r);
    else
        *ret = r;
    return code;
}

void
qdqi_reference_close(struct qdqi_reference **reference)
{
    struct qdqi_reference *r = *reference;
    if (!r)
        return;
    /* A run of which only a part could be kept is behind the last one. */
    for (size_t i = 0; r->outputs && i < (r->n_runs + 1) * r->n_outputs; i++)
        free(r->outputs[i].data);
    qdqi_arena_free(&r->arena);
    free(r);
    *reference = NULL;
}

const struct qdqi_kept_output *
qdqi_reference_run(const struct qdqi_reference *r, size_t run)
{
    return r->outputs + run * r->n_outputs;
}
