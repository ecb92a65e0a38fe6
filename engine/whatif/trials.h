/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of what-ifs: the sessions, their switches, and the samples that are run
   repeatedly. Only engine/whatif/ includes this header. */
#ifndef QDQI_WHATIF_TRIALS_H
#define QDQI_WHATIF_TRIALS_H

#include "evaluate/metrics.h"
#include "whatif/parts.h"
#include "whatif/whatif.h"

struct qdqi_whatif_row {
    const struct qdq_layer *layer;
    struct qdqi_fake *fakes; /* at its places */
    size_t n_fakes;
};

struct qdqi_whatif {
    struct qdqi_job *job;
    struct qdqi_parts parts; /* the model with its switches, cut into parts */
    struct qdqi_fakes fakes;
    float *scales;        /* by activation of the plan */
    int32_t *zero_points; /* likewise */
    struct qdqi_whatif_row *layers;
    size_t n_layers;
    struct qdqi_metrics *metrics; /* by output, of the run under way */
    struct qdqi_trials *trials;   /* of sensitivity and search */
    enum qdq_stage stage;
    uint64_t done, total;
    int64_t runs;
};

/* An output of the float model in one run. */
struct qdqi_kept {
    float *data;
    size_t n, last; /* elements, and those of the last axis; 0: no axis */
};

/* One run. */
struct qdqi_trial {
    int64_t samples;
    struct qdqi_input *inputs; /* NULL: read anew each time */
    struct qdqi_kept *outputs;
    struct qdqi_memo memo;
};

struct qdqi_trials {
    struct qdqi_whatif *w;
    struct qdqi_arena *arena;
    struct qdqi_feed_options options;
    struct qdqi_feed *feed; /* while samples are read */
    size_t n_outputs, n_runs, cap;
    bool *compared; /* by output: float32 in every run */
    struct qdqi_trial *runs;
    int64_t samples;
    size_t input_bytes, output_bytes; /* that are kept */
    bool keeps_inputs;
    size_t next; /* run */
};

/* Before the first run. */
enum qdq_code qdqi_trials_rewind(struct qdqi_trials *t,
                                 struct qdq_error *err) QDQ_MUST_CHECK;
/* NULL past the last. */
enum qdq_code qdqi_trials_next(struct qdqi_trials *t, struct qdqi_trial **ret,
                               const struct qdqi_input **ret_inputs,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Runs the model, counts it and tells progress. */
enum qdq_code qdqi_whatif_step(struct qdqi_whatif *w, struct qdqi_memo *memo,
                               bool settled, const struct qdqi_input *inputs,
                               int64_t samples, const struct qdqi_output **ret,
                               size_t *ret_n, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
