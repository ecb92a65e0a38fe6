/* SPDX-License-Identifier: Apache-2.0 */
/* The number and the choice of the samples by which a result is judged. */
#ifndef QDQI_STAGES_EVALUATE_SAMPLE_CHOICE_H
#define QDQI_STAGES_EVALUATE_SAMPLE_CHOICE_H

#include "stages/attempt/attempt.h"

/*
 * Returns how many samples stand for `few` samples of a model with small outputs: at least
 * `least`, where each of its floating outputs has many elements in one sample. It is `few` for
 * a target whose runtime opens models fast, where an output has no declared sizes, and where
 * `few` is less than `least`.
 */
int64_t qdqi_enough_samples(const struct qdqi_attempt *a, int64_t few, int64_t least);

/* Returns whether the spec asks for figures by more samples than tell how good the result is. */
bool qdqi_asks_for_figures(const struct qdq_spec *spec);

/* Chooses the samples for the evaluation: samples that calibration did not read, if
   there are enough of them. */
void qdqi_choose_samples(const struct qdqi_attempt *a, int64_t available,
                         struct qdqi_feed_options *options);

#endif
