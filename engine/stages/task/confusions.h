/* SPDX-License-Identifier: Apache-2.0 */
/* Which classes a result confuses where the float model does not. */
#ifndef QDQI_STAGES_TASK_CONFUSIONS_H
#define QDQI_STAGES_TASK_CONFUSIONS_H

#include "stages/task/judge.h"

/* Counts the rows to which both models give other classes, into the report, whose rows are in the
   arena. There are none where answers were lost. NO_MEMORY. */
enum qdq_code qdqi_confusions(const struct qdqi_answers *of_float,
                              const struct qdqi_answers *of_result,
                              struct qdqi_arena *arena, struct qdq_task_report *to,
                              struct qdq_error *err) QDQ_MUST_CHECK;

#endif
