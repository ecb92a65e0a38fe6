/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of a small model side by side. Its nodes are too small for several threads: to wake
 * one takes longer than the node. So each thread runs other samples, with a session of one
 * thread and observers of its own, which are merged. Observations have the same bits as those
 * of runs one after the other.
 */
#ifndef QDQI_STAGES_CALIBRATE_PARALLEL_H
#define QDQI_STAGES_CALIBRATE_PARALLEL_H

#include "stages/attempt/attempt.h"

struct qdqi_parallel {
    struct qdqi_attempt *attempt;
    const bool *wanted; /* by planned activation: whether it is observed */
    struct qdqi_observers *observers; /* get the observations */
    struct qdqi_feed *feed;           /* whose runs are made */
};

/* Returns whether it pays to make the runs side by side. No moments may be wanted. */
bool qdqi_parallel_pays(const struct qdqi_parallel *runs);

/* Makes all runs. *ret_done is false where one failed or a tensor was not finite: runs one
   after the other, with empty observers and a new feed, find out which sample it was.
   CANCELLED. */
enum qdq_code qdqi_parallel_run(const struct qdqi_parallel *runs,
                                struct qdqi_runtime *runtime, bool *ret_done,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
