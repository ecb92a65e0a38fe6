/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the model with observers and handles samples in which a tensor is not finite.
 * The spec's on_nonfinite decides: either an error that names tensor and sample, or the
 * sample is skipped and nothing of it is left in the accumulators and the moments.
 */
#ifndef QDQI_STAGES_CALIBRATE_NONFINITE_H
#define QDQI_STAGES_CALIBRATE_NONFINITE_H

#include "stages/calibrate/moments.h"

struct qdqi_observed_run {
    struct qdqi_attempt *attempt;
    struct qdqi_session *session;
    struct qdqi_feed *feed; /* has just read the batch to run, or the one after it */
    /* Called on another thread while the model runs, where there is one: it reads the next
       batch from the feed. NULL: nothing is read ahead. */
    enum qdq_code (*read_ahead)(struct qdqi_observed_run *w, struct qdq_error *err);
    int64_t n_ahead; /* samples that read_ahead() has read; 0 at the end */
    struct qdqi_observers *observers;
    /* By observer: whether a NaN or an infinity in its tensor is an error, or a reason to leave
       the sample out. */
    const bool *checked;
    /* The observers before the run. They stay empty unless samples may be skipped. */
    struct qdqi_observers saved;
    struct qdqi_collection *moments; /* of the session */
    struct qdqi_observed all;        /* counts of the samples run so far */
};

/* Allocates `saved`. The other members are set by the caller and borrowed. */
enum qdq_code qdqi_observed_run_open(struct qdqi_observed_run *w,
                                     struct qdq_error *err) QDQ_MUST_CHECK;
/* Runs the model over the next `samples` samples, one batch of the feed, and
   observes it. NONFINITE. */
enum qdq_code qdqi_observed_run_run(struct qdqi_observed_run *w,
                                    const struct qdqi_input *inputs, int64_t samples,
                                    struct qdq_error *err) QDQ_MUST_CHECK;
/* Checks that a sample is left. Call this after all runs. NONFINITE. */
enum qdq_code qdqi_observed_run_end(const struct qdqi_observed_run *w,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

/* Records in the attempt which samples were run, now or earlier, and warns about skipped
   ones. */
enum qdq_code qdqi_attempt_observed(struct qdqi_attempt *a,
                                    const struct qdqi_observed *all,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
