/* SPDX-License-Identifier: Apache-2.0 */
/* The largest magnitude of each channel of the activations that may be smoothed, over the
   calibration samples. */
#ifndef QDQI_STAGES_SMOOTH_MAGNITUDES_H
#define QDQI_STAGES_SMOOTH_MAGNITUDES_H

#include "transform/equalize/chain.h"
#include "stages/attempt/attempt.h"
#include "numbers/range/peaks.h"

/*
 * Runs the model over the samples and fills in ret[i] for each of the activations that has
 * no `reason`. With `skip_sample`, a sample in which one of them is not finite is left
 * out of all of them. Errors of a run, NO_MEMORY, IO.
 */
enum qdq_code qdqi_magnitudes_observe(struct qdqi_attempt *a,
                                      const struct qdqi_chains *chains,
                                      struct qdqi_peaks *ret,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

#endif
