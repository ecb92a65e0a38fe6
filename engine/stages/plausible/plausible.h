/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for signs that calibration data is not what the model was made for: ranges of such data
 * are wrong, and figures of an evaluation by it say nothing. Each sign is a warning
 * data_implausible with figures, which caps the verdict (plan/gates/verdict.h).
 */
#ifndef QDQI_STAGES_PLAUSIBLE_PLAUSIBLE_H
#define QDQI_STAGES_PLAUSIBLE_PLAUSIBLE_H

#include "stages/attempt/attempt.h"

/* Looks at the first samples of the job's calibration data, and at what the float model makes of them, and
   warns. Outputs that the job has are not computed again. Where the model does not run, nothing is said. NO_MEMORY, CANCELLED. */
enum qdq_code qdqi_warn_implausible(const struct qdqi_attempt *attempt,
                                    struct qdq_error *err) QDQ_MUST_CHECK;

#endif
