/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way out of a poor verdict: which layers are at fault, why, and the smallest spec that
 * was tried and mends it. Nothing changes in the result.
 */
#ifndef QDQI_STAGES_RECIPE_ADVISE_H
#define QDQI_STAGES_RECIPE_ADVISE_H

#include "stages/report/report.h"

/* Adds the warning `poor` where the result is. Layers are tried in float within a few
   times the inferences of calibration and evaluation, and within the time that the stages before took. */
enum qdq_code qdqi_advise(struct qdqi_attempt *attempt, struct qdqi_result *result,
                          struct qdq_error *err) QDQ_MUST_CHECK;

#endif
