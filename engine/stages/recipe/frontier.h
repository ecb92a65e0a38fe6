/* SPDX-License-Identifier: Apache-2.0 */
/* The report's `frontier`: the judged placements that no other one beats in both figures. */
#ifndef QDQI_STAGES_RECIPE_FRONTIER_H
#define QDQI_STAGES_RECIPE_FRONTIER_H

#include "stages/recipe/fastest.h"

/* Adds the points to the report, the fastest first, at most as many as the spec asks for. NO_MEMORY. */
enum qdq_code qdqi_frontier_report(const struct qdqi_fastest *fastest,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

#endif
