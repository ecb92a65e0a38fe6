/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_SCALE_SCALE_H
#define QDQI_STAGES_SCALE_SCALE_H

#include "stages/job/job.h"

/* Computes the scales from ranges and weights and fills in the report's `tensors`
   and `weights`. Can be called again for another plan. */
enum qdq_code qdqi_choose_scales(struct qdqi_job *job, struct qdqi_scales *ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Adds to the report the scales that the writer of the result has made. NO_MEMORY. */
enum qdq_code qdqi_report_blocks(struct qdqi_job *job, const struct qdqi_scales *scales,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
