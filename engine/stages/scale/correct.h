/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the mean of the errors of weights out of biases. */
#ifndef QDQI_STAGES_SCALE_CORRECT_H
#define QDQI_STAGES_SCALE_CORRECT_H

#include "stages/attempt/attempt.h"

/*
 * Fills in scales->shifted, and scales->idle: the biases that the preparation made for layers
 * whose weights stay float. All weights must have their integers. Warnings count the layers
 * with new biases and those whose bias cannot take the mean. NO_MEMORY.
 */
enum qdq_code qdqi_correct_biases(struct qdqi_attempt *a, struct qdqi_scales *scales,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

#endif
