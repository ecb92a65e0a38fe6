/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of the float model for some samples. Results are compared with them one after the
 * other, without the float model's session in memory.
 */
#ifndef QDQI_STAGES_EVALUATE_REFERENCE_H
#define QDQI_STAGES_EVALUATE_REFERENCE_H

#include "stages/attempt/attempt.h"

/* An output in one run. Those of float32, and choices (choices.h), are kept; `data` of others is
   NULL. */
struct qdqi_kept_output {
    enum qdqi_dtype dtype;
    void *data;
    size_t n;
    size_t rank;
    int64_t *shape;
};

struct qdqi_reference {
    struct qdqi_feed_options options; /* the samples that it was made for */
    int64_t samples;                  /* that are kept */
    size_t n_runs, n_outputs;
    struct qdqi_kept_output *outputs; /* by run and output */
    int64_t *run_samples;             /* by run: its samples */
    size_t bytes;                     /* of all outputs */
    bool is_whole;                    /* no run is missing */
    struct qdqi_arena *arena;
};

/* How many runs are made. */
struct qdqi_reference_runs {
    struct qdqi_feed_options samples;
    int64_t needed; /* so many of them even where their outputs take more than `most` */
    size_t most;    /* bytes */
    /* Called after each run; an error ends the runs. NULL: nothing is. */
    enum qdq_code (*ran)(void *arg, int64_t samples, struct qdq_error *err);
    void *arg;
};

/* Runs the float model in a session of its own, unless the job has its outputs already, and keeps
   the outputs: at most 256 MiB of them.
   RUN_FAILED, NO_MEMORY, RUNTIME_MISSING, and the errors of `ran`. */
enum qdq_code qdqi_reference_open(const struct qdqi_attempt *a,
                                  const struct qdqi_reference_runs *runs,
                                  struct qdqi_reference **ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_reference_close(struct qdqi_reference **reference);

/* Returns the outputs of a run. */
const struct qdqi_kept_output *
qdqi_reference_run(const struct qdqi_reference *reference, size_t run);

#endif
