/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_EVALUATE_KERNELS_H
#define QDQI_STAGES_EVALUATE_KERNELS_H

#include "stages/job/job.h"

/*
 * Fills in the report's `kernels` if ONNX Runtime is the target, or if another runtime judged
 * the result. ONNX Runtime's are those of the session that qdqi_deploy_counted() opened; where
 * there was none, a result of at most 16 MiB is loaded for them. A larger one is not: a warning
 * says so, as after a failure. NO_MEMORY.
 */
enum qdq_code qdqi_count_kernels(struct qdqi_job *job,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether the kernels are still to be counted, by the session that will profile the
   result. */
bool qdqi_kernels_wait(const struct qdqi_job *job);

/* Opens the result like qdqi_deploy_model(). Where its kernels are counted, the session also
   writes the model that it runs to job->optimized. */
enum qdq_code qdqi_deploy_counted(struct qdqi_job *job,
                                  const struct qdqi_deploy *deploy,
                                  const struct qdq_model *model,
                                  const struct qdqi_deploy_options *options,
                                  struct qdqi_deployed_model *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

#endif
