/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_EVALUATE_EVALUATE_H
#define QDQI_STAGES_EVALUATE_EVALUATE_H

#include "stages/report/report.h"

/* Runs source and result side by side and fills in the report's `outputs`. */
enum qdq_code qdqi_evaluate(struct qdqi_attempt *attempt, struct qdqi_result *result,
                            struct qdqi_runtime *runtime,
                            struct qdq_error *err) QDQ_MUST_CHECK;

#endif
