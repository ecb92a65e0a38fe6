/* SPDX-License-Identifier: Apache-2.0 */
/* Channels that matter more to the outputs of layers are given finer steps, by the moments that
   calibration collected. */
#ifndef QDQI_STAGES_SCALE_AWQ_H
#define QDQI_STAGES_SCALE_AWQ_H

#include "stages/attempt/attempt.h"

/*
 * Chooses factors for the channels of activations if the spec asks for it, and puts a model with
 * other weights, which computes the same function, into the place of the attempt's; the moments
 * become those of its activations, and the plan is made again. Fills in the rows of the report
 * about smoothing. NO_CALIBRATION when there are no moments; IO, NO_MEMORY.
 */
enum qdq_code qdqi_awq(struct qdqi_attempt *attempt,
                       struct qdq_error *err) QDQ_MUST_CHECK;

#endif
