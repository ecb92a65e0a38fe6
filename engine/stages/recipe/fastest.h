/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fastest placement at an accuracy, by what the runtime was seen to take. The placement with
 * all layers in integers, the one by the target's rules and a few on the frontier of measured
 * costs (stages/frontier/placement.h) are judged as deployed: accuracy, and latency by turns with
 * the float model.
 */
#ifndef QDQI_STAGES_RECIPE_FASTEST_H
#define QDQI_STAGES_RECIPE_FASTEST_H

#include "stages/attempt/leave.h"
#include "stages/candidates/candidates.h"
#include "stages/recipe/by_patterns.h"

/* Returns whether an attempt of a recipe has all layers in integers, from which the placements that are measured are
   made. */
bool qdqi_fastest_is_asked(const struct qdqi_attempt *attempt);

/* A placement that was judged, or the float model. */
struct qdqi_judged_placement {
    const char
        *step; /* "integers", "rules", "cut", "patterns", "search" or "unquantized" */
    /* by candidate of the attempt with all layers in integers; NULL: `spec` places them */
    const bool *is_float;
    const struct qdq_spec *spec; /* its rules place the layers, but for these */
    const char *const *layers;   /* that are in float besides */
    size_t n_layers;
    struct qdqi_grade grade;
    double predicted; /* latency ratio that the costs predicted; NAN: none did */
    bool confirmed;   /* it was measured twice */
    bool checked;     /* its accuracy was judged by all samples that there are for it */
};

/* Places of some of them. */
enum { QDQI_JUDGED_RULES = 1, QDQI_JUDGED_UNQUANTIZED = 2 };

/* A result that takes more of the float model's time is not worth its loss. */
#define QDQI_WORTH_RATIO 0.98

struct qdqi_fastest {
    /* The attempt has all layers in integers; the comparer measures latencies. */
    struct qdqi_candidates *candidates;
    const struct qdq_spec
        *by_rules; /* its planned_by with the rule that weighs layers */
    size_t points; /* of the frontier that are wanted; 0: only the fastest is */
    /* Returns whether no more may be judged. */
    bool (*is_time_up)(void *arg);
    void *arg;
    /* a search by patterns measures, and not the runtime's profile; NULL: the other way round */
    struct qdqi_by_patterns *patterns;
    /* The result: */
    struct qdqi_judged_placement *judged;
    size_t n_judged;
    int64_t samples; /* that were run */
};

/* Returns the spec of the candidates with the rule that weighs layers; NULL when out of memory. */
const struct qdq_spec *
qdqi_fastest_spec_by_rules(const struct qdqi_candidates *candidates);

/* Makes a trial by a spec with these layers in float besides. */
enum qdq_code qdqi_fastest_try(const struct qdqi_fastest *fastest,
                               const struct qdq_spec *spec,
                               const struct qdqi_left *left, struct qdqi_attempt **ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

/* Judges placements. Errors are those of qdqi_candidates_grade(). */
enum qdq_code qdqi_fastest_judge(struct qdqi_fastest *fastest,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether a placement with layers in integers has a time: a runtime may tell none. */
bool qdqi_fastest_has_times(const struct qdqi_fastest *fastest);

/* Adds a placement that was judged elsewhere. There is room for one. */
void qdqi_fastest_add(struct qdqi_fastest *fastest,
                      const struct qdqi_judged_placement *placement);

/*
 * Sets *ret to the fastest that has that accuracy and keeps within the bounds, or NULL. Several may
 * be as fast but for the noise of measurements: the most accurate one of them is taken. Its accuracy
 * is judged once more by all samples of the evaluation, because it was chosen by a few: one that
 * does not have it there gives way to the next. Where nothing is clearly faster than the float model, that
 * is the one. A placement that may owe its place to a lucky measurement is measured again, and the
 * slower time counts.
 */
enum qdq_code qdqi_fastest_choose(struct qdqi_fastest *fastest, double sqnr_db,
                                  const struct qdqi_judged_placement **ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Returns whether a search may find a faster placement than one of the cut: those with the most layers
   in integers lack the accuracy, and this one has far more of it than is asked for. */
bool qdqi_fastest_is_ample(const struct qdqi_fastest *fastest,
                           const struct qdqi_judged_placement *chosen);

/* Returns the placement that comes nearest to goals and bounds that none reaches, but for the float
   model. */
const struct qdqi_judged_placement *
qdqi_fastest_start(const struct qdqi_fastest *fastest);

/* Sets *ret to the placement with the best outputs by all samples, but for the float model; to that of the
   rules where none can be judged. */
enum qdq_code qdqi_fastest_best(struct qdqi_fastest *fastest,
                                const struct qdqi_judged_placement **ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Makes a trial by the rules beside the candidates' attempt. */
enum qdq_code qdqi_fastest_try_rules(const struct qdqi_fastest *fastest,
                                     struct qdqi_attempt **ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

#endif
