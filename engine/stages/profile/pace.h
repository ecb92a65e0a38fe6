/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how fast candidates run beside the float model, as `profile` measures the
   result, with fewer turns. */
#ifndef QDQI_STAGES_PROFILE_PACE_H
#define QDQI_STAGES_PROFILE_PACE_H

#include "stages/profile/kept_times.h"

struct qdqi_pace;

/* Opens the runtime of the job's target, with the batch and the threads of the spec's profile. The
   job needs a dataset. *kept has the times that are known; where it is NULL it is read, and it must
   outlive the pace. RUNTIME_MISSING, RUN_FAILED. */
enum qdq_code qdqi_pace_open(const struct qdqi_attempt *attempt,
                             struct qdqi_arena *arena, struct qdqi_kept_times **kept,
                             struct qdqi_pace **ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;
void qdqi_pace_close(struct qdqi_pace **pace);

/* Runs both models by turns, unless their times are known. *ret is the median of the ratios of
   their times, by turns: above 1, the candidate is slower. RUN_FAILED when the candidate does not
   run. */
enum qdq_code qdqi_pace_measure(struct qdqi_pace *pace,
                                const struct qdq_model *candidate, double *ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Sets *ret to the times of the nodes of a model in a few runs with the same input, in the arena,
   unless they are known. It has no nodes where the runtime does not tell them. RUN_FAILED. */
enum qdq_code qdqi_pace_trace(struct qdqi_pace *pace, const struct qdq_model *model,
                              struct qdqi_arena *arena, struct qdqi_trace *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

#endif
