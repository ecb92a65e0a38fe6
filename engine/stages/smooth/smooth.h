/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Smoothing: moves the difficulty of quantization from activations into weights, where the
 * factor of a channel can be taken in (SmoothQuant, Xiao et al. 2022).
 */
#ifndef QDQI_STAGES_SMOOTH_SMOOTH_H
#define QDQI_STAGES_SMOOTH_SMOOTH_H

#include "stages/attempt/attempt.h"

/*
 * Smooths the model if the spec asks for it, with the magnitudes of its activations over
 * the calibration samples: one run over them. a->model is then the smoothed model, and
 * the report has a row for each activation that a layer with a weight reads.
 * NO_CALIBRATION when there are no data; errors of a run, NO_MEMORY, IO.
 */
enum qdq_code qdqi_smooth(struct qdqi_attempt *a, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
