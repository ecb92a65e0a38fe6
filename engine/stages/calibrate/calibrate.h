/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_CALIBRATE_CALIBRATE_H
#define QDQI_STAGES_CALIBRATE_CALIBRATE_H

#include "stages/attempt/attempt.h"

/* Fills in a->ranges: the given ranges, and for the other activations ranges
   computed by running the model over the calibration data. Fills in a->moments if the
   spec asks for something that uses them. */
enum qdq_code qdqi_calibrate(struct qdqi_attempt *a,
                             struct qdq_error *err) QDQ_MUST_CHECK;

#endif
