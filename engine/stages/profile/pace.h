/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how fast candidates run beside the float model, as `profile` measures the
   result, with fewer turns. */
#ifndef QDQI_STAGES_PROFILE_PACE_H
#define QDQI_STAGES_PROFILE_PACE_H

#include "stages/attempt/kept_times.h"

struct qdqi_pace;

/* Opens the runtime of the job's target, with the batch and the threads of the spec's profile. The
   job needs a dataset. The arena must outlive the pace. RUNTIME_MISSING, RUN_FAILED. */
enum qdq_code qdqi_pace_open(const struct qdqi_attempt *attempt,
                             struct qdqi_arena *arena, struct qdqi_pace **ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;
/* Says that the float model will be traced: its first runs are. */
void qdqi_pace_expect_traces(struct qdqi_pace *pace);
void qdqi_pace_close(struct qdqi_pace **pace);

/* Returns whether a model that is open for so many threads may be the one that is measured: that of
   the runtime that calibrates is the same then, and so is a traced one of a runtime whose models have
   one thread. */
bool qdqi_pace_shares(const struct qdqi_pace *pace, int threads);

/*
 * Runs both models by turns, unless their times are known. *ret is the median of the ratios of
 * their times, by turns: above 1, the candidate is slower. Where one turn that is long enough shows
 * that the ratio is far above `least`, it is the only one; NAN: nothing is too slow. `open` is the
 * candidate, which has run before and for which qdqi_pace_shares(); NULL: it is opened. RUN_FAILED
 * when the candidate does not run.
 */
enum qdq_code qdqi_pace_measure(struct qdqi_pace *pace,
                                const struct qdq_model *candidate,
                                const struct qdqi_deployed_model *open, double least,
                                double *ret, struct qdq_error *err) QDQ_MUST_CHECK;

/* Sets *ret to the times of the nodes of a model in a few runs with the same input, in the arena,
   unless they are known. It has no nodes where the runtime does not tell them. RUN_FAILED. */
enum qdq_code qdqi_pace_trace(struct qdqi_pace *pace, const struct qdq_model *model,
                              struct qdqi_arena *arena, struct qdqi_trace *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

#endif
