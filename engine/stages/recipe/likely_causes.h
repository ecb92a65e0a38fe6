/* SPDX-License-Identifier: Apache-2.0 */
/* The reason why integers cost a layer so much, as far as the graph and the ranges show it. */
#ifndef QDQI_STAGES_RECIPE_LIKELY_CAUSES_H
#define QDQI_STAGES_RECIPE_LIKELY_CAUSES_H

#include "stages/attempt/attempt.h"

/* Writes a few words about the layer with this name, and returns the text. */
const char *qdqi_likely_cause(const struct qdqi_attempt *attempt,
                              const struct qdq_report *report, const char *layer,
                              char *text, size_t size);

#endif
