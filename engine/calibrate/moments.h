/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the moments of the inputs of weighted layers, by running the model over the
 * calibration data with a Moment node at each. Rounding that compensates errors and the
 * correction of biases use them.
 */
#ifndef QDQI_CALIBRATE_MOMENTS_H
#define QDQI_CALIBRATE_MOMENTS_H

#include "job/job.h"

/* Fills in job->moments if the spec asks for it. NO_CALIBRATION when there are no
   data. */
enum qdq_code qdqi_collect_moments(struct qdqi_job *job,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Frees job->moments. */
void qdqi_moments_free(struct qdqi_job *job);

#endif
