/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's own task (spec.task): the float model and the result are judged by the labels of the data to
 * judge by, or by a metric. The float model is judged before anything is quantized: one that is no
 * better than a guess says that data, labels or model are not what they are taken for.
 */
#ifndef QDQI_STAGES_TASK_TASK_H
#define QDQI_STAGES_TASK_TASK_H

#include "stages/report/report.h"

struct qdqi_task;

/* Judges the float model. *ret is NULL where the spec has no task. NO_CALIBRATION where there is no
   data to judge by, AT_CHANCE, and the errors of qdqi_judge_run() and of runs. */
enum qdq_code qdqi_task_begin(const struct qdqi_attempt *attempt,
                              struct qdqi_task **ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* Judges a model of the attempt that a recipe tries: *ret_drop is the float model's figure less its own.
   Errors are those of runs. */
enum qdq_code qdqi_task_try(struct qdqi_task *task, const struct qdqi_attempt *attempt,
                            const struct qdq_model *model, double *ret_drop,
                            struct qdq_error *err) QDQ_MUST_CHECK;

/* Judges the written result, as deployed where it runs here in that way, and fills the report's
   `task`. A task that is NULL is none. */
enum qdq_code qdqi_task_finish(struct qdqi_task *task,
                               const struct qdqi_attempt *attempt,
                               struct qdqi_result *result,
                               struct qdq_error *err) QDQ_MUST_CHECK;

void qdqi_task_close(struct qdqi_task **task);

#endif
