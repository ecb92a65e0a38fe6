/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_SCALE_SCALE_H
#define QDQI_SCALE_SCALE_H

#include "job/job.h"

/* Turns ranges and weights into scales, and fills the report's `tensors` and `weights`.
   It may be called again, with another plan. */
enum qdq_code qdqi_choose_scales(struct qdqi_job *job, struct qdqi_scales *ret,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
