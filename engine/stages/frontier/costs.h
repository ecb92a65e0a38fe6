/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The costs of placements (placement.h) as they were measured: the times of single kernels, by the
 * runtime's own profile of the float model and of the one with all layers in integers, and what
 * whole placements showed since.
 */
#ifndef QDQI_STAGES_FRONTIER_COSTS_H
#define QDQI_STAGES_FRONTIER_COSTS_H

#include "stages/attempt/attempt.h"
#include "stages/frontier/patterns.h"
#include "stages/frontier/placement.h"

/* The two runs, with nodes as the runtime runs them. */
struct qdqi_profiled {
    const struct qdqi_kernel_names *names;
    struct qdqi_trace floats, integers;
    const struct qdq_model *model; /* that has all layers in integers, with its pairs */
};

/* A placement that ran as it would be deployed. */
struct qdqi_seen_placement {
    const bool *is_float; /* by layer */
    double latency_ratio; /* to the float model; NAN: not known */
    double noise;         /* as a part of the outputs' power; NAN: not known */
};

struct qdqi_costs {
    struct qdqi_placement_costs placement;
    /* the time of everything that is the same in each placement, and of the float model */
    double rest_ms, all_float_ms;
};

/*
 * Gives the time of each kernel to one of n layers, the rows of the attempt's plan that may be in
 * either form; one that clips or moves data counts as the layer that it follows. `noise` is what
 * is known of the noise of each layer before anything ran, in any unit. NO_MEMORY.
 */
enum qdq_code qdqi_costs_make(const struct qdqi_attempt *attempt,
                              const char *const *layers, size_t n, const double *noise,
                              const struct qdqi_profiled *profiled,
                              struct qdqi_arena *arena, struct qdqi_costs *ret,
                              struct qdq_error *err) QDQ_MUST_CHECK;

/*
 * Makes costs of the estimates of a search by patterns: the work of a pattern is spread evenly over its layers, which a cut
 * keeps together. `noise` is as above. Times are parts of the float model's. NO_MEMORY.
 */
enum qdq_code qdqi_costs_of_patterns(const struct qdqi_layer_patterns *patterns,
                                     const double *estimates, size_t n,
                                     const double *noise, struct qdqi_arena *arena,
                                     struct qdqi_costs *ret,
                                     struct qdq_error *err) QDQ_MUST_CHECK;

/* Corrects the costs by what was seen, the placement without a layer in float first. */
void qdqi_costs_correct(struct qdqi_costs *costs,
                        const struct qdqi_seen_placement *seen, size_t n_seen);

/* Returns the latency that the costs predict for a placement, as a part of the float model's. */
double qdqi_costs_ratio(const struct qdqi_costs *costs,
                        const struct qdqi_placement *placement);

/*
 * Returns the same with what the costs missed at placements that were seen: the mean of the errors there, each weighed by the
 * inverse square of its distance, which is the time of the layers that are in another form (D. Shepard, A
 * two-dimensional interpolation function for irregularly-spaced data, 1968). The float model has no error.
 */
double qdqi_costs_predict(const struct qdqi_costs *costs,
                          const struct qdqi_placement *placement,
                          const struct qdqi_seen_placement *seen, size_t n_seen);

#endif
