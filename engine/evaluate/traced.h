/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_EVALUATE_TRACED_H
#define QDQI_EVALUATE_TRACED_H

#include "job/job.h"

/* Fills in the report's `kernels` by the profile of the runtime that judged the result, for
   which the job has data. RUN_FAILED, RUNTIME_MISSING. */
enum qdq_code qdqi_count_traced(struct qdqi_job *job,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
