/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a layer's input, which its outputs are computed from: rows of a matrix, or
 * the patches of a convolution. A fixed number of positions of each sample is used,
 * spread evenly over all of them; or all of them, where that is less work (shifts.h).
 */
#ifndef QDQI_NUMBERS_RANGE_PATCHES_H
#define QDQI_NUMBERS_RANGE_PATCHES_H

#include "numbers/arithmetic/lanes.h"

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
    struct qdqi_lanes *lanes; /* pending rows of many groups; NULL: each has its own */
    uint64_t taken;           /* samples so far */
    struct qdqi_shifts
        *shifts; /* of samples that were taken whole; NULL: of none yet */
};

/* An input that a run has reached: float32. */
struct qdqi_patched {
    const float *data;
    size_t rank;
    const int64_t *dims;
};

/* The moments that a session collects, by slot of its Moment nodes. */
struct qdqi_moments {
    struct qdqi_patches **rows;
    size_t n;
    int64_t samples;   /* of the run under way */
    size_t per_sample; /* positions that are taken of each sample, >= 1 */
    /* A run's inputs are copied, and taken in when the caller decides to keep them. */
    bool holds;
    struct qdqi_held *held; /* in the order of the run; capacity `room` */
    size_t n_held, room;
};

/* The input of a convolution and the positions of its kernel there: sizes and first index
   by spatial axis. */
struct qdqi_geometry {
    int64_t in[QDQI_PATCH_AXES], out[QDQI_PATCH_AXES], begin[QDQI_PATCH_AXES];
    size_t channels; /* of one group */
    size_t plane;    /* elements of a channel */
};

/*
 * One sample of an input, of which `wanted` of `positions` are taken: that of row r is
 * floor((r + offset) * positions / wanted). Each has one of as many equal intervals, and
 * the place in the interval changes from sample to sample.
 */
struct qdqi_patched_sample {
    struct qdqi_patches *patches;
    const struct qdqi_geometry *geometry; /* NULL: rows of a matrix */
    const float *data;
    size_t positions, wanted;
    double offset; /* [0, 1) */
};

/* Makes room for pending rows, which must come before any are taken in; false when out of
   memory. The caller ends it by qdqi_patches_fini(). */
bool qdqi_patches_begin(struct qdqi_patches *patches);

/* Calls take(arg, sample) for each sample of an input. Returns false when the input's shape
   is not one that the window fits. Reads nothing of the input's data. */
bool qdqi_patches_each(
    struct qdqi_moments *all, size_t slot, const struct qdqi_patched *input,
    void (*take)(void *arg, const struct qdqi_patched_sample *sample), void *arg);

/* Returns the position of a wanted row of a sample. */
size_t qdqi_patched_position(const struct qdqi_patched_sample *sample, size_t row);
/* Writes what a group of the layer reads at a position: moments->k numbers. */
void qdqi_patched_row(const struct qdqi_patched_sample *sample, size_t group,
                      size_t position, float *to);

/* Calls do_part(part_arg, i) for each i < n; on several threads, if the caller likes. */
typedef void qdqi_share_fn(void *arg, void (*do_part)(void *part_arg, size_t i),
                           size_t n, void *part_arg);

/* Takes in the rows of an input. Returns false when the input's shape is not one that the
   window fits. While `holds`, the input is only copied; false when out of memory. */
bool qdqi_patches_add(struct qdqi_moments *all, size_t slot,
                      const struct qdqi_patched *input, qdqi_share_fn *share,
                      void *arg);

/* Takes in the inputs that are held. Returns false as above. */
bool qdqi_patches_take_held(struct qdqi_moments *all, qdqi_share_fn *share, void *arg);
/* Discards the inputs that are held. Their memory serves the next run. */
void qdqi_patches_discard_held(struct qdqi_moments *all);
void qdqi_patches_free_held(struct qdqi_moments *all);

/* Adds what is still pending to the moments. */
void qdqi_patches_finish(struct qdqi_patches *patches, qdqi_share_fn *share, void *arg);

/* Forgets all rows. */
void qdqi_patches_reset(struct qdqi_patches *patches);

/* Frees everything but the moments' sums. */
void qdqi_patches_fini(struct qdqi_patches *patches);

#endif
