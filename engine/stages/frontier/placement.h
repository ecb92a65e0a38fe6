/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layers compute in integers, as a minimum cut. A layer has a time in float and one in
 * integers, and noise in integers. A tensor that one side makes and the other reads is converted
 * once. Times add up, and so does noise, which has a price: the placement with the least
 *
 *     time + price * noise
 *
 * is a minimum cut between "integers" and "float", because to convert a tensor never costs less
 * than nothing: that is what makes the costs of pairs submodular (V. Kolmogorov and R. Zabih,
 * "What energy functions can be minimized via graph cuts?", 2004). The price swept from nothing to
 * infinity gives the lower convex hull of (noise, time) over all placements; what lies above the
 * hull, and may still be the fastest one for a given noise, it does not find.
 *
 * The limits: layers that are fused in one of the two forms only, as a Conv with the Add behind it
 * in float, save more time together than the sum says, and noise adds up only nearly. So what is
 * found is judged as deployed, and the costs are corrected by that (costs.h).
 */
#ifndef QDQI_STAGES_FRONTIER_PLACEMENT_H
#define QDQI_STAGES_FRONTIER_PLACEMENT_H

#include "ground/base/arena.h"
#include "qdq/error.h"

#include <stddef.h>

/* A tensor between layers. */
struct qdqi_passed_tensor {
    size_t from;      /* the layer that makes it */
    const size_t *to; /* those that read it, each of them another one */
    size_t n_to;
    double quantize_ms;   /* >= 0: from float, where a layer reads integers */
    double dequantize_ms; /* >= 0: likewise the other way */
};

struct qdqi_placement_costs {
    size_t n;                      /* layers */
    double *float_ms, *integer_ms; /* by layer, >= 0 */
    double *noise; /* by layer, > 0: in integers, as a part of the outputs' power */
    size_t n_tensors;
    struct qdqi_passed_tensor *tensors;
};

/* A placement and what it costs by these costs. */
struct qdqi_placement {
    const bool *is_float; /* by layer */
    double ms, noise;
};

/* Sets the costs of the placement whose `is_float` is set. */
void qdqi_placement_weigh(const struct qdqi_placement_costs *costs,
                          struct qdqi_placement *placement);

/* Finds the placement with the least time + price * noise; of several, that with the fewest layers
   in integers. NO_MEMORY. */
enum qdq_code qdqi_placement_find(const struct qdqi_placement_costs *costs,
                                  double price, struct qdqi_arena *arena,
                                  struct qdqi_placement *ret,
                                  struct qdq_error *err) QDQ_MUST_CHECK;

/* Finds the corners of the lower convex hull, the fastest first, up to the one without noise; at
   most `most` (>= 2) of them, those where it bends most first. NO_MEMORY. */
enum qdq_code qdqi_placement_hull(const struct qdqi_placement_costs *costs, size_t most,
                                  struct qdqi_arena *arena, struct qdqi_placement **ret,
                                  size_t *ret_n, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
