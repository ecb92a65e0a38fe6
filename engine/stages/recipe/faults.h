/* SPDX-License-Identifier: Apache-2.0 */
/* The reason why integers cost a layer so much, as far as the graph and the ranges show it. */
#ifndef QDQI_STAGES_RECIPE_FAULTS_H
#define QDQI_STAGES_RECIPE_FAULTS_H

#include "stages/attempt/attempt.h"

/* Writes a few words about the layer with this name, and returns the text. */
const char *qdqi_fault_of(const struct qdqi_attempt *attempt,
                          const struct qdq_report *report, const char *layer,
                          char *text, size_t size);

#endif
