/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about what the figures of an evaluation say, and about what they cannot say. */
#ifndef QDQI_STAGES_EVALUATE_JUDGEMENT_WARNINGS_H
#define QDQI_STAGES_EVALUATE_JUDGEMENT_WARNINGS_H

#include "stages/report/report.h"

/*
 * Adds the warnings slice_lost, for each output that has such a slice, few_samples and
 * evaluated_on_calibration, and fills in evaluated_on_calibration of the report. `first` is the
 * first sample that was evaluated. A result of which nothing is quantized gets none. NO_MEMORY.
 */
enum qdq_code qdqi_warn_of_judgement(const struct qdqi_attempt *attempt,
                                     struct qdqi_result *result, int64_t first,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/* Warns where sessions get the model as one of an older opset, since the runtime loads none of its
   own. NO_MEMORY. */
enum qdq_code qdqi_warn_run_as_older(const struct qdqi_attempt *attempt,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

#endif
