/* SPDX-License-Identifier: Apache-2.0 */
/* Results that a session opens so that their kernels can be counted: the session writes the model
   that it runs. */
#ifndef QDQI_STAGES_EVALUATE_KERNELS_COUNTED_MODEL_H
#define QDQI_STAGES_EVALUATE_KERNELS_COUNTED_MODEL_H

#include "stages/report/report.h"

/* Bytes of the largest result whose kernels are counted, because the model that the session writes
   may be in memory. */
#define QDQI_MOST_COUNTED (UINT64_C(1) << 30)

/* Returns whether the target's kernels are read from the model that its runtime writes. */
bool qdqi_kernels_are_written(const struct qdqi_context *context);

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

/* Opens the model like qdqi_deploy_model(), and keeps what the session writes in
   result->optimized. `options` is as before when it returns. */
enum qdq_code qdqi_deploy_to_file(struct qdqi_result *result,
                                  const struct qdqi_deploy *deploy,
                                  const struct qdq_model *model,
                                  struct qdqi_deploy_options *options,
                                  struct qdqi_deployed_model *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

#endif
