/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_WHATIF_REFINE_H
#define QDQI_STAGES_WHATIF_REFINE_H

#include "stages/job/job.h"

/* Adjusts the ranges that calibration found by their effect on the outputs, and the
   scales that follow from them. Does nothing unless the range method asks for it. */
enum qdq_code qdqi_refine(struct qdqi_job *job, struct qdqi_scales *scales,
                          struct qdq_error *err) QDQ_MUST_CHECK;

#endif
