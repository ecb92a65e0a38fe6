/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search by patterns (stages/frontier/pattern_search.h) over a recipe's candidates, where a runner judges: what it measures
 * goes into the job's journal (stages/attempt/journal.h), and what it found is the costs of the minimum cut.
 */
#ifndef QDQI_STAGES_RECIPE_BY_PATTERNS_H
#define QDQI_STAGES_RECIPE_BY_PATTERNS_H

#include "stages/candidates/candidates.h"
#include "stages/frontier/costs.h"
#include "stages/frontier/patterns.h"

/* Most measurements of a job's search, with those of the placements that are judged. */
enum { QDQI_MOST_MEASUREMENTS = 200 };

struct qdqi_by_patterns {
    const struct qdqi_candidates *candidates; /* whose comparer measures */
    struct qdqi_layer_patterns patterns;
    struct qdqi_pattern_search search;
    bool *layers; /* by candidate: of the placement that is measured */
};

/* Returns whether a job's placements are searched by patterns: its spec asks for it, and a runner tells times. */
bool qdqi_by_patterns_is_asked(const struct qdqi_attempt *attempt);

/*
 * Searches; about `judged` placements will be judged. *ret_any is whether anything was measured. The arena of the
 * candidates' result owns what is found. NO_MEMORY, CANCELLED, IO.
 */
enum qdq_code qdqi_by_patterns_search(const struct qdqi_candidates *candidates,
                                      size_t judged, bool (*is_time_up)(void *arg),
                                      void *arg, struct qdqi_by_patterns *ret,
                                      bool *ret_any,
                                      struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes costs of what was found. NO_MEMORY. */
enum qdq_code qdqi_by_patterns_costs(const struct qdqi_by_patterns *found,
                                     struct qdqi_costs *ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns the best placement, by candidate, which the arena owns; NULL when out of memory. */
const bool *qdqi_by_patterns_best(const struct qdqi_by_patterns *found);

/* Gives the grade of a placement its time. The errors of qdqi_by_patterns_search(). */
enum qdq_code qdqi_by_patterns_set_time(struct qdqi_by_patterns *found,
                                        const bool *is_float, struct qdqi_grade *grade,
                                        struct qdq_error *err) QDQ_MUST_CHECK;

#endif
