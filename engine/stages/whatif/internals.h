/* SPDX-License-Identifier: Apache-2.0 */
/* Internal structures of the what-ifs: the sessions, their switches, and the samples
   that are run repeatedly. Only engine/stages/whatif/ includes this header. */
#ifndef QDQI_STAGES_WHATIF_INTERNALS_H
#define QDQI_STAGES_WHATIF_INTERNALS_H

#include "stages/evaluate/choices.h"
#include "stages/evaluate/metrics.h"
#include "transform/rewrite/insert.h"
#include "stages/whatif/parts.h"
#include "stages/whatif/whatif.h"

struct qdqi_whatif_row {
    const struct qdq_layer *layer;
    struct qdqi_fake *fakes; /* the FakeQuants of the layer */
    size_t n_fakes;
};

struct qdqi_whatif {
    const struct qdqi_attempt *attempt;
    struct qdqi_parts parts; /* the model with FakeQuants, split into parts */
    struct qdqi_fakes fakes;
    float *scales;        /* by activation of the plan */
    int32_t *zero_points; /* by activation of the plan */
    struct qdqi_whatif_row *layers;
    size_t n_layers;
    const struct qdqi_fake_place *places; /* by FakeQuant */
    const size_t *layer_of; /* by node: its layer in the plan, or QDQI_NONE */
    /* The pairs of a choice are not those of its layers alone: there are activations
       that all readers read from their pairs. */
    bool shares_pairs;
    struct qdqi_metrics *metrics; /* by output: metrics of the current run */
    struct qdqi_replay *replay;   /* samples that sensitivity and search share */
    enum qdq_stage stage;
    uint64_t done, total;
    int64_t runs;
};

/* An output of the float model in one run: float32, or a choice (evaluate/choices.h). */
struct qdqi_float_output {
    enum qdqi_dtype dtype;
    void *data;
    size_t n; /* elements */
    size_t rank;
    int64_t *shape;
};

/* One batch of the samples. */
struct qdqi_replay_batch {
    int64_t samples;
    struct qdqi_input *inputs; /* NULL when they are read again each time */
    struct qdqi_float_output *outputs;
    struct qdqi_memo memo;
};

struct qdqi_replay {
    struct qdqi_whatif *w;
    struct qdqi_arena *arena;
    struct qdqi_feed_options options;
    struct qdqi_feed *feed; /* open while samples are read */
    size_t n_outputs, n_runs, cap;
    bool *compared; /* by output: whether it is float32, or a choice, in every run */
    struct qdqi_replay_batch *runs;
    int64_t samples;
    size_t input_bytes, output_bytes; /* bytes of the kept inputs and outputs */
    bool keeps_inputs;
    size_t next; /* index of the next run */
};

/* Makes qdqi_replay_next() return the first run next. */
enum qdq_code qdqi_replay_rewind(struct qdqi_replay *t,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
/* Sets *ret to the next run and *ret_inputs to its inputs. *ret is NULL behind the
   last run. */
enum qdq_code qdqi_replay_next(struct qdqi_replay *t, struct qdqi_replay_batch **ret,
                               const struct qdqi_input **ret_inputs,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether a layer has a pair. */
static inline bool
qdqi_whatif_is_quantized(const struct qdq_layer *layer)
{
    return layer->n_inputs > 0 || layer->weight_input >= 0;
}

/* Opens the sessions of all parts. The errors of qdqi_parts_open(). */
enum qdq_code qdqi_whatif_open_sessions(struct qdqi_whatif *w,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

/* Runs the model once, counts the run and reports the progress. */
enum qdq_code qdqi_whatif_step(struct qdqi_whatif *w, struct qdqi_memo *memo,
                               bool settled, const struct qdqi_input *inputs,
                               int64_t samples, const struct qdqi_output **ret,
                               size_t *ret_n, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
