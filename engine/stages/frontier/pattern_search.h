/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search for the fastest placement by times of whole models alone, for runtimes that tell no times
 * of layers which would add up, because they fuse them. Layers of equal surroundings are one pattern
 * (patterns.h), which is in integers or in float as a whole.
 *
 * The source of the idea is TensorRT Model Optimizer's autotune, which decides by patterns and measured
 * latencies, and keeps what it measured. This search has its own way: the time of a placement is taken for a sum, of a
 * time for each pattern in float and of one for each pair of neighbours that are not in the same form.
 * Bayesian linear regression estimates the terms from all measurements. The next placement to measure is
 * the best one of a sum drawn from what is still possible (W. R. Thompson, "On the likelihood that
 * one unknown probability exceeds another", 1933), found by switching the pattern with the
 * greatest gain until none gains. A placement's own measurements correct its estimate.
 *
 * Times are parts of the float model's. A measurement has noise of a few per cent; one that is far from
 * what was expected is repeated, and counts if another one agrees. A measurement that failed, or whose time is
 * absurd, is not believed; its placement counts as a slow one with much doubt, and three failures rule it out.
 *
 * The limits: a fusion of three patterns and more is seen by its own placements alone, and what is found
 * is the best one likely, not surely. With the same measurements the same placements are
 * found: the search has no other state, so that one which is begun again goes on by a journal of them.
 */
#ifndef QDQI_STAGES_FRONTIER_PATTERN_SEARCH_H
#define QDQI_STAGES_FRONTIER_PATTERN_SEARCH_H

#include "ground/base/arena.h"
#include "qdq/error.h"

#include <stddef.h>

/* Most patterns, and most pairs of them, of a search. */
enum { QDQI_MOST_PATTERNS = 64, QDQI_MOST_PATTERN_PAIRS = 192 };

/* Most measurements of a placement that count. */
enum { QDQI_MOST_TRIES = 5 };

/* Two patterns, one of which reads what the other one makes. */
struct qdqi_pattern_pair {
    size_t a, b;
};

/* A placement that was measured. */
struct qdqi_tried_placement {
    bool *is_float; /* by pattern */
    int n;          /* measurements that count */
    int n_failed;
    double ratios[QDQI_MOST_TRIES]; /* of those that count */
    double median;                  /* likewise */
    double estimate;                /* by all measurements; INFINITY: it is ruled out */
};

struct qdqi_pattern_search {
    size_t n;             /* patterns */
    const double *shares; /* by pattern: of the work, which add up to 1 */
    size_t n_pairs;
    const struct qdqi_pattern_pair *pairs;
    size_t most;     /* measurements */
    size_t reserved; /* of them, for qdqi_pattern_search_time() */
    /* Measures a placement: *ret is its time as a part of the float model's; NAN: that failed. An error ends the
       search. */
    enum qdq_code (*measure)(void *arg, const bool *is_float, double *ret,
                             struct qdq_error *err);
    void *arg;
    /* Returns whether no more may be measured. */
    bool (*is_time_up)(void *time_arg);
    void *time_arg;
    struct qdqi_arena *arena; /* owns the result */
    /* The result: */
    struct qdqi_tried_placement *tried; /* the one with the least estimate first */
    size_t n_tried;
    size_t n_measured; /* with those that failed */
    /* first what the placement without a pattern in float takes, then what each pattern takes longer in float, then
       what each pair takes longer where its patterns are not in the same form */
    const double *estimates;
    struct qdqi_pattern_sum *sum;
};

/* Searches. NO_MEMORY, and the errors of measure(). */
enum qdq_code qdqi_pattern_search(struct qdqi_pattern_search *search,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Sets *ret to the estimate for a placement, which is measured as often as it takes; NAN where it cannot be
   measured. */
enum qdq_code qdqi_pattern_search_time(struct qdqi_pattern_search *search,
                                       const bool *is_float, double *ret,
                                       struct qdq_error *err) QDQ_MUST_CHECK;

#endif
