/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_REPLAN_REPLAN_H
#define QDQI_STAGES_REPLAN_REPLAN_H

#include "stages/job/job.h"

/*
 * Makes the job's plan again so that these layers stay in float for that reason, and
 * keeps the known ranges. The names must be in job->arena or outlive the job. The old
 * plan is freed: the caller must close job->whatif, which refers to it.
 */
enum qdq_code qdqi_plan_without(struct qdqi_job *job, const char *const *names,
                                size_t n, const char *reason,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Does the same for a recipe: the other layers may follow, so that no integers are left
 * between layers in float. The old plan is not freed: the caller frees it, or puts it
 * back after a trial.
 */
enum qdq_code qdqi_plan_leaving(struct qdqi_job *job, const char *const *names,
                                size_t n, const char *reason,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes the plan in which these layers stay in float, too, and changes nothing in the job.
   The plan refers to the arena. */
enum qdq_code qdqi_plan_try(struct qdqi_job *job, const char *const *names, size_t n,
                            struct qdqi_arena *arena, struct qdq_plan **ret,
                            struct qdq_error *err) QDQ_MUST_CHECK;

#endif
