/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_EVALUATE_KERNELS_KERNELS_H
#define QDQI_STAGES_EVALUATE_KERNELS_KERNELS_H

#include "stages/report/report.h"

/*
 * Fills in the report's `kernels` if ONNX Runtime is the target, or if another runtime judged
 * the result. ONNX Runtime's are those of the session that qdqi_deploy_counted() opened; where
 * there was none, a result of at most 16 MiB is loaded for them. A larger one is not: a warning
 * says so, as after a failure. A runtime that only plans loads the result here. NO_MEMORY, and the
 * errors of qdqi_count_planned().
 */
enum qdq_code qdqi_count_kernels(const struct qdqi_attempt *attempt,
                                 struct qdqi_result *result,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
