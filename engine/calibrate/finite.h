/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs that are observed, and what becomes of a sample in which a tensor is not finite:
 * an error that names both, or the sample is left out of all that is accumulated, as if
 * it had not been there (on_nonfinite).
 */
#ifndef QDQI_CALIBRATE_FINITE_H
#define QDQI_CALIBRATE_FINITE_H

#include "range/observations.h"
#include "job/job.h"

struct qdqi_watch {
    struct qdqi_job *job;
    struct qdqi_session *session;
    struct qdqi_feed *feed; /* has just given out the run, or the one behind it */
    bool ahead;             /* the latter */
    struct qdqi_observers *observers;
    struct qdqi_observers saved; /* of before the run, or of nothing, where a sample
                                  * that is not finite ends it all */
    struct qdqi_observed all;    /* that were run so far */
};

/* The other members are borrowed. */
enum qdq_code qdqi_watch_open(struct qdqi_watch *w,
                              struct qdq_error *err) QDQ_MUST_CHECK;
/* Runs the next so many samples, of one run of the feed, and observes it. NONFINITE. */
enum qdq_code qdqi_watch_run(struct qdqi_watch *w, const struct qdqi_input *inputs,
                             int64_t samples, struct qdq_error *err) QDQ_MUST_CHECK;
/* After all runs; NONFINITE when no sample is left. */
enum qdq_code qdqi_watch_end(const struct qdqi_watch *w,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* Notes in the job what was run, now or earlier, and warns of what was left out. */
enum qdq_code qdqi_job_observed(struct qdqi_job *job, const struct qdqi_observed *all,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
