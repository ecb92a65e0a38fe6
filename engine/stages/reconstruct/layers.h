/* SPDX-License-Identifier: Apache-2.0 */
/* The layers whose weights are rounded against the float model's tensors: which ones can be, what
   each is compared by, and which ones are rounded after the same runs. */
#ifndef QDQI_STAGES_RECONSTRUCT_LAYERS_H
#define QDQI_STAGES_RECONSTRUCT_LAYERS_H

#include "stages/attempt/attempt.h"
#include "stages/reconstruct/row_pairs.h"

/* Layers that read the same tensor are rounded after the same runs, and where a model has more than so
   many of these groups, neighbours are rounded together: two runs of the samples go with each. */
enum { QDQI_MOST_STEPS = 48 };

struct qdqi_rebuilt {
    size_t layer;  /* in the plan */
    size_t weight; /* in the plan */
    size_t
        shifted; /* of the scales: its bias that takes the mean; QDQI_NONE: it has none */
    const struct qdqi_layer_moments *form;
    struct qdqi_window window;
    const struct qdqi_tensor *input;
    /* what the layer makes, or the sum that alone reads that, and so on: what was lost before the
       layer in the other summand can be made up for here, too */
    const struct qdqi_tensor *target;
    size_t step;
    struct qdqi_row_pairs pairs;
    bool fits; /* all runs had tensors that fit each other */
};

struct qdqi_rebuilt_layers {
    struct qdqi_rebuilt *rows; /* in the order of computation */
    size_t n, steps;
};

/* Finds the layers, whose weights were rounded by moments before. A warning counts the others whose
   weights the spec wants so, which keep that rounding. NO_MEMORY. */
enum qdq_code qdqi_rebuilt_find(struct qdqi_attempt *attempt,
                                struct qdqi_rebuilt_layers *ret,
                                struct qdq_error *err) QDQ_MUST_CHECK;

/* Warns that a layer keeps the rounding that it has. */
enum qdq_code qdqi_warn_kept(const struct qdqi_attempt *attempt, size_t layer, size_t n,
                             const char *why, struct qdq_error *err) QDQ_MUST_CHECK;

#endif
