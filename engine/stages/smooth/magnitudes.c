/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stages/smooth/magnitudes.h"

#include "stages/attempt/observations_file.h"
#include "transform/rewrite/insert.h"

#include <string.h>

struct observing {
    struct qdqi_attempt *attempt;
    struct qdqi_session *session;
    struct qdqi_feed *feed;
    struct qdqi_all_peaks peaks;
    const struct qdqi_tensor **tensors; /* by slot */
    float **saved;                      /* by slot: the peaks before a run */
};

/* --- runs ------------------------------------------------------------------ */

static void
save(const struct observing *o)
{
    for (size_t i = 0; i < o->peaks.n; i++)
        memcpy(o->saved[i], o->peaks.rows[i].largest,
               o->peaks.rows[i].channels * sizeof(float));
}

static void
restore(const struct observing *o)
{
    for (size_t i = 0; i < o->peaks.n; i++)
        memcpy(o->peaks.rows[i].largest, o->saved[i],
               o->peaks.rows[i].channels * sizeof(float));
}

/* Runs the model. *ret_rejected: the samples are to be left out, and nothing of them is
   left in the peaks. */
static enum qdq_code
run(struct observing *o, const struct qdqi_input *inputs, bool *ret_rejected,
    struct qdq_error *err)
{
    const struct qdq_calibration_spec *spec = &o->attempt->spec->calibration;
    const struct qdqi_output *outputs;
    size_t n_outputs;
    o->peaks.is_nonfinite = false;
    save(o);
    o->attempt->calibrated.inferences++;
    enum qdq_code code =
        qdqi_session_run(o->session, inputs, o->attempt->model->info.n_inputs, &outputs,
                         &n_outputs, err);
    *ret_rejected = o->peaks.is_nonfinite && spec->on_nonfinite == QDQ_NONFINITE_SKIP;
    if (*ret_rejected)
        restore(o);
    return code;
}

/* Runs a batch; where a sample of it is not finite, the others one by one. */
static enum qdq_code
run_batch(struct observing *o, const struct qdqi_input *inputs, int64_t samples,
          struct qdq_error *err)
{
    bool rejected;
    enum qdq_code code = run(o, inputs, &rejected, err);
    if (code || !rejected || samples < 2 || !qdqi_feed_sample(o->feed, 0))
        return qdqi_feed_name_samples(o->feed, code, err);
    for (int64_t i = 0; i < samples && !code; i++)
        code = run(o, qdqi_feed_sample(o->feed, i), &rejected, err);
    return code;
}

static enum qdq_code
run_samples(struct observing *o, struct qdq_error *err)
{
    int64_t done = 0, samples;
    for (;; done += samples) {
        const struct qdqi_input *inputs;
        enum qdq_code code =
            qdqi_attempt_progress(o->attempt, QDQ_STAGE_SMOOTH, (uint64_t)done,
                                  (uint64_t)qdqi_feed_samples(o->feed), err);
        if (code || (code = qdqi_feed_next(o->feed, &inputs, &samples, err)) ||
            samples == 0 || (code = run_batch(o, inputs, samples, err)))
            return code;
    }
}

/* Opens a session of the model with a Peak node at each activation, and runs it. */
static enum qdq_code
run_model(struct observing *o, struct qdq_error *err)
{
    struct qdqi_attempt *a = o->attempt;
    struct qdqi_session_options options = {.peaks = &o->peaks};
    struct qdqi_runtime *runtime;
    const Onnx__ModelProto *proto;
    enum qdq_code code = qdqi_engine_runtime(a->context->engine, &runtime, err);
    if (!code)
        code = qdqi_insert_sinks(a->model, QDQI_PEAK, o->tensors, o->peaks.n,
                                 a->scratch, &proto, err);
    if (!code)
        code = qdqi_session_open(runtime, a->model, proto, &options, &o->session, err);
    if (!code)
        code = run_samples(o, err);
    qdqi_session_close(&o->session);
    return code;
}

/* --- slots ----------------------------------------------------------------- */

/* Gives each activation that may be smoothed a slot. */
static enum qdq_code
make_slots(struct observing *o, const struct qdqi_chains *chains,
           struct qdqi_peaks *ret, struct qdq_error *err)
{
    const size_t n = chains->n;
    struct qdqi_arena *arena = o->attempt->scratch;
    o->tensors = qdqi_arena_array(arena, n, sizeof *o->tensors);
    o->peaks.rows = qdqi_arena_array(arena, n, sizeof *o->peaks.rows);
    o->saved = qdqi_arena_array(arena, n, sizeof *o->saved);
    if (!o->tensors || !o->peaks.rows || !o->saved)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const struct qdqi_chain *chain = &chains->all[i];
        const size_t channels = chain->channels * chain->block, slot = o->peaks.n;
        if (chain->reason)
            continue;
        ret[i] = (struct qdqi_peaks){
            channels, chain->from_end,
            qdqi_arena_array(arena, channels, sizeof *ret->largest)};
        o->saved[slot] = qdqi_arena_array(arena, channels, sizeof **o->saved);
        if (!ret[i].largest || !o->saved[slot])
            return qdqi_no_memory(err);
        o->tensors[slot] = chain->at;
        o->peaks.rows[o->peaks.n++] = ret[i];
    }
    return QDQ_OK;
}

/* --- kept observations ------------------------------------------------------ */

/* Fills in the magnitudes of an earlier job. *ret: all of them are kept. */
static enum qdq_code
restore_kept(const struct observing *o, const char *identity,
             struct qdqi_observations *earlier, bool *ret, struct qdq_error *err)
{
    enum qdq_code code =
        qdqi_observations_read(qdqi_observations_file(o->attempt), identity,
                               o->attempt->scratch, earlier, err);
    *ret = !code;
    for (size_t i = 0; *ret && i < o->peaks.n; i++)
        *ret = qdqi_observations_restore_peaks(earlier, o->tensors[i]->name,
                                               o->peaks.rows[i].channels,
                                               o->peaks.rows[i].largest);
    if (!*ret)
        for (size_t i = 0; i < o->peaks.n; i++)
            memset(o->peaks.rows[i].largest, 0,
                   o->peaks.rows[i].channels * sizeof(float));
    return code;
}

/* Lists the magnitudes for the file. */
static enum qdq_code
list_kept(const struct observing *o, struct qdq_error *err)
{
    struct qdqi_kept_peaks *all =
        qdqi_arena_array(o->attempt->scratch, o->peaks.n, sizeof *all);
    if (!all)
        return qdqi_no_memory(err);
    for (size_t i = 0; i < o->peaks.n; i++)
        all[i] = (struct qdqi_kept_peaks){
            o->tensors[i]->name, o->peaks.rows[i].channels, o->peaks.rows[i].largest,
            i + 1 < o->peaks.n ? &all[i + 1] : NULL};
    o->attempt->calibrated.peaks = all;
    return QDQ_OK;
}

/* Runs the model, unless an earlier job kept the magnitudes, and keeps them. */
static enum qdq_code
run_or_restore(struct observing *o, struct qdq_error *err)
{
    struct qdqi_observations earlier;
    const char *identity = qdqi_observations_file_identity(o->attempt);
    bool are_kept;
    if (!identity)
        return qdqi_no_memory(err);
    enum qdq_code code = restore_kept(o, identity, &earlier, &are_kept, err);
    if (!code && !are_kept)
        code = run_model(o, err);
    if (!code)
        code = list_kept(o, err);
    if (!code && !are_kept) {
        const struct qdqi_observed first = {.samples = qdqi_feed_samples(o->feed)};
        const struct qdqi_observed_rows rows = {.peaks = o->attempt->calibrated.peaks};
        code = qdqi_observations_file_write(o->attempt, identity,
                                            earlier.bytes ? &earlier.all : &first,
                                            &earlier, &rows, err);
    }
    qdqi_observations_fini(&earlier);
    return code;
}

enum qdq_code
qdqi_magnitudes_observe(struct qdqi_attempt *a, const struct qdqi_chains *chains,
                        struct qdqi_peaks *ret, struct qdq_error *err)
{
    const struct qdqi_feed_options options = {.batch = a->spec->calibration.batch,
                                              .max_samples =
                                                  a->spec->calibration.max_samples};
    struct observing o = {.attempt = a};
    enum qdq_code code = make_slots(&o, chains, ret, err);
    if (code || o.peaks.n == 0)
        return code;
    if (!(code =
              qdqi_feed_open(&a->fixed, a->context->dataset, &options, &o.feed, err)))
        code = qdqi_attempt_keeps(a) ? run_or_restore(&o, err) : run_model(&o, err);
    qdqi_feed_close(&o.feed);
    return code;
}
