/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_WHATIF_SEARCH_H
#define QDQI_STAGES_WHATIF_SEARCH_H

#include "stages/report/report.h"

struct qdqi_whatif;

/* Returns whether a spec asks for a search, by a bound that is to be reached. */
bool qdqi_search_asked(const struct qdq_spec *spec);

/* Leaves layers in float where the spec asks for a search. The job then has a new
   plan with the same ranges, and the scales of that plan. */
enum qdq_code qdqi_search(struct qdqi_attempt *attempt, struct qdqi_whatif **whatif,
                          struct qdqi_result *result,
                          struct qdq_error *err) QDQ_MUST_CHECK;

#endif
