/* SPDX-License-Identifier: Apache-2.0 */
/* The report's `frontier`: the judged results that no other one beats in both figures. */
#ifndef QDQI_STAGES_RECIPE_FRONTIER_H
#define QDQI_STAGES_RECIPE_FRONTIER_H

#include "stages/recipe/fastest.h"
#include "stages/recipe/variants.h"

/* Adds the placements to the report by time and accuracy, the fastest first, at most as many as the
   spec asks for. NO_MEMORY. */
enum qdq_code qdqi_frontier_report(const struct qdqi_fastest *fastest,
                                   struct qdq_error *err) QDQ_MUST_CHECK;

/* Adds the specs that were judged, by size and accuracy, the smallest first; of more than the spec
   asks for those between the two ends that are spread evenly. NO_MEMORY. */
enum qdq_code qdqi_frontier_report_sizes(const struct qdqi_variants *variants,
                                         struct qdq_error *err) QDQ_MUST_CHECK;

/* Warns where the spec asks for a frontier and there is none. NO_MEMORY. */
enum qdq_code qdqi_frontier_warn_missing(const struct qdqi_attempt *attempt,
                                         const struct qdqi_result *result,
                                         struct qdq_error *err) QDQ_MUST_CHECK;

#endif
