/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_EVALUATE_KERNELS_H
#define QDQI_EVALUATE_KERNELS_H

#include "job/job.h"

/* Fills in the report's `kernels` if the target has integer kernels (onnxruntime). */
enum qdq_code qdqi_count_kernels(struct qdqi_job *job,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
