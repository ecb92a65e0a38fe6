/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layers to leave in float: as few as reach a goal. Knows nothing of models, only
 * how good the outputs are with so and so many of n layers in float.
 */
#ifndef QDQI_WHATIF_HUNT_H
#define QDQI_WHATIF_HUNT_H

#include "base/arena.h"
#include "qdq/spec.h"

/* How good the outputs are: those of the worst one that is floating. */
struct qdqi_score {
    double sqnr_db;        /* -inf where there is no such figure */
    double top1_agreement; /* NaN: no output has rows of two or more */
};

/* One step of the curve: what the outputs were with so many layers in float. */
struct qdqi_hunt_step {
    size_t n_float, layer; /* the layer that changed; SIZE_MAX at the first step */
    struct qdqi_score score;
};

struct qdqi_hunt {
    size_t n;
    const struct qdq_search *goal;
    struct qdqi_arena *arena;
    void *arg;
    enum qdq_code (*score)(void *arg, const bool *is_float, struct qdqi_score *ret,
                           struct qdq_error *err);
    /* So many scores are still to come, about. */
    void (*expect)(void *arg, size_t scores);
    /* Found: */
    bool *is_float; /* by layer */
    size_t n_float, n_steps;
    struct qdqi_hunt_step *steps;
    bool met;
};

/*
 * Forward: by how much noise each layer's staying in float takes away, measured for all
 * of them once and for the best few again at each step, the best one stays in float,
 * until the goal is met or max_float_layers is reached. Backward: what need not stay
 * after all is quantized again.
 */
enum qdq_code qdqi_hunt(struct qdqi_hunt *hunt, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
