/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QDQI_WHATIF_SEARCH_H
#define QDQI_WHATIF_SEARCH_H

#include "job/job.h"

/* Whether a spec asks for a search: for a bound that is to be reached. */
bool qdqi_search_asked(const struct qdq_spec *spec);

/* Leaves layers in float, where the spec asks for it: the job has another plan then, with
   the ranges that there are, and its scales. */
enum qdq_code qdqi_search(struct qdqi_job *job, struct qdqi_scales *scales,
                          struct qdq_error *err) QDQ_MUST_CHECK;

#endif
