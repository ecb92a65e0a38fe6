/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs that are observed, and what becomes of a sample in which a tensor is not finite:
 * an error that names both, or the sample is left out of all that is accumulated, as if
 * it had not been there (on_nonfinite).
 */
#ifndef QDQI_FINITE_H
#define QDQI_FINITE_H

#include "stages.h"

struct qdqi_watch {
    struct qdqi_job *job;
    struct qdqi_session *session;
    struct qdqi_feed *feed;
    struct qdqi_observers *observers;
    struct qdqi_observers saved; /* of before the run, or of nothing, where a sample
                                  * that is not finite ends it all */
    int64_t skipped;
    char which[200]; /* the first samples that were */
};

/* The other members are borrowed. */
enum qdq_code qdqi_watch_open(struct qdqi_watch *w,
                              struct qdq_error *err) QDQ_MUST_CHECK;
/* Runs the feed's last run, whose first sample is `first`, and observes it. NONFINITE. */
enum qdq_code qdqi_watch_run(struct qdqi_watch *w, const struct qdqi_input *inputs,
                             int64_t first, int64_t samples,
                             struct qdq_error *err) QDQ_MUST_CHECK;
/* Warns of samples that were left out; NONFINITE when none of `total` is left. */
enum qdq_code qdqi_watch_end(struct qdqi_watch *w, int64_t total,
                             struct qdq_error *err) QDQ_MUST_CHECK;

#endif
