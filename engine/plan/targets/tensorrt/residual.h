/* SPDX-License-Identifier: Apache-2.0 */
/* Residual connections, found by the library's case `residual`. */
#ifndef QDQI_PLAN_TARGETS_TENSORRT_RESIDUAL_H
#define QDQI_PLAN_TARGETS_TENSORRT_RESIDUAL_H

#include "plan/placement/planner.h"

/* Runs the case and applies its entries. `pointer` is the member of the spec that
   asks for it. */
enum qdq_code qdqi_residual_run(struct planner *p, const char *pointer,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Warns of residual connections that neither a case nor a name decides about. `rule` is
 * the id of the rule that the warning cites. NO_MEMORY and the errors of the case.
 */
enum qdq_code qdqi_residual_warn(struct planner *p, const char *rule,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
