/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_CALIBRATE_CALIBRATE_H
#define QDQI_STAGES_CALIBRATE_CALIBRATE_H

#include "stages/attempt/attempt.h"

/* Fills in a->ranges: the given ranges, and for the other activations ranges
   computed by running the model over the calibration data. Fills in a->moments if the
   spec asks for something that uses them. */
enum qdq_code qdqi_calibrate(struct qdqi_attempt *a,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Collects the attempt's moments again where layers have been left in float since they were collected,
 * as a job does that is asked for the plan as it stands: a frozen spec gives the same integers. *ret is
 * whether it did, so that the scales have to be chosen again.
 */
enum qdq_code qdqi_calibrate_moments(struct qdqi_attempt *a, bool *ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

#endif
