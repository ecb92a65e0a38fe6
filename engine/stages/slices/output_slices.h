/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slices that an output of a model is made of. Boxes of 0 to 600 and scores of 0 to 1 that one
 * Concat joins are two slices: one figure for both is that of the boxes alone.
 *
 * The graph tells them: what a Concat (also as it stacks), a Split or a Slice joins or parts on
 * the way to the output, through operators that move elements (Transpose, Reshape, Flatten,
 * Squeeze, Unsqueeze, Pad, Slice, Gather) and through those that compute each element by itself.
 * Where the graph tells nothing, the values do (channel_groups.h); the axes are then those whose
 * elements may be of several kinds: of a fixed size, neither the samples, nor places of an image, nor
 * classes that a Softmax compares.
 */
#ifndef QDQI_STAGES_SLICES_OUTPUT_SLICES_H
#define QDQI_STAGES_SLICES_OUTPUT_SLICES_H

#include "stages/slices/static_shape.h"

/* The slices along one axis: [begins[i], begins[i + 1]) of each `period` elements along it. */
struct qdqi_cut {
    size_t axis;
    int64_t period;  /* the size of the axis, or a divisor of it */
    bool by_values;  /* the graph tells nothing: each element is observed by itself */
    size_t n;        /* slices; where by_values is set, `period` */
    int64_t *begins; /* n of them, the first one 0; NULL where by_values is set */
    const char **names; /* likewise: the tensor that each slice comes from */
};

/* The cuts of an output, at most one for each axis. */
struct qdqi_cuts {
    size_t n;
    struct qdqi_cut cuts[QDQI_SHAPE_AXES];
};

/* Finds the cuts of output i of the model; names are borrowed from it. NO_MEMORY. */
enum qdq_code qdqi_output_cuts(const struct qdq_model *model, size_t i,
                               struct qdqi_arena *arena, struct qdqi_cuts *ret,
                               struct qdq_error *err) QDQ_MUST_CHECK;

#endif
