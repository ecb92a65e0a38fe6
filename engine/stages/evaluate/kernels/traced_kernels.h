/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_EVALUATE_KERNELS_TRACED_KERNELS_H
#define QDQI_STAGES_EVALUATE_KERNELS_TRACED_KERNELS_H

#include "stages/report/report.h"

/* The order of two struct qdq_op_count by their names, for qsort(). */
int qdqi_compare_ops(const void *a, const void *b);

/* Keeps the nodes of the last run of a model that was opened `traced`, or the reason why there
   are none. NO_MEMORY. */
enum qdq_code qdqi_keep_nodes(struct qdqi_result *result,
                              const struct qdqi_deployed_model *model,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/* Fills in the report's `kernels` by the nodes that were kept. RUN_FAILED when there are none. */
enum qdq_code qdqi_count_traced(const struct qdqi_attempt *attempt,
                                struct qdqi_result *result,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Has a runtime that only plans (qdqi_deployed_only_plans()) load the result, and fills in the
   report's `kernels` by its plan. A failure is only a warning, but CANNOT_LOAD, RUNNER_FAILED,
   IO, NO_MEMORY. */
enum qdq_code qdqi_count_planned(const struct qdqi_attempt *attempt,
                                 struct qdqi_result *result,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
