/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs of integers and Booleans: classes of pixels, indices, what a comparison says. They have no
 * noise, so they are judged by the share of their elements that are the same in both models. Where
 * an SQNR is asked for, an element that differs counts as an error as large as itself: a share of
 * 0.99 is 20 dB.
 */
#ifndef QDQI_STAGES_EVALUATE_CHOICES_H
#define QDQI_STAGES_EVALUATE_CHOICES_H

#include "run/session/session.h"
#include "stages/evaluate/metrics.h"

/* Returns whether outputs of that type are judged so. */
bool qdqi_is_choice(enum qdqi_dtype dtype);

/*
 * Adds one output of a run. Where the sizes along the first axis differ in some run, as behind
 * NonMaxSuppression and NonZero, what stands behind that axis is looked for in any order, in all
 * runs, and what only one of the models has differs. Returns false where types or other sizes
 * differ, or memory is short.
 */
bool qdqi_choices_add(struct qdqi_metrics *m, const struct qdqi_output *f,
                      const struct qdqi_output *q, int64_t samples);

/* Computes the figures of such an output. */
void qdqi_choices_finish(const struct qdqi_metrics *m, struct qdq_output_report *ret);

#endif
