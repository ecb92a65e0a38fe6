/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds weights by the moments of their layers' inputs. */
#ifndef QDQI_STAGES_SCALE_ROUND_H
#define QDQI_STAGES_SCALE_ROUND_H

#include "stages/attempt/attempt.h"
#include "files/model/constant.h"

/*
 * Chooses the integers of a weight whose scales are chosen, if the spec asks for more
 * than the nearest ones. A warning tells why a weight is rounded to the nearest ones
 * nevertheless. NO_MEMORY.
 */
enum qdq_code qdqi_round_weight(struct qdqi_attempt *a,
                                const struct qdqi_planned_weight *weight,
                                const struct qdqi_constant *elements,
                                struct qdqi_params *params,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns why a weight cannot be rounded by moments, or NULL. */
const char *qdqi_cannot_round(const struct qdqi_attempt *a,
                              const struct qdqi_planned_weight *weight,
                              const struct qdqi_constant *elements);

#endif
