/* SPDX-License-Identifier: Apache-2.0 */
/* Which weights a target's runtime loads in another format: what the plan with that format says of the
   layers that use them. */
#ifndef QDQI_STAGES_RECIPE_LOADABLE_H
#define QDQI_STAGES_RECIPE_LOADABLE_H

#include "stages/attempt/attempt.h"

/*
 * Plans the attempt's spec with one more entry, and sets by weight of the attempt's plan why the runtime
 * does not load it so, or why it stays floating point then; NULL: it is loaded. The texts are in `arena`.
 * NO_MEMORY.
 */
enum qdq_code qdqi_find_refusals(const struct qdqi_attempt *attempt,
                                 const struct qdq_layer_entry *entry,
                                 struct qdqi_arena *arena, const char **ret_why,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Warns once for each reason why some of n layers do without a format, which is called `name`. */
enum qdq_code qdqi_warn_refusals(const struct qdqi_attempt *attempt, const char *name,
                                 const char *const *layers, const char *const *why,
                                 size_t n, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
