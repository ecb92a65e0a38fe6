/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_CANDIDATES_MAKE_H
#define QDQI_STAGES_CANDIDATES_MAKE_H

#include "stages/attempt/attempt.h"

/* Makes everything of a new attempt that stands before the first try of a recipe: the models,
   the plan, the ranges and the scales. The job has data. */
enum qdq_code qdqi_attempt_make(struct qdqi_attempt *attempt,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
