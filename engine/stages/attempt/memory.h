/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses a job, before any model runs, that needs more memory than there is. */
#ifndef QDQI_STAGES_ATTEMPT_MEMORY_H
#define QDQI_STAGES_ATTEMPT_MEMORY_H

#include "stages/attempt/attempt.h"

/* LIMIT_EXCEEDED if what second moments need by the plan is more than the machine has, or than the
   limits of this process leave. */
enum qdq_code qdqi_attempt_check_memory(const struct qdqi_attempt *attempt,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

#endif
