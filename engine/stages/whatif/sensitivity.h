/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_WHATIF_SENSITIVITY_H
#define QDQI_STAGES_WHATIF_SENSITIVITY_H

#include "stages/job/job.h"

/* Fills the report's `sensitivity`, where the spec asks for it. */
enum qdq_code qdqi_sensitivity(struct qdqi_job *job, const struct qdqi_scales *scales,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
