/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks of attention are constants as low as floats go, and would take the whole range of what is
 * added to scores: -3.4e38 leaves 8 or 16 bits none for the scores. A number that is lower than all
 * scores by some units is 0 behind the Softmax, so the ranges begin there.
 */
#ifndef QDQI_STAGES_SCALE_MASKS_H
#define QDQI_STAGES_SCALE_MASKS_H

#include "files/model/constant.h"
#include "numbers/arithmetic/params.h"
#include "stages/attempt/attempt.h"

/* Raises the lowest number of the attempt's ranges of masks and masked scores, where the plan lists such
   sums. Ranges that are given stay. The ranges must not have been copied from leaders. *ret_lowest, by
   planned weight, in the attempt's scratch: the lowest number that a constant mask needs; 0: it is none;
   NULL: the plan lists no sums. NO_MEMORY. */
enum qdq_code qdqi_cut_masks(struct qdqi_attempt *a, const float **ret_lowest,
                             struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes the range of a weight with one scale begin at `lowest`, if it has numbers that are masks'. */
void qdqi_cut_constant(const struct qdqi_constant *weight, float lowest,
                       struct qdqi_params *params);

#endif
