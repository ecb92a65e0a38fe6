/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_REPLAN_REPLAN_H
#define QDQI_REPLAN_REPLAN_H

#include "job/job.h"

/*
 * Makes the job's plan again, so that these layers stay in float for that reason, and
 * keeps the ranges that there are. The names lie in job->arena or outlive the job. The
 * plan of before is freed: what-ifs about it (job->whatif) are closed by the caller.
 */
enum qdq_code qdqi_plan_without(struct qdqi_job *job, const char *const *names,
                                size_t n, const char *reason,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
