/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of layers that stay in float, by groups and within a bound. It knows nothing
 * of models, only how good the outputs are when some of n layers are in float.
 */
#ifndef QDQI_STAGES_RECIPE_GROUPS_H
#define QDQI_STAGES_RECIPE_GROUPS_H

#include "ground/base/arena.h"
#include "stages/candidates/grade.h"
#include "qdq/error.h"

/* One choice that was judged. */
struct qdqi_group_step {
    const char *step;     /* "start", "group", "alone", "float" or "quantized" */
    const bool *is_float; /* by layer */
    struct qdqi_grade score;
    bool kept;      /* its choice became the best so far */
    bool estimated; /* the score is an estimate */
};

struct qdqi_group_search {
    size_t n;
    const double *costs; /* by layer: the cost of its staying in float */
    /* by layer: the noise that its own tensors get, as a part of their signal, by which groups
       are measured first; NULL: unknown */
    const double *noise;
    double goal_db; /* the search ends when the outputs are that good … */
    /* … or that good, and more of the layers would cost more than half of all */
    double enough_db;
    size_t max_scores; /* >= 1; two more steps may follow estimates */
    /* the score of the choice without any layer in float; NULL: the search judges it */
    const struct qdqi_grade *start;
    struct qdqi_arena *arena;
    void *arg;
    enum qdq_code (*score)(void *arg, const bool *is_float, struct qdqi_grade *ret,
                           struct qdq_error *err);
    /* Estimates the score at a fraction of its cost; NULL: nothing does. */
    enum qdq_code (*estimate)(void *arg, const bool *is_float, struct qdqi_grade *ret,
                              struct qdq_error *err);
    /* Returns whether the search has to end with the best choice so far; NULL: never. */
    bool (*is_time_up)(void *arg);
    /* The result: */
    bool *is_float;
    struct qdqi_grade best;
    size_t n_steps;
    struct qdqi_group_step *steps;
};

/*
 * Runs the search. It measures the gain of each group of neighbours, the one with the most
 * noise of its own first, and ends where one layer alone makes the outputs good. Else it halves the best
 * group while it has several layers and the bound allows, and leaves it in float where
 * that improves the outputs, or brings the choice within its bounds. In the end it
 * quantizes again what the goal does not need. A choice beyond its bounds is never
 * preferred to one within them.
 *
 * Where estimates agree with the scores, the search goes by estimates, and judges the start
 * and the choice that it ends with. It goes on by scores from there where that choice is not
 * good enough yet, and from the start where it is not as good as it was estimated.
 */
enum qdq_code qdqi_group_search(struct qdqi_group_search *search,
                                struct qdq_error *err) QDQ_MUST_CHECK;

#endif
