/* SPDX-License-Identifier: Apache-2.0 */
/* The stage that measures how fast the float and the quantized model run. */
#ifndef QDQI_STAGES_PROFILE_PROFILE_H
#define QDQI_STAGES_PROFILE_PROFILE_H

#include "stages/report/report.h"

/*
 * Fills the report's `profile` when the spec asks for it. Both models run by turns, with
 * the same inputs, as the runtime of the target runs them by default. A model that cannot
 * be measured is a warning and leaves `profile` NULL. CANCELLED, NO_MEMORY.
 */
enum qdq_code qdqi_profile(const struct qdqi_attempt *attempt,
                           struct qdqi_result *result,
                           struct qdq_error *err) QDQ_MUST_CHECK;

#endif
