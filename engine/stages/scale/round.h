/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds weights by the moments of their layers' inputs. */
#ifndef QDQI_STAGES_SCALE_ROUND_H
#define QDQI_STAGES_SCALE_ROUND_H

#include "stages/attempt/roundings.h"
#include "stages/scale/matrix.h"

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

/* Returns whether no two outputs share a scale. */
bool qdqi_has_own_scales(const struct qdqi_matrix *matrix);

/* Returns how a weight is rounded, with its present scales, which are borrowed; `is_centred` is
   false. */
struct qdqi_rounded_key qdqi_rounded_key_of(const struct qdqi_planned_weight *weight,
                                            const struct qdqi_params *params);

/* Rounds the outputs of one group by a moment, on the engine's threads: sets their integers among
   those of the whole weight, and changes their scales and zero points where the key says so.
   *ret_why is NULL, or the reason why the integers are the nearest ones. NO_MEMORY. */
enum qdq_code qdqi_round_group(const struct qdqi_attempt *attempt,
                               const struct qdqi_rounded_key *key,
                               const struct qdqi_matrix *matrix, size_t group,
                               const struct qdqi_moment *moment,
                               const struct qdqi_params *params, int16_t *integers,
                               const char **ret_why,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
