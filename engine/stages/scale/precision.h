/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_SCALE_PRECISION_H
#define QDQI_STAGES_SCALE_PRECISION_H

#include "stages/attempt/attempt.h"

/* Chooses the nodes that become float16 or bfloat16 if the spec asks for it, rounds
   the scales of their pairs to that type and fills in the report's `floats`. */
enum qdq_code qdqi_choose_float16(struct qdqi_attempt *a, struct qdqi_scales *scales,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Converts the result to the chosen type. Does nothing if the spec does not ask for
   one. */
enum qdq_code qdqi_convert_result(const struct qdqi_attempt *a,
                                  struct qdqi_edited *edited,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

#endif
