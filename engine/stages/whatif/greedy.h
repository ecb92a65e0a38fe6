/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for the layers that stay in float: as few as reach a goal. It knows
 * nothing of models, only how good the outputs are when some of n layers are in float.
 */
#ifndef QDQI_STAGES_WHATIF_GREEDY_H
#define QDQI_STAGES_WHATIF_GREEDY_H

#include "ground/base/arena.h"
#include "qdq/spec.h"

/* The quality of the outputs: the figures of the worst floating output. */
struct qdqi_score {
    double sqnr_db;        /* -inf where there is no such figure */
    double top1_agreement; /* NaN: no output has rows of two or more */
};

/* One step of the curve: the quality of the outputs with that many layers in float. */
struct qdqi_greedy_step {
    size_t n_float, layer; /* the layer that changed; SIZE_MAX at the first step */
    struct qdqi_score score;
};

struct qdqi_greedy_search {
    size_t n;
    const struct qdq_search *goal;
    struct qdqi_arena *arena;
    void *arg;
    enum qdq_code (*score)(void *arg, const bool *is_float, struct qdqi_score *ret,
                           struct qdq_error *err);
    /* Judges a choice that reaches the goal once more, and sets *ret to whether it does;
       NULL: the score decides. */
    enum qdq_code (*confirm)(void *arg, const bool *is_float, bool *ret,
                             struct qdq_error *err);
    /* Returns whether the search has to end with the best choice so far; NULL: never. */
    bool (*is_time_up)(void *arg);
    /* Announces about how many scores are still to be computed. */
    void (*expect)(void *arg, size_t scores);
    /* The result: */
    bool *is_float; /* by layer */
    size_t n_float, n_steps;
    struct qdqi_greedy_step *steps;
    bool met;
};

/*
 * Runs the search. The forward pass measures once, for each layer, how much noise
 * disappears when the layer stays in float. At each step it measures the best few
 * again, and the best one stays in float, until the goal is met or max_float_layers is
 * reached. The backward pass quantizes layers again that need not stay in float.
 */
enum qdq_code qdqi_greedy_search(struct qdqi_greedy_search *search,
                                 struct qdq_error *err) QDQ_MUST_CHECK;

#endif
