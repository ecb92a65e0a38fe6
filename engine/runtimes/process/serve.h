/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_RUNTIMES_PROCESS_SERVE_H
#define QDQI_RUNTIMES_PROCESS_SERVE_H

#include "qdq/judge.h"
#include "runtimes/common/deploy.h"

/* Makes a judge of a runtime whose row has load(). Takes ownership of its place, also on failure.
   NO_MEMORY. */
enum qdq_code qdqi_judge_new(const struct qdqi_deploy *runtime, struct qdq_judge **ret,
                             struct qdq_error *err) QDQ_MUST_CHECK;

#endif
