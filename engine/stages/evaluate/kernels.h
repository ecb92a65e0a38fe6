/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_EVALUATE_KERNELS_H
#define QDQI_STAGES_EVALUATE_KERNELS_H

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

/* Returns whether the kernels are still to be counted, by the session that will profile the
   result. */
bool qdqi_kernels_wait(const struct qdqi_context *context,
                       const struct qdqi_result *result);

/* Opens the result like qdqi_deploy_model(). Where its kernels are counted, the session also
   writes the model that it runs to result->optimized. */
enum qdq_code qdqi_deploy_counted(const struct qdqi_context *context,
                                  struct qdqi_result *result,
                                  const struct qdqi_deploy *deploy,
                                  const struct qdq_model *model,
                                  const struct qdqi_deploy_options *options,
                                  struct qdqi_deployed_model *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

#endif
