/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_SCALE_PRECISION_H
#define QDQI_SCALE_PRECISION_H

#include "job/job.h"

/* Chooses what becomes float16 or bfloat16, where the spec asks for it; rounds the scales
   of pairs of that type, and fills the report's `floats`. */
enum qdq_code qdqi_lower_scales(struct qdqi_job *job, struct qdqi_scales *scales,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes the result such a model; leaves it as it is where nothing was asked. */
enum qdq_code qdqi_lower_result(struct qdqi_job *job, struct qdqi_edited *edited,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
