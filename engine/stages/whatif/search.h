/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_STAGES_WHATIF_SEARCH_H
#define QDQI_STAGES_WHATIF_SEARCH_H

#include "stages/job/job.h"

/* Returns whether a spec asks for a search, by a bound that is to be reached. */
bool qdqi_search_asked(const struct qdq_spec *spec);

/* Leaves layers in float where the spec asks for a search. The job then has a new
   plan with the same ranges, and the scales of that plan. */
enum qdq_code qdqi_search(struct qdqi_job *job, struct qdqi_scales *scales,
                          struct qdq_error *err) QDQ_MUST_CHECK;

#endif
