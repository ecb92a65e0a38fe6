/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a layer's input, which its outputs are computed from: rows of a matrix, or
 * the patches of a convolution. Of each sample a fixed number of positions is taken,
 * spread evenly over all of them.
 */
#ifndef QDQI_RANGE_PATCHES_H
#define QDQI_RANGE_PATCHES_H

#include "number/moment.h"

enum { QDQI_PATCH_AXES = 3 };

/* How a convolution moves over its input (ONNX Conv-11), by spatial axis. No axes: the
   rows of a matrix, which lie along the last axis of the input. */
struct qdqi_window {
    size_t axes;
    int64_t kernel[QDQI_PATCH_AXES], stride[QDQI_PATCH_AXES], dilation[QDQI_PATCH_AXES];
    int64_t begin[QDQI_PATCH_AXES], end[QDQI_PATCH_AXES]; /* padding */
    bool same_upper, same_lower; /* padding is computed from the input's size */
};

/* The moments of one layer's input. */
struct qdqi_patches {
    struct qdqi_window window;
    size_t groups;               /* of channels, each with a moment of its own; >= 1 */
    struct qdqi_moment *moments; /* by group */
    uint64_t taken;              /* samples so far */
};

/* Those of a session, by slot of its Moment nodes. */
struct qdqi_moments {
    struct qdqi_patches **rows;
    size_t n;
    int64_t samples;   /* of the run under way */
    size_t per_sample; /* positions that are taken of each sample, >= 1 */
};

/* An input that a run has reached: float32. */
struct qdqi_patched {
    const float *data;
    size_t rank;
    const int64_t *dims;
};

/* Adds a moment's pending rows; the caller may share the parts over threads. */
typedef void qdqi_add_rows_fn(void *arg, struct qdqi_moment *moment);

/* Takes in the rows of an input; calls `add` whenever a moment is full. Returns false
   when the input's shape is not one that the window fits. */
bool qdqi_patches_take(struct qdqi_moments *all, size_t slot,
                       const struct qdqi_patched *input, qdqi_add_rows_fn *add,
                       void *arg);

#endif
