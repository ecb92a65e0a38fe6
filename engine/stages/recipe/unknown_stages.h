/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_RECIPE_UNKNOWN_STAGES_H
#define QDQI_STAGES_RECIPE_UNKNOWN_STAGES_H

#include "stages/attempt/attempt.h"

/* Returns the stages that are asked for and whose work follows from what they find, as 1 << stage,
   for reports of progress. */
uint64_t qdqi_unknown_stages(const struct qdqi_attempt *attempt);

#endif
